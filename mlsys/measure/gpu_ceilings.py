"""Ceilings of a GPU, through torch and the vendor's libraries under it, on random normal data.

Random, because products of zeros switch fewer transistors and run faster than real ones.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec

import torch

from mlsys.errors import UnknownName
from mlsys.measure.device import Device
from mlsys.measure.roofs import random_matrix
from mlsys.measure.timing import time_kernel
from mlsys.units import Quantity, ureg

ARRAY_BYTES = 2**30
"""Bytes of each array: many times the L2 of any GPU."""

MATMUL_SIZES = (2048, 4096, 8192)
"""The rate is the best of these: large products may run into the power limit, small ones do not fill the chip."""

CACHED_PARTS = (0.25, 0.4, 0.55)
"""Parts of the L2 that source and target fill together; the rate is the best of these."""

LINK_BYTES = 2**28
PRECISIONS = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

MIXES: dict[str, tuple[int, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]]] = {
    "read": (1, lambda a, b, c: a.sum()),
    "copy": (2, lambda a, b, c: c.copy_(a)),
    "add": (3, lambda a, b, c: torch.add(a, b, out=c)),
    "fill": (1, lambda a, b, c: c.fill_(1)),
}
"""For each mix: how many arrays cross the memory interface, and the call that makes them do so."""


def bandwidths(device: Device, budget_s: float) -> dict[str, Quantity]:
    """Measure bytes read plus written per second, for arrays far larger than the L2; and "cached copy", inside it."""
    a, b, c = (torch.randn(ARRAY_BYTES // 4, device="cuda") for _ in range(3))
    rates = {}
    for mix, (arrays, call) in MIXES.items():
        timing = time_kernel(partial(call, a, b, c), on_gpu=True, budget_s=budget_s)
        rates[mix] = _rate(arrays * ARRAY_BYTES, timing.median_s)
    for part in CACHED_PARTS:
        source, target = (x[: int(part * device.cache_bytes) // (2 * 4)] for x in (a, c))
        timing = time_kernel(partial(scaled_copy, source, target), on_gpu=True, graph=True, budget_s=budget_s)
        rate = _rate(2 * source.nbytes, timing.median_s)
        rates["cached copy"] = max(rate, rates.get("cached copy", rate))
    return rates


def scaled_copy(source: torch.Tensor, target: torch.Tensor) -> None:
    """Scale as in STREAM: one read and one write like a copy, but a kernel; in a graph, a plain copy is none."""
    torch.mul(source, 2, out=target)


def matmul_rates(device: Device, budget_s: float) -> dict[str, Quantity]:
    """Measure the vendor library's square matrix products, FLOP/s = `2 n^3 / time`, the best of `MATMUL_SIZES`."""
    rates = {}
    for precision in precisions_of(device):
        times = {
            size: time_kernel(product(precision, size, size, size), on_gpu=True, budget_s=budget_s / len(MATMUL_SIZES))
            for size in MATMUL_SIZES
        }
        best = max(2 * size**3 / timing.median_s for size, timing in times.items())
        rates[precision] = ureg.Quantity(best / 1e12, "TFLOP/s")
    return rates


def precisions_of(device: Device) -> tuple[str, ...]:
    """Return the precisions that the device multiplies; fp8 from Ada (8.9) on, others but fp32 and fp16 from Ampere."""
    capability = device.capability or (0, 0)
    return (
        "fp32",
        "fp16",
        *(("tf32", "bf16", "int8") if capability >= (8, 0) else ()),
        *(("fp8",) if capability >= (8, 9) else ()),
    )


