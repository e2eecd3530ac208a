"""What each operation computes, as a function of its inputs; importing this package registers all rules."""

from mlsys.compiler.rules import elementwise, movement, reductions
from mlsys.compiler.rules.values import RULES

__all__ = ["RULES", "elementwise", "movement", "reductions"]
