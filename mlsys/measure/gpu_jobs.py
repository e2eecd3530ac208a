"""Who else uses the GPU: a timing beside another job measures both."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.errors import UserError
from mlsys.measure.nvml import torchs_gpu

CONTEXT_BYTES = 3 * 2**29
"""Memory that may be taken without another job: our own CUDA context (about half a GiB) and a desktop's windows."""


@dataclass(frozen=True)
class GpuProcess:
    """A process with a CUDA context; `memory_mib` is what it takes, such as "512", or "[N/A]" where no one knows."""

    pid: int
    name: str
    memory_mib: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid}, {self.memory_mib} MiB)"


def other_jobs() -> str:
    """Name what else uses torch's current GPU; "" if nothing shows. Call it before allocating much.

    Processes are named where NVIDIA's management library lists them; one in another container shows by its memory.
    """
    return describe_others(listed_processes(), os.getpid(), taken_bytes())


def taken_bytes() -> int:
    """Return how many bytes of torch's current GPU torch does not hold here: our context's, and those of others."""
    import torch

    free, total = torch.cuda.mem_get_info()
    return int(total - free - torch.cuda.memory_reserved())


def refuse_shared_gpu() -> None:
    """Stop before a measurement on a GPU that another job uses.

    Raises:
        UserError: naming the job.
    """
    others = other_jobs()
    if others:
        raise UserError(
            f"this GPU is in use by {others}: a timing would measure both; wait for it, or take another GPU"
        )


def describe_others(processes: Iterable[GpuProcess], own_pid: int, taken_bytes: int) -> str:
    """Name the processes that are not ours, or else the memory that ours does not explain.

    A number that this machine does not know is left out: inside a container, ours may be listed under another one.
    """
    named = [str(one) for one in processes if one.pid != own_pid and Path(f"/proc/{one.pid}").exists()]
    if named:
        return ", ".join(named)
    if taken_bytes > CONTEXT_BYTES:
        return f"a process that cannot be seen from here, with {taken_bytes / 2**30:.1f} GiB of its memory"
    return ""


def listed_processes() -> list[GpuProcess]:
    """List the compute processes on torch's current GPU; empty where NVIDIA's library is missing or cannot tell."""
    with torchs_gpu() as gpu:
        if gpu is None:
            return []
        import pynvml

        try:
            return [_described(one) for one in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)]
        except pynvml.NVMLError:
            return []


def _described(process: Any) -> GpuProcess:
    """Describe a process of the library's list as nvidia-smi does; one in another container has no name here."""
    import pynvml

    try:
        name = pynvml.nvmlSystemGetProcessName(process.pid)
    except (pynvml.NVMLError, UnicodeDecodeError):
        name = "[Not Found]"
    memory = process.usedGpuMemory
    return GpuProcess(process.pid, name, "[N/A]" if memory is None else str(memory // 2**20))
