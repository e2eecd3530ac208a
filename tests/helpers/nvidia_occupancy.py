"""NVIDIA's own occupancy calculator as a program: a few lines of C around the header that the package triton brings."""

import shutil
import subprocess
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

PROGRAM = r"""
#include <stdio.h>
#include "cuda_occupancy.h"

int main(void) {
    int major, minor, threads_per_sm, threads, registers;
    size_t shared_per_sm, shared_per_block, reserved, shared;
    while (scanf("%d %d %d %zu %zu %zu %d %d %zu", &major, &minor, &threads_per_sm, &shared_per_sm, &shared_per_block,
                 &reserved, &threads, &registers, &shared) == 9) {
        struct cudaOccDeviceProp chip = {0};
        chip.computeMajor = major;
        chip.computeMinor = minor;
        chip.maxThreadsPerBlock = 1024;
        chip.maxThreadsPerMultiprocessor = threads_per_sm;
        chip.regsPerBlock = chip.regsPerMultiprocessor = 65536;
        chip.warpSize = 32;
        chip.sharedMemPerBlock = 48 * 1024;
        chip.sharedMemPerMultiprocessor = shared_per_sm;
        chip.numSms = 1;
        chip.sharedMemPerBlockOptin = shared_per_block;
        chip.reservedSharedMemPerBlock = reserved;
        struct cudaOccFuncAttributes kernel = {0};
        kernel.maxThreadsPerBlock = 1024;
        kernel.numRegs = registers;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = shared_per_block;
        kernel.numBlockBarriers = 1;
        struct cudaOccDeviceState state = {0};
        state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
        struct cudaOccResult found;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&found, &chip, &kernel, &state, threads, shared))
            return 1;
        printf("%d\n", found.activeBlocksPerMultiprocessor);
    }
    return 0;
}
"""


class Chip(NamedTuple):
    """Properties that a driver reports of a chip, as NVIDIA's documents give them; sizes in bytes."""

    major: int
    minor: int
    threads_per_sm: int
    shared_per_sm: int
    shared_per_block: int
    reserved: int


CHIPS = {
    "t4": Chip(7, 5, 1024, 65536, 65536, 0),
    "a100-80gb-sxm": Chip(8, 0, 2048, 167936, 166912, 1024),
    "l4": Chip(8, 9, 1536, 102400, 101376, 1024),
    "h100-sxm": Chip(9, 0, 2048, 233472, 232448, 1024),
    "b200": Chip(10, 0, 2048, 233472, 232448, 1024),
}
Launch = tuple[str, int, int, int]
"""Chip, threads of a block, registers of a thread, bytes of shared memory of a block."""


def header_folder() -> Path | None:
    """The folder with `cuda_occupancy.h`, if this machine has triton and a C compiler."""
    found = find_spec("triton")
    if not found or not found.origin or not shutil.which("cc"):
        return None
    folder = Path(found.origin).parent / "backends/nvidia/include"
    return folder if (folder / "cuda_occupancy.h").is_file() else None


def build(folder: Path) -> Path:
    """Compile the program into a folder, and return it."""
    source, program = folder / "occupancy.c", folder / "occupancy"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-w", f"-I{header_folder()}", source, "-o", program], check=True)
    return program


def blocks(program: Path, launches: Iterable[Launch]) -> list[int]:
    """Resident blocks of each launch, by NVIDIA's calculator."""
    rows = "".join(f"{' '.join(map(str, (*CHIPS[chip], *launch)))}\n" for chip, *launch in launches)
    done = subprocess.run([program], input=rows, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]
