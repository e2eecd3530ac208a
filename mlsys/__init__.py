"""Hardware models, simulators, measurement and grading for a course on AI acceleration and GPU kernels.

`dir(mlsys)` lists the rooms of the package; each is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsys.hardware import Hardware

_ROOMS = (
    "constants",
    "costs",
    "dataflow",
    "feasibility",
    "formatting",
    "formulas",
    "grading",
    "growth",
    "hardware",
    "measure",
    "models",
    "numerics",
    "ops",
    "registry",
    "roofline",
    "runtime",
    "scaling",
    "soc",
    "sparsity",
    "systolic",
    "traffic",
    "units",
    "viz",
)

__all__ = ["Hardware", *_ROOMS]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Hardware":
        return import_module("mlsys.hardware").Hardware
    if name in (*_ROOMS, "compiler"):  # which has no page of its own, since it needs torch to be imported
        return import_module(f"mlsys.{name}")
    raise AttributeError(f"module 'mlsys' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
