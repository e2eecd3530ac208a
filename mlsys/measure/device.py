"""What the device at hand is: a CUDA GPU if torch sees one, else the CPU."""

import os
import platform
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class Device:
    """A device and what decides which code runs on it.

    `kind` is "gpu" or "cpu"; `capability` is CUDA's compute capability, such as (7, 5) for a T4, and None on a CPU.
    `cache_bytes` is the L2 of a GPU, `shared_bytes` the shared memory that a block may use; `cuda` is the version that
    torch was built with. A CPU has 0 and "" there.
    """

    kind: str
    name: str
    capability: tuple[int, int] | None = None
    memory_bytes: int = 0
    driver: str = ""
    multiprocessors: int = 0
    cache_bytes: int = 0
    cuda: str = ""
    shared_bytes: int = 0

    @property
    def has_bf16(self) -> bool:
        """Whether bf16 arithmetic is native: Ampere (8.0) and later; Triton's interpreter gets it wrong on a CPU."""
        return self.capability is not None and self.capability >= (8, 0)

    @property
    def has_triton_tensor_cores(self) -> bool:
        """Whether Triton reaches the tensor cores: since 3.3 it emits no such code before Ampere (8.0)."""
        return self.capability is not None and self.capability >= (8, 0)


def torch_sees_gpu() -> bool:
    """Tell whether torch is installed and finds a CUDA GPU."""
    if "torch" not in sys.modules and find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_initialized() or torch.cuda.is_available()  # the first of them answers sooner


def interpreter_fault() -> str:
    """Say why Triton's interpreter cannot run every kernel with the NumPy that is installed; "" if it can.

    Until Triton 3.7 the interpreter makes an int of an array with one element, for the bounds of a loop; NumPy refuses
    that from 2.4 on.
    """
    found = {name: version(name) for name in ("triton", "numpy")}
    triton, numpy = (tuple(int(part) for part in text.split(".")[:2]) for text in found.values())
    if triton >= (3, 7) or numpy < (2, 4):
        return ""
    return (
        f"Triton {found['triton']}'s interpreter cannot run loops with NumPy {found['numpy']}: "
        "pip install 'numpy<2.4', then restart Python"
    )


def detect_device() -> Device:
    """Return the GPU that torch would use, else the CPU."""
    return gpu_device() if torch_sees_gpu() else cpu_device()


def gpu_device() -> Device:
    """Describe the current CUDA GPU; call it only where `torch_sees_gpu()`."""
    import torch

    return numbered_gpu(torch.cuda.current_device())


@cache  # a process cannot get another GPU of the same number, and kernels ask at every call
def numbered_gpu(number: int) -> Device:
    """Describe a CUDA GPU by torch's number for it."""
    import torch

    properties = torch.cuda.get_device_properties(number)
    return Device(
        kind="gpu",
        name=properties.name,
        capability=(properties.major, properties.minor),
        memory_bytes=properties.total_memory,
        driver=driver_version(),
        multiprocessors=properties.multi_processor_count,
        cache_bytes=properties.L2_cache_size,
        cuda=torch.version.cuda or "",
        shared_bytes=properties.shared_memory_per_block_optin,  # type: ignore[attr-defined]
    )


@cache
def cpu_device() -> Device:
    """Describe the CPU: its model name as the kernel gives it, and the machine's memory."""
    return Device(
        kind="cpu",
        name=f"{cpu_model()}, {os.cpu_count()} cores",
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )


def cpu_model() -> str:
    """Return the processor's model name; Linux lists it in /proc/cpuinfo, other systems through `platform`."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def driver_version() -> str:
    """Return the NVIDIA kernel driver's version, or "" where the kernel does not show it."""
    # Not from NVIDIA's library, as in `gpu_jobs`: this file needs no device and no library, so a sandbox has it too.
    version_file = Path("/proc/driver/nvidia/version")
    if not version_file.exists():
        return ""
    words = version_file.read_text().splitlines()[0].split()
    return next((word for word in words if word.count(".") >= 1 and word[0].isdigit()), "")
