"""What every rung of the ladder shares: where its files are, what it computes, and how it is checked and timed.

Import it before triton: without a GPU it turns on Triton's interpreter. A rung is a file that has a function
`attend(q, k, v, out)` for float16 tensors (heads, tokens, numbers), all contiguous and causal; `python
labs/attention/ladder/RUNG.py` checks and times it. All rungs take K and V with as many heads as Q.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mlsys.bench import ladder
from mlsys.errors import UserError
from mlsys.measure.device import detect_device, torch_sees_gpu

DEVICE = "cuda" if torch_sees_gpu() else "cpu"
if DEVICE == "cpu" and "triton" not in sys.modules:  # it reads this when it is imported
    os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402  (after the choice of the device)

FOLDER = Path(__file__).parent
SHAPE = (64, 4096, 128)
"""Heads, tokens and numbers that the rungs are compared on, and the record's rows are made with."""

RAGGED = (3, 1000, 128)
"""Tokens that no block divides."""

TOLERANCE = 6.0
"""Largest error of a rung relative to torch's: stored scores and shares are rounded to float16, too."""

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], object]


class CannotAttend(UserError, ValueError):
    """Tensors that a rung cannot take."""


rungs = partial(ladder.rungs, FOLDER)
"""Names of all rungs, from the bottom up."""
title = ladder.title
load = partial(ladder.load, FOLDER)
"""Imports the file of a rung."""


def sizes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor) -> tuple[int, int, int]:
    """Return heads, tokens and numbers.

    Raises:
        CannotAttend: tensors that no rung takes, with what to give.
    """
    for name, tensor in (("q", q), ("k", k), ("v", v), ("out", out)):
        if tensor.shape != q.shape or tensor.dim() != 3 or not tensor.is_contiguous():
            raise CannotAttend(
                f"{name} has shape {tuple(tensor.shape)} and strides {tensor.stride()}: give all four alike, "
                "contiguous, as (heads, tokens, numbers)"
            )
        if tensor.dtype != torch.float16:
            raise CannotAttend(f"{name} is {tensor.dtype}: give float16")
    heads, n, d = q.shape
    if d not in (16, 32, 64, 128):
        raise CannotAttend(f"a head has {d} numbers: give 16, 32, 64 or 128")
    return heads, n, d


def tensors(heads: int, n: int, d: int) -> list[torch.Tensor]:
    """Make random normal Q, K and V in float16, and an output full of NaN."""
    made = [torch.randn(heads, n, d, device=DEVICE).half() for _ in "qkv"]
    return [*made, torch.full((heads, n, d), float("nan"), dtype=torch.float16, device=DEVICE)]


def library(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return torch's own result."""
    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]


def error(out: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> float:
    """Return the largest error in up to 64 random queries of every head, against float64.

    It is relative to the root mean square of the result. One wrong element shows; a NaN in `out` makes it NaN.
    """
    rows = torch.randperm(q.shape[1], device=q.device)[:64]
    scores = q[:, rows].double() @ k.double().mT / q.shape[2] ** 0.5
    later = torch.arange(q.shape[1], device=q.device)[None, :] > rows[:, None]
    exact = scores.masked_fill(later, -torch.inf).softmax(2) @ v.double()
    return float((out[:, rows].double() - exact).abs().max() / exact.square().mean().sqrt())


def check(attend: Attend, shape: tuple[int, int, int]) -> float:
    """Compute random tensors of a shape and return the relative error.

    Raises:
        ArithmeticError: the result has a hole, or is further from float64 than `TOLERANCE` times torch's own.
    """
    q, k, v, out = tensors(*shape)
    attend(q, k, v, out)
    ours, theirs = error(out, q, k, v), error(library(q, k, v), q, k, v)
    if not ours <= TOLERANCE * theirs + 1e-3:
        raise ArithmeticError(f"shape {shape}: relative error {ours:.1e}, where torch has {theirs:.1e}")
    return ours


def small_shapes() -> list[tuple[int, int, int]]:
    """Return small shapes that every rung is checked with; smaller ones in the interpreter."""
    return [(2, 160, 16), (1, 37, 32)] if DEVICE == "cpu" else [RAGGED, (2, 37, 64)]


def climb(rung: str) -> None:
    """Check a rung and print what comes out; on a GPU, time it beside torch's own attention."""
    module = load(Path(rung).stem)
    device = detect_device()
    print(f"on {device.name}" + ("" if device.kind == "gpu" else ", in Triton's interpreter"))
    ladder.check_device(module, device)
    for shape in [*small_shapes(), *([] if DEVICE == "cpu" else [SHAPE])]:
        try:
            print(f"{shape}: right, relative error {check(module.attend, shape):.1e}")
        except ArithmeticError as wrong:
            raise SystemExit(f"wrong: {wrong}") from None
    if DEVICE != "cpu":
        print(timed(module.attend))


def flops(heads: int, n: int, d: int) -> int:
    """Return the FLOPs of both products for the pairs that the causal mask leaves."""
    return 4 * heads * (n * (n + 1) // 2) * d


def timed(attend: Attend) -> str:
    """Time `SHAPE` on this GPU: milliseconds, TFLOP/s and the share of the speed of torch's own attention."""
    from mlsys.measure.timing import time_pair

    q, k, v, out = tensors(*SHAPE)
    pair = time_pair(partial(attend, q, k, v, out), partial(library, q, k, v), graph=True)
    rate = flops(*SHAPE) / pair.candidate_s / 1e12
    return f"{1e3 * pair.candidate_s:.3f} ms, {rate:.4g} TFLOP/s, {100 * pair.ratio:.3g}% of torch's speed"
