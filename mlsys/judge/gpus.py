"""GPUs of this host: which ones there are, and on which one a process judges.

A process that judges sees one GPU, and so do its sandboxes. Where CUDA shows it several, it judges on the first.
"""

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from mlsys.errors import UserError
from mlsys.measure.device import torch_sees_gpu

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""Environment variable that says which GPUs CUDA shows to a process; CUDA reads it once, when it starts."""
_LONGEST_NAME = 256


@dataclass(frozen=True)
class Gpu:
    """A GPU of this host.

    Attributes:
        uuid: by which NVIDIA's driver knows it, such as "GPU-6f1d..."; the same in every process and after a restart.
        name: of its model, such as "NVIDIA H200".
        visible: what `VISIBLE` must be so that CUDA shows it alone; empty if it does so already.
    """

    uuid: str
    name: str
    visible: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.uuid})"


def visible_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs that CUDA shows to this process, in CUDA's order.

    CUDA's driver is asked, not torch: a judge must not take memory of a GPU, on which others measure times.

    Raises:
        UserError: the driver does not tell.
    """
    if not torch_sees_gpu():
        return ()
    driver = ctypes.CDLL("libcuda.so.1")

    def ask(function: str, *arguments: object) -> None:
        if status := getattr(driver, function)(*arguments):
            raise UserError(f"CUDA's driver answers {function} with error {status}: look with `nvidia-smi`")

    count = ctypes.c_int()
    ask("cuInit", 0)
    ask("cuDeviceGetCount", ctypes.byref(count))
    found = []
    for number in range(count.value):
        device, uuid, name = ctypes.c_int(), (ctypes.c_char * 16)(), ctypes.create_string_buffer(_LONGEST_NAME)
        ask("cuDeviceGet", ctypes.byref(device), number)
        ask("cuDeviceGetUuid", ctypes.byref(uuid), device)
        ask("cuDeviceGetName", name, _LONGEST_NAME, device)
        found.append((f"GPU-{UUID(bytes=uuid.raw)}", name.value.decode()))
    # A single one is left as it is: it may be a part of a GPU, which goes by another name.
    return tuple(Gpu(uuid, name, uuid if len(found) > 1 else "") for uuid, name in found)


def alike(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Return the GPUs of the same model as the first one: on another, times and so points would differ.

    >>> [one.uuid for one in alike([Gpu("GPU-1", "H100"), Gpu("GPU-2", "T4"), Gpu("GPU-3", "H100")])]
    ['GPU-1', 'GPU-3']
    """
    return tuple(one for one in gpus if one.name == gpus[0].name)


def gpus_to_grade_on(device: str) -> tuple[Gpu, ...]:
    """Return the GPUs that this host can grade on side by side, for an asked "cpu", "gpu" or "auto"."""
    return () if device == "cpu" else alike(visible_gpus())


@cache
def judging_gpu() -> Gpu:
    """Return the GPU on which this process judges; call it only where `torch_sees_gpu()`."""
    return visible_gpus()[0]


def visible_in_sandbox() -> str:
    """Return what `VISIBLE` must be in a sandbox, which then uses the GPU of this process; empty if it does anyway."""
    return judging_gpu().visible or os.environ.get(VISIBLE, "")
