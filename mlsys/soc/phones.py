"""Measured times of networks on two phones: on the CPU, on the GPU, and through Android's NNAPI.

NNAPI hands supported operators to the drivers of DSP, NPU and GPU. The rest stays on the CPU.

>>> nasnet = next(row for row in phone_times() if row.model == "NASNet mobile" and row.phone == "Pixel 4")
>>> round(nasnet.nnapi_ms / nasnet.cpu_ms, 1)
2.9
"""

from functools import cache

from mlsys.core.sourced import Cited, Entry, data_file


class PhoneTime(Entry, frozen=True, kw_only=True):
    """Milliseconds of one inference.

    Attributes:
        model: the network.
        format: "float" or "int8".
        phone: the device.
        cpu_ms: on the CPU, four threads.
        gpu_ms: on the GPU; None where it is not printed.
        nnapi_ms: through NNAPI.
    """

    model: str
    format: str
    phone: str
    cpu_ms: float
    nnapi_ms: float
    gpu_ms: float | None = None


class _Times(Cited, frozen=True, kw_only=True):
    times: tuple[PhoneTime, ...]


@cache
def phone_times() -> tuple[PhoneTime, ...]:
    """Return all of them, as the documentation of TensorFlow Lite printed them."""
    return data_file("phones.toml", _Times).times
