"""Hardware: chips, links, memory levels and energies, each number with its source."""

from mlsys.hardware.chips import (
    Accelerator,
    Hardware,
    Peak,
    UnknownField,
    UnknownPrecision,
)

__all__ = [
    "Accelerator",
    "Hardware",
    "Peak",
    "UnknownField",
    "UnknownPrecision",
]
