"""Fourth stage: choose the tile and the warps of each kernel by a rule from the chip's data."""

from dataclasses import dataclass, replace
from itertools import product
from math import ceil

from mlsys.compiler.fuse import Fused, Kernel, size
from mlsys.compiler.ir.expression import Load, walk
from mlsys.compiler.ir.graph import TORCH
from mlsys.hardware import Accelerator

THREADS = 32
"""Threads of a warp."""

VECTOR_BYTES = 16
"""Bytes that one instruction of a thread loads at most."""

INTERPRETED = 1 << 18
"""Elements of a tile in Triton's interpreter, where programs cost more than elements; Triton allows four times."""

LINE_BYTES = 128
"""Bytes of a cache line: what a row of a product's tile is at least long."""

STAGE_BYTES = 16 * 1024
"""Bytes that a product loads ahead at a time, so that small tiles do not wait for each of many short loads."""

MIN_DOT = 16
"""Least side of a tile of tl.dot."""


@dataclass(frozen=True)
class Scheduled:
    """A kernel with its tile, the programs that are launched, and their warps.

    Attributes:
        kernel: what is computed.
        tile: sizes by name: BLOCK of a map, ROWS and COLS of rows, TILE_M, TILE_N and TILE_K of a product.
        grid: programs.
        warps: warps of a program.
        stages: tiles of the loop over k that are loaded ahead.
    """

    kernel: Kernel
    tile: tuple[tuple[str, int], ...]
    grid: tuple[int, ...]
    warps: int = 4
    stages: int = 2

    def __str__(self) -> str:
        tile = " ".join(f"{name}={extent}" for name, extent in self.tile)
        return f"{self.kernel.name}: {tile}, grid {self.grid}, {self.warps} warps, {self.stages} stages"


@dataclass(frozen=True)
class Schedule:
    """The kernels of a graph, scheduled, in the order in which they run."""

    fused: Fused
    kernels: tuple[Scheduled, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.kernels))


def power_of_two(number: int) -> int:
    """Return the least power of two that is not less than a number.

    >>> power_of_two(48), power_of_two(1)
    (64, 1)
    """
    return 1 << max(0, number - 1).bit_length()


def schedule(fused: Fused, chip: Accelerator, device: str) -> Schedule:
    """Choose a tile for every kernel."""
    return Schedule(fused, tuple(candidates(kernel, chip, device)[0] for kernel in fused.kernels))


def candidates(kernel: Kernel, chip: Accelerator, device: str) -> list[Scheduled]:
    """Return the schedules that are worth timing, the rule's own choice first."""
    rules = {"map": _map, "rows": _rows, "product": _product}
    return rules[kernel.form.kind](kernel, chip, device == "cpu")


def _map(kernel: Kernel, chip: Accelerator, interpreted: bool) -> list[Scheduled]:
    elements = max(1, kernel.result.elements)
    if interpreted:
        blocks = [(min(power_of_two(elements), INTERPRETED), 4)]
    else:
        vector = VECTOR_BYTES // TORCH[kernel.result.dtype].itemsize
        programs = elements / (4 * THREADS * vector)
        vectors = 2 if programs > 4 * chip.field("sm_count").value.m else 1
        blocks = [(warps * THREADS * vector * each, warps) for warps, each in ((4, vectors), (4, 4), (8, 1), (8, 2))]
    return [
        Scheduled(kernel, (("BLOCK", block),), (ceil(kernel.result.elements / block),), warps)
        for block, warps in blocks
    ]


def _rows(kernel: Kernel, chip: Accelerator, interpreted: bool) -> list[Scheduled]:
    rows, length = size(kernel.form.outer), max(1, size(kernel.form.over))
    loads = len({part.buffer for part in walk(kernel.element) if isinstance(part, Load)})
    most = INTERPRETED if interpreted else int(chip.field("registers_per_sm").value.m) // 2 // max(1, loads)
    columns = min(power_of_two(length), 1 << (most.bit_length() - 1))
    found = []
    for each in (2048, 1024, 4096, 8192):
        at_once = max(1, (INTERPRETED if interpreted else each) // columns)
        while not interpreted and at_once > 1 and rows / at_once < 2 * chip.field("sm_count").value.m:
            at_once //= 2
        at_once = min(at_once, power_of_two(rows))
        warps = max(1, min(16, at_once * columns // (THREADS * 8)))
        found.append(Scheduled(kernel, (("ROWS", at_once), ("COLS", columns)), (ceil(rows / at_once),), warps))
    more = [replace(found[0], warps=warps) for warps in (4, 8, 16) if warps != found[0].warps]
    return list(dict.fromkeys(found + more))


def _product(kernel: Kernel, chip: Accelerator, interpreted: bool) -> list[Scheduled]:
    m, n, k, batch = (
        size(axes) for axes in (kernel.form.outer, kernel.form.inner, kernel.form.over, kernel.form.batch)
    )
    loads = [part for part in walk(kernel.element) if isinstance(part, Load)]
    itemsize = max(TORCH[part.dtype].itemsize for part in loads)

    def made(tile_m: int, tile_n: int, tile_k: int, warps: int, stages: int) -> Scheduled:
        tile = (("TILE_M", tile_m), ("TILE_N", tile_n), ("TILE_K", tile_k))
        return Scheduled(kernel, tile, (ceil(m / tile_m) * ceil(n / tile_n), batch), warps, stages)

    if interpreted:
        sides = [max(MIN_DOT, min(power_of_two(extent), 1 << most)) for extent, most in ((m, 9), (n, 10), (k, 8))]
        return [made(sides[0], sides[1], sides[2], 4, 1)]
    accumulators = int(chip.field("registers_per_sm").value.m) // (2 if itemsize == 2 else 8)
    shared = chip.field("shared_memory_per_block").value.m_as("byte")
    units = chip.field("sm_count").value.m
    peak = chip.peak("fp16" if itemsize == 2 else "fp32", engine="tensor" if itemsize == 2 else "vector").m_as("flop/s")
    bandwidth = chip.memory_bw.m_as("byte/s")
    timed = []
    for tile_m, tile_n in product((16, 32, 64, 128), (16, 32, 64, 128, 256)):
        deep = 1 << (STAGE_BYTES // ((tile_m + tile_n) * itemsize)).bit_length() - 1
        tile_k = max(MIN_DOT, min(power_of_two(k), 256, max(deep, LINE_BYTES // itemsize)))
        stages = min(4, int(shared // ((tile_m + tile_n) * tile_k * itemsize)))
        if tile_m * tile_n > accumulators or stages < 2:
            continue
        waves = ceil(ceil(m / tile_m) * ceil(n / tile_n) * batch / units)
        arithmetic = 2 * tile_m * tile_n * k / peak
        traffic = (tile_m + tile_n) * k * itemsize / bandwidth
        warps = next(warps for least, warps in ((128 * 128, 8), (32 * 32, 4), (0, 2)) if tile_m * tile_n >= least)
        scheduled = made(tile_m, tile_n, tile_k, warps, stages)
        timed.append((waves * max(arithmetic, traffic), (tile_m + tile_n) / (tile_m * tile_n), scheduled))
    timed.sort(key=lambda row: row[:2])
    return [scheduled for _, _, scheduled in timed[:8]]