def product(precision: str, m: int, n: int, k: int, device: str = "cuda") -> Callable[[], torch.Tensor]:
    """Prepare a product of random matrices, to be called.

    "fp8" is e4m3 with a scale per matrix, into bf16; "int8" adds up in int32, and its sizes are multiples of 8.

    Raises:
        UnknownName: if torch has no such product.
    """
    if precision == "fp8":
        a, b = (random_matrix(rows, k, torch.float8_e4m3fn, device) for rows in (m, n))
        one = torch.ones((), device=device)
        return lambda: torch._scaled_mm(
            a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=device == "cuda"
        )
    if precision == "int8":
        a, b = (random_matrix(rows, k, torch.int8, device) for rows in (m, n))
        return lambda: torch._int_mm(a, b.t())
    if precision not in PRECISIONS:
        raise UnknownName.of("precision of a matrix product", precision, [*PRECISIONS, "fp8", "int8"])
    dtype = PRECISIONS[precision]
    left, right = random_matrix(m, k, dtype, device), random_matrix(k, n, dtype, device)
    out = torch.empty(m, n, device=device, dtype=dtype)

    def run() -> torch.Tensor:
        with tf32(precision == "tf32"):
            return torch.matmul(left, right, out=out)

    return run


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Allow float32 products to run as tf32, or not, for the time of a `with` block."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def roof_rates(device: Device, budget_s: float) -> dict[str, Quantity]:
    """Measure the roofs of `mlsys.measure.roofs` by name; empty where Triton is not installed.

    One that fails is named with its reason and left out.
    """
    if find_spec("triton") is None:
        return {}
    from mlsys.measure import roofs

    rates = {}
    for name in roofs.roofs_of(device):
        try:
            rates[name] = roofs.roof(name, device).rate(budget_s)
        except Exception as error:
            # A compiler that cannot do one format yet, say: the other ceilings shall not be lost with this one.
            print(f"  without {name}: {type(error).__name__}: {str(error).strip().splitlines()[:1]}", flush=True)
    return rates


def launch_latencies(budget_s: float) -> dict[str, Quantity]:
    """Measure the time per launch of torch's smallest kernel; "launch and wait" reads the host's clock."""
    one = torch.zeros(1, device="cuda")

    def wait() -> None:
        one.fill_(1)
        torch.cuda.synchronize()

    times = {
        "back to back": time_kernel(lambda: one.fill_(1), on_gpu=True, budget_s=budget_s),
        "graph": time_kernel(lambda: one.fill_(1), on_gpu=True, graph=True, budget_s=budget_s),
        "launch and wait": time_kernel(wait, on_gpu=False, budget_s=budget_s),
    }
    return {name: ureg.Quantity(timing.median_s * 1e6, "us") for name, timing in times.items()}


def host_link_rates(budget_s: float) -> dict[str, Quantity]:
    """Measure bytes per second between host and GPU: each way from pinned and pageable memory, and both ways."""
    return {
        name: _rate(LINK_BYTES, time_kernel(copy, on_gpu=True, budget_s=budget_s).median_s)
        for name, copy in host_copies(LINK_BYTES).items()
    }


def host_copies(bytes_moved: int, device: str = "cuda") -> dict[str, Callable[[], object]]:
    """Prepare five copies between host and device; the one that goes both ways moves half of the bytes each way.

    The driver copies pageable memory through a pinned buffer of its own, and the host waits for it.
    """
    on_gpu = device == "cuda"
    there = torch.ones(bytes_moved, dtype=torch.int8, device=device)
    copies: dict[str, Callable[[], object]] = {}
    for kind, pinned in (("pinned", on_gpu), ("pageable", False)):
        here = torch.ones(bytes_moved, dtype=torch.int8, pin_memory=pinned)
        copies[f"{kind} to device"] = partial(there.copy_, here, non_blocking=pinned)
        copies[f"{kind} to host"] = partial(here.copy_, there, non_blocking=pinned)
        if kind == "pinned":
            half = bytes_moved // 2
            halves = (there[:half], here[:half], there[half:], here[half:])
            copies["pinned both ways"] = partial(copy_both_ways, *halves) if on_gpu else partial(_swap, *halves)
    return copies


def copy_both_ways(into: torch.Tensor, sent: torch.Tensor, fetched: torch.Tensor, received: torch.Tensor) -> None:
    """Copy `sent` to the device and `fetched` back at the same time, each in a stream of its own.

    The current stream waits for both, so that events in it time both. `sent` and `received` are pinned.
    """
    current, side = torch.cuda.current_stream(), _side_stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        into.copy_(sent, non_blocking=True)
    received.copy_(fetched, non_blocking=True)
    current.wait_stream(side)


@cache
def _side_stream() -> torch.cuda.Stream:
    """Make the second stream, once: making one takes the host longer than a short copy."""
    return torch.cuda.Stream()


def _swap(into: torch.Tensor, sent: torch.Tensor, fetched: torch.Tensor, received: torch.Tensor) -> None:
    """Do the copies of `copy_both_ways` one after the other, on a CPU."""
    into.copy_(sent)
    received.copy_(fetched)


def _rate(bytes_moved: int, seconds: float) -> Quantity:
    return ureg.Quantity(bytes_moved / seconds / 1e9, "GB/s")
