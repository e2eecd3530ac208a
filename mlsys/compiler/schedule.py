"""Fourth stage: choose the tile and the warps of each kernel by a rule from the chip's data."""

from dataclasses import replace
from itertools import product
from math import ceil

from mlsys.compiler.ir.expression import size
from mlsys.compiler.ir.graph import TORCH
from mlsys.compiler.ir.program import Kernel, Program
from mlsys.hardware import Accelerator

THREADS = 32  # of a warp
VECTOR_BYTES = 16  # most that one instruction of a thread loads
INTERPRETED = 1 << 18  # elements of a tile in Triton's interpreter, where programs cost more than elements
LINE_BYTES = 128  # of a cache, and least length of a row of a product's tile
STAGE_BYTES = 16 * 1024  # that a product loads ahead at a time, so that small tiles wait for few loads
MIN_DOT = 16  # least side of a tile of tl.dot
LEAST_TILE = 2048  # elements of a tile of rows that are too short to fill one alone


def power_of_two(number: int) -> int:
    """Return the least power of two that is not less than a number.

    >>> power_of_two(48), power_of_two(1)
    (64, 1)
    """
    return 1 << max(0, number - 1).bit_length()


def schedule(program: Program, chip: Accelerator, device: str) -> Program:
    """Choose a tile for every kernel."""
    return replace(program, kernels=tuple(candidates(kernel, chip, device)[0] for kernel in program.kernels))


def candidates(kernel: Kernel, chip: Accelerator, device: str) -> list[Kernel]:
    """Return the schedules that are worth timing, the rule's own choice first."""
    return {"map": _map, "rows": _rows, "product": _product}[kernel.form.kind](kernel, chip, device == "cpu")


def _map(kernel: Kernel, chip: Accelerator, interpreted: bool) -> list[Kernel]:
    elements, vector = kernel.result.elements, VECTOR_BYTES // TORCH[kernel.result.dtype].itemsize
    many = elements / (4 * THREADS * vector) > 4 * chip.field("sm_count").value.m
    blocks = [(warps * THREADS * vector * n, warps) for warps, n in ((4, 2 if many else 1), (4, 4), (8, 1), (8, 2))]
    blocks = [(min(power_of_two(elements), INTERPRETED), 4)] if interpreted else blocks
    return [replace(kernel, tile={"BLOCK": b}, grid=(ceil(elements / b),), warps=warps) for b, warps in blocks]


def _rows(kernel: Kernel, chip: Accelerator, interpreted: bool) -> list[Kernel]:
    rows, length, units = size(kernel.form.outer), max(1, size(kernel.form.over)), chip.field("sm_count").value.m
    loads = {load.detail: TORCH[load.dtype].itemsize for load in kernel.element.loads}
    most = INTERPRETED if interpreted else int(chip.field("registers_per_sm").value.m) // 2 // max(1, len(loads))
    columns, found = min(power_of_two(length), 1 << (most.bit_length() - 1)), []
    vector = VECTOR_BYTES // max(loads.values(), default=4)
    for wanted, numbers in ((1, 16), (1, 8), (1, 32), (2, 16), (2, 32), (1, 64), (2, 64)):
        at_once = INTERPRETED // columns if interpreted else max(LEAST_TILE // columns, wanted)
        while not interpreted and at_once > 1 and rows / at_once < 2 * units:
            at_once //= 2
        at_once = min(at_once, power_of_two(rows))
        values = numbers if rows / at_once > 4 * units else vector  # of a thread; with few programs, more threads
        warps, grid = max(1, min(16, at_once * columns // (THREADS * values))), (ceil(rows / at_once),)
        found.append(replace(kernel, tile={"ROWS": at_once, "COLS": columns}, grid=grid, warps=warps))
    return found


def _product(kernel: Kernel, chip: Accelerator, interpreted: bool) -> list[Kernel]:
    m, n, k, batch = (size(getattr(kernel.form, part)) for part in ("outer", "inner", "over", "batch"))
    itemsize = max(TORCH[load.dtype].itemsize for load in kernel.element.loads)
    has_tf32 = any(peak.precision == "tf32" for peak in chip.peaks)
    precision = "tf32x3" if has_tf32 and not interpreted else "ieee"

    def made(tile_m: int, tile_n: int, tile_k: int, warps: int, stages: int) -> Kernel:
        tile = {"TILE_M": tile_m, "TILE_N": tile_n, "TILE_K": tile_k}
        grid = (ceil(m / tile_m) * ceil(n / tile_n), batch)
        return replace(kernel, tile=tile, grid=grid, warps=warps, stages=stages, precision=precision)

    if interpreted:
        m_n_k = [max(MIN_DOT, min(power_of_two(length), 1 << most)) for length, most in ((m, 9), (n, 10), (k, 8))]
        return [made(m_n_k[0], m_n_k[1], m_n_k[2], 4, 1)]
    registers, deepest = (2, 256) if itemsize == 2 else (8, 64)
    peak = chip.peak("fp16") if itemsize == 2 else chip.peak("tf32") / 3 if has_tf32 else chip.peak("fp32", "vector")
    accumulators, units = int(chip.field("registers_per_sm").value.m) // registers, chip.field("sm_count").value.m
    shared, timed = chip.field("shared_memory_per_block").value.m_as("byte"), []
    for tile_m, tile_n in product((16, 32, 64, 128), (16, 32, 64, 128, 256)):
        deep = 1 << (STAGE_BYTES // ((tile_m + tile_n) * itemsize)).bit_length() - 1
        tile_k = max(MIN_DOT, min(power_of_two(k), deepest, max(deep, LINE_BYTES // itemsize)))
        stages = min(4, int(shared // ((tile_m + tile_n) * tile_k * itemsize)))
        if tile_m * tile_n > accumulators or stages < 2:
            continue
        arithmetic = 2 * tile_m * tile_n * k / peak.m_as("flop/s")
        traffic = (tile_m + tile_n) * k * itemsize / chip.memory_bw.m_as("byte/s")
        seconds = ceil(ceil(m / tile_m) * ceil(n / tile_n) * batch / units) * max(arithmetic, traffic)
        warps = 8 if tile_m * tile_n >= 128 * 128 else 4 if tile_m * tile_n >= 32 * 32 else 2
        timed.append((seconds, 1 / tile_m + 1 / tile_n, made(tile_m, tile_n, tile_k, warps, stages)))
    return [scheduled for *_, scheduled in sorted(timed, key=lambda row: row[:2])[:8]]
