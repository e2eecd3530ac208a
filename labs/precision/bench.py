"""What the lab on narrow numbers measures for the record: the fastest kernels beside the library, and their errors.

All are replayed from CUDA graphs, as in the lab's races, and every result is checked before it is timed. Products of 8
bits run on six shapes. fp8 has two rows for each: sums as the tensor cores keep them, beside the library's product with
`use_fast_accum`, and sums in float32, beside the library's without. Weights of 4 bits run at batches from decode to
prefill on four layers of language models, beside the library's product with bfloat16 weights; their rate counts the
bytes that the 4-bit product moves, up to batch 16, and FLOPs above it.

| name | variants | shape | rate |
|---|---|---|---|
| fast fp8 product | fast sums, float32 sums | m, n, k | TFLOP/s |
| fast int8 product | int32 result, scaled | m, n, k | TFLOP/s, which are TOP/s here |
| int4 bytes | only read | n, k | GB/s |
| fast int4 weights | the plan | batch, n, k | GB/s, or TFLOP/s |

The rows of bytes say what a plain kernel takes that only reads them, beside the library's product at a batch of 1. A
product with weights of 4 bits that gains more there must also read faster than that kernel.

Each row of a product has the error of its result, relative to the product of the numbers before they were rounded to
fewer bits.

`python labs/precision/bench.py` measures every plan that may suit a shape, on one GPU, and prints which is best, beside
what the rule chooses, and whether the aims are reached.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton
import triton.language as tl

from mlsys.bench.lab import lab_module
from mlsys.bench.row import row
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import Device, detect_device
from mlsys.measure.records import Row
from mlsys.measure.timing import rotate, time_kernel, time_pair

SQUARES = [(2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192)]
LAYERS = [(4096, 14336, 4096), (4096, 4096, 14336), (8192, 8192, 1024)]
SHAPES = SQUARES + LAYERS
"""Sizes m, n, k of products of 8 bits: squares, the layers of an 8B model at a prompt of 4,096, and a short k."""

WEIGHTS = [(8192, 8192), (4096, 4096), (14336, 4096), (4096, 14336)]
"""Sizes n, k of weights of 4 bits."""

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DECODE = 16
"""Largest batch whose rate is counted in bytes."""

AIMS = {"fp8": 0.98, "int8": 0.90, "int4 at batch 1 to 16": 3.2, "int4 up to batch 256": 0.9}
"""Least ratios to the library to reach on an H200: geometric means; the last one for every shape.

