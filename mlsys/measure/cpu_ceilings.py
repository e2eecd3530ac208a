"""Ceilings of a CPU, through numpy and the BLAS library that it brings."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from mlsys.measure.timing import time_kernel
from mlsys.units import Quantity, ureg

ARRAY_BYTES = 2**27
"""Bytes of each array: several times the last-level cache of most processors."""

MATMUL_SIZE = 1024

MIXES: dict[str, tuple[int, Callable[..., Any]]] = {
    "read": (1, lambda a, b, c: np.max(a)),
    "copy": (2, lambda a, b, c: np.copyto(c, a)),
    "add": (3, lambda a, b, c: np.add(a, b, out=c)),
    "fill": (1, lambda a, b, c: c.fill(1)),
}
"""For each mix: how many arrays cross the memory interface, and the call that makes them do so.

A store to a line that is not cached reads the line first on many processors, unless the library writes past the cache;
that read is not counted here, as in the STREAM benchmark (McCalpin, 1995).
"""


def bandwidths(budget_s: float, array_bytes: int | None = None) -> dict[str, Quantity]:
    """Measure bytes read plus written per second; every core has its own slice, for one core does not fill the bus.

    `array_bytes` is the size of each of the three arrays, by default `ARRAY_BYTES`.
    """
    a, b, c = (np.full((array_bytes or ARRAY_BYTES) // 8, value) for value in (1.0, 2.0, 0.0))
    workers = os.cpu_count() or 1
    slices = [slice(i * a.size // workers, (i + 1) * a.size // workers) for i in range(workers)]
    rates = {}
    with ThreadPoolExecutor(workers) as pool:
        for mix, (arrays, call) in MIXES.items():

            def run(call: Callable[..., Any] = call) -> None:
                list(pool.map(lambda part: call(a[part], b[part], c[part]), slices))

            timing = time_kernel(run, on_gpu=False, budget_s=budget_s)
            rates[mix] = ureg.Quantity(arrays * a.nbytes / timing.median_s / 1e9, "GB/s")
    return rates


def matmul_rates(budget_s: float) -> dict[str, Quantity]:
    """Measure the FLOP/s of numpy's matrix product: `2 n^3 / time`."""
    generator = np.random.default_rng(0)
    rates = {}
    for precision, dtype in (("fp32", np.float32), ("fp64", np.float64)):
        a, b = (generator.standard_normal((MATMUL_SIZE, MATMUL_SIZE)).astype(dtype) for _ in range(2))
        out = np.empty_like(a)
        timing = time_kernel(partial(np.matmul, a, b, out=out), on_gpu=False, budget_s=budget_s)
        rates[precision] = ureg.Quantity(2 * MATMUL_SIZE**3 / timing.median_s / 1e12, "TFLOP/s")
    return rates


def call_latency(budget_s: float) -> dict[str, Quantity]:
    """Measure the smallest numpy call; a CPU is done when the call returns, so waiting or not makes no difference."""
    one, out = np.ones(1), np.empty(1)
    timing = time_kernel(lambda: np.add(one, 1, out=out), on_gpu=False, budget_s=budget_s)
    latency = ureg.Quantity(timing.median_s * 1e6, "us")
    return {"back to back": latency, "launch and wait": latency}
