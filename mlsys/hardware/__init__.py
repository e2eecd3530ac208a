"""Hardware: chips, links, memory levels and energies, each number with its source.

Chips are offered here, links by `mlsys.hardware.links`, memory levels by `mlsys.hardware.memory`, the energies of
operations by `mlsys.hardware.energy`, the blocks that an SM holds by `mlsys.hardware.occupancy`, the issue slots of a
warp by `mlsys.hardware.simt`, and the operands of a tensor core by `mlsys.hardware.fragments`. Peaks are dense
unless sparsity is asked for, link rates are per direction, and energies of two bases do not mix.

>>> from mlsys import Hardware
>>> h100 = Hardware.get("h100-sxm")
>>> h100.peak("fp16").m_as("TFLOP/s")
989.4
>>> round(h100.ridge_point("fp16").m_as("flop/byte"))
295
"""

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