At batch 1 to 16 the aim leaves little time for anything but reading: see the ratios of the rows of bytes.
"""

FP8 = torch.float8_e4m3fn
ALL_BYTES = 2**28
"""Bytes of all copies of packed weights that take turns: five times the L2 of an H200, as the layers of a model do."""

READ_WORDS = 4096
"""Words of 32 bits that a program of `read_kernel` reads."""

Work = Callable[[], Any]


@triton.jit
def read_kernel(words_ptr, scales_ptr, out_ptr, WORDS, SCALES, BLOCK: tl.constexpr, SCALE_BLOCK: tl.constexpr):
    """Write the largest of a block of words and a block of scales, each read as 32-bit integers, or 0."""
    words = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scales = tl.program_id(0) * SCALE_BLOCK + tl.arange(0, SCALE_BLOCK)
    largest = tl.max(tl.load(words_ptr + words, mask=words < WORDS, other=0), 0)
    largest = max(largest, tl.max(tl.load(scales_ptr + scales, mask=scales < SCALES, other=0), 0))
    tl.store(out_ptr + tl.program_id(0), largest)


def fast_module() -> ModuleType:
    """`fast.py` beside this file."""
    return lab_module(Path(__file__).with_name("fast.py"))


def relative_error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """Root mean square of the difference, relative to that of `exact`."""
    return float((found.double() - exact.double()).norm() / exact.double().norm())


class Product:
    """Random matrices of 8 bits, and the ways to multiply them: A, (m, k), by B, (n, k), transposed."""

    def __init__(self, shape: tuple[int, int, int], dtype: torch.dtype, device: str = "cuda") -> None:
        self.shape, self.dtype, self.fast = shape, dtype, fast_module()
        m, n, k = shape
        x, w = (torch.randn(rows, k, device=device) for rows in (m, n))
        self.x, self.w = x, w
        largest = 127.0 if dtype == torch.int8 else 448.0
        self.a_scale, self.b_scale = (one.abs().amax(1) / largest for one in (x, w))
        self.a, self.b = (self.codes(one, scale) for one, scale in ((x, self.a_scale), (w, self.b_scale)))
        self.one = torch.ones((), device=device)

    def codes(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """The rows of a matrix divided by their scales, in 8 bits."""
        quotients = x / scale[:, None]
        return (quotients.round_() if self.dtype == torch.int8 else quotients).to(self.dtype)

    @property
    def tflop(self) -> float:
        """Work of the product."""
        m, n, k = self.shape
        return 2 * m * n * k / 1e12

    def ours(self, plan: Any, *, scaled: bool, precise: bool, device: Device, out: torch.dtype | None = None) -> Work:
        """A call of the fastest kernel into an output of its own."""
        plain = torch.int32 if self.dtype == torch.int8 else torch.float32
        result = torch.empty(self.shape[:2], dtype=out or (torch.bfloat16 if scaled else plain), device=self.a.device)
        scales = (self.a_scale, self.b_scale) if scaled else (None, None)
        self.fast.check_product(self.a, self.b, result, *scales)

        def call() -> torch.Tensor:
            self.fast.launch_product(self.a, self.b, result, *scales, precise, plan, device)
            return result

        return call

    def library(self, *, fast_sums: bool) -> Work:
        """The same by torch; its fp8 product has one scale for each matrix."""
        if self.dtype == torch.int8:
            return lambda: torch._int_mm(self.a, self.b.T)
        scales = {"scale_a": self.one, "scale_b": self.one}
        return lambda: torch._scaled_mm(self.a, self.b.T, **scales, out_dtype=torch.bfloat16, use_fast_accum=fast_sums)

    def check(self, found: torch.Tensor, *, scaled: bool, precise: bool, what: str) -> float | None:
        """Return the error that 8 bits cost, on the first rows; None if the scales, and so the original, are left out.

        Raises:
            ArithmeticError: if the result is further from the product of the 8-bit numbers than rounding explains.
        """
        rows = slice(0, FIRST_ROWS)
        exact = self.a[rows].double() @ self.b.double().T
        if scaled:
            exact = exact * self.a_scale[rows].double()[:, None] * self.b_scale.double()
        if not bool(found.isfinite().all()):
            raise ArithmeticError(f"{what}: the result has holes")
        error = relative_error(found[rows], exact)
        kept = "fast sums" if self.dtype == FP8 and not precise else "int32" if not scaled else "rounded"
        if error > LARGEST_ERROR[kept]:
            raise ArithmeticError(f"{what}: relative error {error:.1e}, {LARGEST_ERROR[kept]:.0e} is allowed")
        return relative_error(found[rows], self.x[rows].double() @ self.w.double().T) if scaled else None


FIRST_ROWS = 256
"""Rows of a result whose errors are measured."""

LARGEST_ERROR = {"int32": 0.0, "rounded": 3e-3, "fast sums": 1e-2}
"""Largest relative error of a right product, as root mean square, by how its sums are kept and rounded.

