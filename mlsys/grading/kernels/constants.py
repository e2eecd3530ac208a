"""The constants that a kernel may use, computed from the text of the cells that assign them.

No cell runs: numbers are computed here, with a few operations and within limits.
"""

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlsys.grading.kernels.language import NUMBER_TYPES

NO_VALUE = object()
"""Marker instead of a value, for an expression that is not a constant."""

_CONSTANTS_OF_MATH = {name: getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")}
FUNCTIONS_OF_MATH = frozenset("ceil cos exp exp2 fabs floor log log10 log1p log2 pow sin sqrt".split())
FUNCTIONS_OF_PYTHON: dict[str, Any] = {"abs": abs, "float": float, "int": int, "max": max, "min": min}
MAX_BITS = 256
"""Largest integer constant while it is computed, in bits: 2**(10**9) would take the memory of the machine."""
MAX_LENGTH = 200
"""Longest constant: a tuple in parts, a text in characters."""


@dataclass(frozen=True)
class DType:
    """A dtype of Triton, as the value of a constant."""

    name: str


def value_of_member(path: str) -> Any:
    """Return the value of a member of a module, such as "math.pi" or "triton.language.float32"; or `NO_VALUE`."""
    module, _, member = path.rpartition(".")
    if module in ("math", "numpy"):
        return _CONSTANTS_OF_MATH.get(member, NO_VALUE)
    name = path.removeprefix("triton.language.")
    return DType(name) if path != name and name in NUMBER_TYPES else NO_VALUE


def not_finite(text: str) -> Any:
    """Return the infinity or NaN that float() makes from a string; `NO_VALUE` for any other string."""
    return float(text) if text.strip().lower().lstrip("+-") in ("inf", "infinity", "nan") else NO_VALUE


def computed(operation: Any, values: Sequence[Any]) -> Any:
    """Return the result of an operation on numbers; `NO_VALUE` where there is none."""
    if operation is None or not values or not all(type(value) in (bool, int, float) for value in values):
        return NO_VALUE
    if any(type(value) is int and value.bit_length() > MAX_BITS for value in values):
        return NO_VALUE
    try:
        result = operation(*values)
    except (ArithmeticError, ValueError, TypeError):
        return NO_VALUE
    if type(result) not in (bool, int, float) or (type(result) is int and result.bit_length() > MAX_BITS):
        return NO_VALUE
    return result


def _power(base: Any, exponent: Any) -> Any:
    if type(base) is int and type(exponent) is int and abs(exponent) * max(base.bit_length(), 1) > MAX_BITS:
        raise ValueError("too large")
    return base**exponent


def _shifted(value: Any, by: Any) -> Any:
    if by > MAX_BITS:
        raise ValueError("too large")
    return value << by


UNARY: dict[type[ast.unaryop], Any] = {ast.USub: lambda a: -a, ast.UAdd: lambda a: +a, ast.Invert: lambda a: ~a}
BINARY: dict[type[ast.operator], Any] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: _power,
    ast.LShift: _shifted,
    ast.RShift: lambda a, b: a >> b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}


def expression(value: Any) -> ast.expr:
    """Return the expression that a constant is written as."""
    match value:
        case DType(name=name):
            return ast.Attribute(ast.Name("tl", ast.Load()), name, ast.Load())
        case tuple():
            return ast.Tuple([expression(part) for part in value], ast.Load())
        case float() if not math.isfinite(value):
            return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(value))], [])
        case int() | float() if not isinstance(value, bool) and (value < 0 or math.copysign(1, value) < 0):
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        case str():
            return ast.Constant(" ".join(value.splitlines()))
    return ast.Constant(value)
