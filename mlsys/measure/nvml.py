"""NVIDIA's management library (NVML): access to torch's current GPU, and its clock and power while work is timed.

A kernel's rate depends on the clock, and under its power limit a GPU lowers the clock. So a record holds both.
"""

import statistics
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

SAMPLE_EVERY_S = 0.02
"""Seconds between two readings: rare enough that the thread which reads does not slow the host's launches."""


@contextmanager
def torchs_gpu() -> Iterator[Any | None]:
    """Open NVML and yield its handle of torch's current GPU; None where the library or the GPU cannot be reached."""
    if find_spec("pynvml") is None:
        yield None
        return
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield _handle()
    finally:
        pynvml.nvmlShutdown()


def _handle() -> Any | None:
    import pynvml
    import torch

    if not torch.cuda.is_available():
        return None
    gpu = f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
    try:
        return pynvml.nvmlDeviceGetHandleByUUID(gpu)
    except pynvml.NVMLError:
        return None


def sm_clock_mhz(gpu: Any) -> float | None:
    """Read the present clock of the SMs, in MHz; None where the GPU does not tell."""
    import pynvml

    try:
        return float(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM))
    except pynvml.NVMLError:
        return None


def power_w(gpu: Any) -> float | None:
    """Read the present power of the board, in watts; None where the GPU does not tell.

    `nvmlDeviceGetPowerUsage` would give the mean of the last second on most chips, longer than much of what is timed.
    """
    import pynvml

    try:
        (found,) = pynvml.nvmlDeviceGetFieldValues(gpu, [pynvml.NVML_FI_DEV_POWER_INSTANT])
    except pynvml.NVMLError:
        return None
    return found.value.uiVal / 1e3 if found.nvmlReturn == pynvml.NVML_SUCCESS else None


@dataclass(frozen=True)
class Readings:
    """Medians of what was read while work was timed; None where nothing could be read.

    Attributes:
        sm_clock_mhz: clock of the SMs, in MHz.
        power_w: power of the board, in watts.
    """

    sm_clock_mhz: float | None = None
    power_w: float | None = None


class Meter:
    """Reads clock and power in a thread of its own, every `SAMPLE_EVERY_S`, from entry to exit.

    Without a GPU that NVML can reach, its readings are None.

    >>> with Meter() as meter:
    ...     work = sum(range(1000))
    >>> meter.readings().power_w is None  # too short for a reading, or no GPU here
    True
    """

    def __init__(self) -> None:
        self._clocks: list[float] = []
        self._powers: list[float] = []
        self._done = threading.Event()
        self._opened = ExitStack()

    def __enter__(self) -> "Meter":
        gpu = self._opened.enter_context(torchs_gpu())
        if gpu is not None:
            thread = threading.Thread(target=self._read, args=(gpu,), daemon=True)
            thread.start()
            self._opened.callback(thread.join)
            self._opened.callback(self._done.set)  # called first
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def readings(self) -> Readings:
        """Return the medians, after the exit."""
        return Readings(*(statistics.median(found) if found else None for found in (self._clocks, self._powers)))

    def _read(self, gpu: Any) -> None:
        while not self._done.wait(SAMPLE_EVERY_S):
            for found, read in ((self._clocks, sm_clock_mhz), (self._powers, power_w)):
                value = read(gpu)
                if value is not None:
                    found.append(value)