bfloat16 rounds to 2^-9 of a number. Sums of fp8 products on a Hopper GPU keep about 13 bits.
"""


class Weights:
    """Random weights of 4 bits, and the ways to multiply activations by them."""

    def __init__(self, batch: int, n: int, k: int, device: str = "cuda", dtype: torch.dtype = torch.bfloat16) -> None:
        self.shape, self.fast = (batch, n, k), fast_module()
        self.w = (torch.randn(n, k, device=device) / k**0.5).to(dtype)
        self.x = torch.randn(batch, k, device=device).to(dtype)
        self.packed = self.fast.pack_int4(self.w)
        self.copies = max(1, round(ALL_BYTES / self.packed.nbytes))

    @property
    def tflop(self) -> float:
        """Work of the product."""
        m, n, k = self.shape
        return 2 * m * n * k / 1e12

    @property
    def moved(self) -> int:
        """Bytes of activations, packed weights with scales, and results."""
        m, n, _ = self.shape
        return int(self.x.nbytes + self.packed.nbytes + m * n * 2)

    def ours(self, plan: Any) -> Work:
        """Calls of the fastest kernel into an output of its own, with one copy of the weights after the other."""
        out = torch.full((self.shape[0], self.shape[1]), float("nan"), dtype=self.x.dtype, device=self.x.device)
        self.fast.check_int4(self.x, self.packed, out)

        def call(weights: Any) -> torch.Tensor:
            self.fast.launch_int4(self.x, weights, out, plan)
            return out

        return rotate(call, [(one,) for one in self.packed_copies])

    @cached_property
    def packed_copies(self) -> list[Any]:
        """The packed weights, as often as a cache cannot hold them."""
        more = [
            self.fast.Int4Weights(self.packed.words.clone(), self.packed.scales.clone()) for _ in range(self.copies - 1)
        ]
        return [self.packed, *more]

    def reading(self) -> Work:
        """Calls that only read the packed weights, one copy after the other, and return the largest of each program."""
        size = self.packed.words.view(torch.int32).numel()
        out = torch.empty(triton.cdiv(size, READ_WORDS), dtype=torch.int32, device=self.x.device)

        def call(weights: Any) -> torch.Tensor:
            words, scales = weights.words.view(torch.int32), weights.scales.view(torch.int32)
            scale_block = READ_WORDS * scales.numel() // words.numel()
            read_kernel[(len(out),)](
                words, scales, out, words.numel(), scales.numel(),
                BLOCK=READ_WORDS, SCALE_BLOCK=scale_block, num_warps=16,
            )  # fmt: skip
            return out

        return rotate(call, [(one,) for one in self.packed_copies])

    def check_reading(self, found: torch.Tensor) -> None:
        """Hold what a call of `reading` returned to the largest of all words and scales.

        Raises:
            ArithmeticError: if they differ.
        """
        largest = max(int(one.view(torch.int32).max()) for one in (self.packed.words, self.packed.scales))
        if int(found.max()) != largest:
            raise ArithmeticError(f"reading {self.shape[1:]}: the largest is {largest}, {int(found.max())} was found")

    def library(self) -> Work:
        """The same with weights of 16 bits, with as many copies."""
        copies = [(self.w,), *((self.w.clone(),) for _ in range(self.copies - 1))]
        return rotate(lambda w: self.x @ w.T, copies)

    def check(self, found: torch.Tensor, what: str) -> float:
        """Return the error that weights of 4 bits cost.

        Raises:
            ArithmeticError: if the result is further from the product with the 4-bit weights than rounding explains.
        """
        x = self.x.double()
        error = relative_error(found, x @ self.packed.whole().double().T)
        if not error <= LARGEST_ERROR["rounded"]:
            raise ArithmeticError(f"{what}: relative error {error:.1e}, {LARGEST_ERROR['rounded']:.0e} is allowed")
        return relative_error(found, x @ self.w.double().T)


def rows(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """Time the fastest kernels on every shape."""
    device, fast = ceilings.device, fast_module()
    if (device.capability or (0, 0)) < fast.NEEDS:
        return
    yield from fp8_rows(ceilings)
    yield from int8_rows(ceilings)
    yield from int4_rows(ceilings)


def fp8_rows(ceilings: Ceilings) -> Iterator[Row]:
    """Time fp8 products, with both kinds of sums."""
    device, fast = ceilings.device, fast_module()
    for shape in SHAPES:
        case = Product(shape, FP8)
        for precise in (False, True):
            plan = fast.product_plan(*shape, device, precise=precise)
            call = case.ours(plan, scaled=True, precise=precise, device=device)
            error = case.check(call(), scaled=True, precise=precise, what=f"fp8 {shape}, {plan}")
            peers = {"torch._scaled_mm": case.library(fast_sums=not precise)}
            variant = "float32 sums" if precise else "fast sums"
            yield product_row("fast fp8 product", variant, case, "fp8", call, peers, ceilings, error)


def int8_rows(ceilings: Ceilings) -> Iterator[Row]:
    """Time int8 products, into int32 as the library's is, and with scales into bfloat16."""
    device, fast = ceilings.device, fast_module()
    for shape in SHAPES:
        case = Product(shape, torch.int8)
        peers = {"torch._int_mm": case.library(fast_sums=True)}
        for scaled in (False, True):
            plan = fast.product_plan(*shape, device, 2 if scaled else 4)
            call = case.ours(plan, scaled=scaled, precise=False, device=device)
            error = case.check(call(), scaled=scaled, precise=True, what=f"int8 {shape}, {plan}")
            variant = "scaled" if scaled else "int32 result"
            yield product_row("fast int8 product", variant, case, "int8", call, peers, ceilings, error)


