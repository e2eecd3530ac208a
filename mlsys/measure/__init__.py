"""Measurement of the device at hand: what it is, how fast it can be, and how long a kernel takes."""

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
