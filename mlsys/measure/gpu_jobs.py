"""Who else uses the GPU: a timing beside another job measures both."""

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mlsys.errors import UserError

CONTEXT_BYTES = 3 * 2**29
"""Memory that may be taken without another job: our own CUDA context (about half a GiB) and a desktop's windows."""


@dataclass(frozen=True)
class GpuProcess:
    """A process with a CUDA context, as nvidia-smi lists it; `memory_mib` is what it says, such as "512"."""

    pid: int
    name: str
    memory_mib: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid}, {self.memory_mib} MiB)"


def other_jobs(waiting: int = 0) -> str:
    """What else uses torch's current GPU, in words; "" if nothing shows. Call it before allocating much.

    Processes are named where nvidia-smi lists them; one in another container shows by the memory that it takes.

    Args:
        waiting: how many processes that cannot be seen from here are known to be idle; each may take `CONTEXT_BYTES`.
    """
    import torch

    free, total = torch.cuda.mem_get_info()
    taken = total - free - torch.cuda.memory_reserved()
    return describe_others(listed_processes(), os.getpid(), taken - waiting * CONTEXT_BYTES)


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
    """The compute processes on torch's current GPU; empty where nvidia-smi is missing or cannot tell."""
    import torch

    gpu = f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
    query = ["nvidia-smi", f"--id={gpu}", "--query-compute-apps=pid,process_name,used_memory"]
    try:
        done = subprocess.run(
            [*query, "--format=csv,noheader,nounits"], capture_output=True, text=True, check=False, timeout=20
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return []
    return parse_processes(done.stdout) if done.returncode == 0 else []


def parse_processes(text: str) -> list[GpuProcess]:
    r"""Read nvidia-smi's lines "pid, name, MiB"; the name may hold commas.

    >>> parse_processes("41, python3, 512\n")
    [GpuProcess(pid=41, name='python3', memory_mib='512')]
    """
    found = []
    for line in text.splitlines():
        pid, _, rest = line.partition(", ")
        name, _, memory = rest.rpartition(", ")
        if pid.strip().isdigit() and name:
            found.append(GpuProcess(int(pid), name, memory.strip()))
    return found