def product_row(
    name: str,
    variant: str,
    case: Any,
    dtype: str,
    call: Work,
    peers: dict[str, Work],
    ceilings: Ceilings,
    error: float | None,
) -> Row:
    """Measure one row in TFLOP/s."""
    roof = ceilings.product_roof(dtype).m_as("TFLOP/s")
    how = {"work": case.tflop, "ceiling": roof, "rate_unit": "TFLOP/s", "graph": True, "error": error}
    return row("lab", name, variant, case.shape, dtype, call=call, peers=peers, **how)


def int4_rows(ceilings: Ceilings) -> Iterator[Row]:
    """Time reading weights of 4 bits, and products with them at all batches."""
    device, fast = ceilings.device, fast_module()
    for n, k in WEIGHTS:
        yield read_row(Weights(1, n, k), ceilings)
        for batch in BATCHES:
            case = Weights(batch, n, k)
            plan = fast.int4_plan(batch, n, k, device)
            call = case.ours(plan)
            error = case.check(call(), f"int4 {case.shape}, {plan}")
            peers = {"cuBLAS bf16": case.library()}
            name, variant = "fast int4 weights", f"{plan.tile_m}x{plan.tile_n}, {plan.splits} splits"
            if batch > DECODE:
                yield product_row(name, variant, case, "bf16", call, peers, ceilings, error)
                continue
            roof = ceilings.bandwidth("copy").m_as("GB/s")
            how = {"work": case.moved / 1e9, "ceiling": roof, "rate_unit": "GB/s", "graph": True, "error": error}
            yield row("lab", name, variant, case.shape, "bf16", call=call, peers=peers, **how)


def read_row(case: Any, ceilings: Ceilings) -> Row:
    """Measure reading packed weights, beside the library's product with a batch of 1."""
    call, peers = case.reading(), {"cuBLAS bf16": case.library()}
    case.check_reading(call())
    roof = ceilings.bandwidth("read").m_as("GB/s")
    how = {"work": case.packed.nbytes / 1e9, "ceiling": roof, "rate_unit": "GB/s", "graph": True}
    return row("lab", "int4 bytes", "only read", case.shape[1:], "int4", call=call, peers=peers, **how)


