"""Measurement of the device at hand: what it is, how fast it can be, and how long a kernel takes.

`mlsys.measure.clock` reads the time on a GPU or a CPU, `mlsys.measure.timing` times with it, `mlsys.measure.nvml` reads
the GPU's clock and power meanwhile, and `mlsys.measure.records` keeps what was measured. The names of the timing module
can also be imported from `mlsys.measure`.
"""

from mlsys.measure.ceilings import Ceilings, measure_ceilings
from mlsys.measure.device import Device, detect_device
from mlsys.measure.timing import Pair, Timing, rotate, time_kernel, time_pair

__all__ = [
    "Ceilings",
    "Device",
    "Pair",
    "Timing",
    "detect_device",
    "measure_ceilings",
    "rotate",
    "time_kernel",
    "time_pair",
]
