"""What every rung of the ladder shares: where its files are, what it multiplies, and how it is checked and timed.

Import it before triton: without a GPU it turns on Triton's interpreter. A rung is a file that has a function
`matmul(a, b, out)` for float16 matrices; `python labs/tiling/ladder/RUNG.py` checks and times it.

What the rungs say of profiles is from `profiles/`: an NVIDIA H200, sides of 4096, caches emptied before each
pass of the profiler, the clock as it was. The record's times are of replays from a graph.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

from mlsys.bench import ladder
from mlsys.errors import UserError
from mlsys.measure.device import detect_device, torch_sees_gpu

DEVICE = "cuda" if torch_sees_gpu() else "cpu"
if DEVICE == "cpu" and "triton" not in sys.modules:  # it reads this when it is imported
    os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402  (after the choice of the device)

FOLDER = Path(__file__).parent
SIDE = 4096
"""Side of the matrices that the rungs are compared on, and the record's rows are made with."""

RAGGED = (1000, 328, 456)
"""Sides that no tile divides; each row still starts at a multiple of 16 bytes."""

ODD = (333, 259, 517)
"""Sides that nothing divides."""

TOLERANCE = 2.0
"""Largest error of a rung relative to cuBLAS's: both round the result to float16 once."""

Matmul = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]


class CannotMultiply(UserError, ValueError):
    """Matrices that a rung cannot multiply."""


rungs = partial(ladder.rungs, FOLDER)
"""Names of all rungs, from the bottom up."""
title = ladder.title
load = partial(ladder.load, FOLDER)
"""Imports the file of a rung."""


def matrices(m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Make random normal A (m, k) and B (k, n) in float16, and C (m, n) full of NaN."""
    a, b = torch.randn(m, k, device=DEVICE).half(), torch.randn(k, n, device=DEVICE).half()
    return a, b, torch.full((m, n), float("nan"), dtype=torch.float16, device=DEVICE)


def error(out: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    """Return the largest error in up to 256 random rows of `out`, relative to the largest element of A B in float64.

    One wrong element shows; a NaN in `out` makes it NaN.
    """
    rows = torch.randperm(a.shape[0], device=a.device)[:256]
    exact = a[rows].double() @ b.double()
    return float((out[rows].double() - exact).abs().max() / exact.abs().max())


def check(matmul: Matmul, shape: tuple[int, int, int]) -> float:
    """Multiply random matrices of a shape and return the relative error.

    Raises:
        ArithmeticError: the result has a hole, or is further from float64 than `TOLERANCE` times torch's own.
    """
    a, b, out = matrices(*shape)
    matmul(a, b, out)
    ours, theirs = error(out, a, b), error(torch.matmul(a, b), a, b)
    if not ours <= TOLERANCE * theirs:
        raise ArithmeticError(f"shape {shape}: relative error {ours:.1e}, where torch has {theirs:.1e}")
    return ours


def small_shapes(module: ModuleType) -> list[tuple[int, int, int]]:
    """Return the small shapes that a rung is checked with: one whose rows are ALIGNED multiplies no odd sides.

    In the interpreter they are a little larger than a tile: four tiles of C, and a second step along K.
    """
    ragged, odd = RAGGED, ODD
    if DEVICE == "cpu":
        m, n, k = module.TILE.values() if hasattr(module, "TILE") else (module.ELEMENTS, module.ELEMENTS, 0)
        ragged, odd = (m + 16, n + 16, k + 16), (m + 1, n + 3, k + 5)
    return [ragged] if getattr(module, "ALIGNED", False) else [ragged, odd]


def climb(rung: str) -> None:
    """Check a rung and print what comes out; on a GPU, time it beside cuBLAS."""
    module = load(Path(rung).stem)
    device = detect_device()
    print(f"on {device.name}" + ("" if device.kind == "gpu" else ", in Triton's interpreter"))
    ladder.check_device(module, device)
    if getattr(module, "COMPILED_ONLY", False) and device.kind == "cpu":
        raise SystemExit("not run: this rung calls a kernel that Triton's interpreter cannot run; it needs a GPU")
    for shape in [*small_shapes(module), *([] if DEVICE == "cpu" else [(SIDE, SIDE, SIDE)])]:
        try:
            print(f"{shape}: right, relative error {check(module.matmul, shape):.1e}")
        except ArithmeticError as wrong:
            raise SystemExit(f"wrong: {wrong}") from None
    if DEVICE != "cpu":
        print(timed(module.matmul))


def timed(matmul: Matmul) -> str:
    """Time a product of `SIDE` on this GPU: milliseconds, TFLOP/s and the share of cuBLAS's speed."""
    from mlsys.measure.timing import time_pair

    a, b, out = matrices(SIDE, SIDE, SIDE)
    library = torch.empty_like(out)
    pair = time_pair(partial(matmul, a, b, out), partial(torch.matmul, a, b, out=library), graph=True)
    rate = 2 * SIDE**3 / pair.candidate_s / 1e12
    return f"{1e3 * pair.candidate_s:.3f} ms, {rate:.4g} TFLOP/s, {100 * pair.ratio:.3g}% of cuBLAS"