def tried(calls: dict[Any, Callable[[], Work]], check: Callable[[torch.Tensor, str], object]) -> dict[Any, float]:
    """Seconds of each plan that runs and is right."""
    found = {}
    for plan, made in calls.items():
        try:
            call = made()
            check(call(), str(plan))
            found[plan] = time_kernel(call, graph=True, budget_s=0.02).median_s
        except Exception as error:
            print(f"  {plan}: {type(error).__name__}: {str(error).splitlines()[0][:160]}", flush=True)
    return found


def shown(times: dict[Any, float], rule: Any) -> str:
    """The five fastest plans in us, and that of the rule."""
    best = sorted(times, key=times.__getitem__)[:5]
    listed = "; ".join(f"{plan} {times[plan] * 1e6:.1f}" for plan in best)
    chosen = f"{times[rule] * 1e6:.1f}" if rule in times else "not run"
    return f"{listed} | rule {rule} {chosen}"


def main() -> None:
    """Measure all plans on all shapes."""
    parser = argparse.ArgumentParser(description="Measure every plan of the fastest products of narrow numbers.")
    parser.add_argument("--json", type=Path, help="write all times to this file")
    given = parser.parse_args()
    begin, device, fast = time.perf_counter(), detect_device(), fast_module()
    fast.check_device(device)
    print(
        f"{device.name}, torch {torch.__version__}; us of the best plans, and times as fast as the library", flush=True
    )
    written: list[dict[str, Any]] = []
    ratios: dict[str, list[float]] = {aim: [] for aim in AIMS}

    def report(name: str, shape: tuple[int, ...], times: dict[Any, float], rule: Any, ratio: float) -> None:
        print(f"{name} {shape}: {ratio:.2f}; {shown(times, rule)}", flush=True)
        written.append(
            {"name": name, "shape": shape, "ratio": ratio, "us": {str(p): t * 1e6 for p, t in times.items()}}
        )

    for name, dtype in (("fp8", FP8), ("int8", torch.int8)):
        for shape in SHAPES:
            case = Product(shape, dtype)
            integer = dtype == torch.int8
            how = {"scaled": not integer, "precise": False, "device": device}
            rule = fast.product_plan(*shape, device, 4 if integer else 2)
            fits = [
                plan for plan in fast.PRODUCT_PLANS if plan.shared_bytes(4 if integer else 2) <= device.shared_bytes
            ]
            calls = {plan: (lambda plan=plan, case=case, how=how: case.ours(plan, **how)) for plan in fits}
            times = tried(
                calls,
                lambda found, what, case=case, integer=integer: case.check(  # type: ignore[misc]
                    found, scaled=not integer, precise=integer, what=what
                ),
            )
            ours, theirs = case.ours(rule, **how), case.library(fast_sums=True)
            ratios[name].append(time_pair(ours, theirs, graph=True).ratio)
            report(name, shape, times, rule, ratios[name][-1])
    for n, k in WEIGHTS:
        for batch in BATCHES:
            weights = Weights(batch, n, k)
            best = fast.int4_plan(batch, n, k, device)
            tries = fast.int4_candidates(batch, n, k, device)
            times = tried(
                {plan: (lambda plan=plan, weights=weights: weights.ours(plan)) for plan in tries}, weights.check
            )
            ratio = time_pair(weights.ours(best), weights.library(), graph=True).ratio
            ratios["int4 at batch 1 to 16" if batch <= DECODE else "int4 up to batch 256"].append(ratio)
            report(f"int4, {weights.moved / times[best] / 1e9:.0f} GB/s" if best in times else "int4", weights.shape,
                   times, best, ratio)  # fmt: skip
    for aim, least in AIMS.items():
        found = ratios[aim]
        value = min(found) if aim.endswith("256") else statistics.geometric_mean(found)
        print(f"{aim}: {value:.3f}, at least {least} wanted: {'reached' if value >= least else 'missed'}")
    print(f"{time.perf_counter() - begin:.0f} s in all")
    if given.json:
        given.json.write_text(json.dumps(written))


if __name__ == "__main__":
    main()
