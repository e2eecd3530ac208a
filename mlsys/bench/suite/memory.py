"""Memory: mixes of reads and writes, caches, strides, and sums of two vectors on GPU and host."""

import math
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import torch

from mlsys.bench.suite.setting import Setting, compiled
from mlsys.grading.checks.assertions import assert_close
from mlsys.measure.clock import cpu_cache_bytes
from mlsys.measure.cpu_ceilings import bandwidths
from mlsys.measure.gpu_ceilings import MIXES, scaled_copy
from mlsys.measure.records import Row
from mlsys.measure.timing import rotate

FP32_BYTES = 4
LONG_ELEMENTS = 2**26
"""Vectors from here on take far longer than a launch, so that eager calls and compiled ones can be compared."""


def copy_bandwidth(setting: Setting) -> Iterator[Row]:
    """Time four mixes of reads and writes over arrays far larger than the L2, all held against the triad."""
    a, b, c = (setting.randn(setting.sizes.copy_bytes // FP32_BYTES) for _ in range(3))
    for mix, (arrays, call) in MIXES.items():
        moved = arrays * a.nbytes
        how = {"call": partial(call, a, b, c), "moved": moved, "mix": setting.ceilings.roof_mix}
        yield setting.bandwidth_row("copy bandwidth", mix, (moved,), "fp32", **how)


def working_set(setting: Setting) -> Iterator[Row]:
    """Time repeated copies of growing size: from what stays in the L2 to what does not.

    All are held against the L2's bandwidth, for a part of a larger set stays there as well.
    """
    for size in setting.sizes.working_sets:
        source = setting.randn(size // 2 // FP32_BYTES)
        how = {"call": partial(scaled_copy, source, torch.empty_like(source)), "moved": size, "mix": "cached copy"}
        yield setting.bandwidth_row("working set", "copy", (size,), "fp32", graph=True, **how)


def stride(setting: Setting) -> Iterator[Row]:
    """Time reads of equally many elements at growing distances; the rate counts only the bytes asked for."""
    if find_spec("triton") is None:
        return
    from mlsys.measure.triton_kernels import STRIDE_BLOCK, strided_sum

    elements = setting.sizes.stride_elements
    x = setting.randn(elements * max(setting.sizes.strides))
    sums = torch.empty(elements // STRIDE_BLOCK, device=setting.device)
    for step in setting.sizes.strides:
        call = partial(strided_sum, x, sums, step)
        call()
        apart = x[: elements * step].view(-1, STRIDE_BLOCK, step)[..., 0]
        assert_close(sums, apart.sum(1, dtype=torch.float64).float(), what=f"sums at stride {step}")
        how = {"call": call, "moved": elements * FP32_BYTES, "mix": "read"}
        yield setting.bandwidth_row("stride", f"stride {step}", (elements, step), "fp32", cold=True, graph=True, **how)


def host_add(setting: Setting) -> Iterator[Row]:
    """Time sums of two vectors on all cores of the host; short ones change with each call, so that none is cached.

    The rate counts three arrays, as on the GPU. A CPU that reads a line before it overwrites it moves a fourth. The
    ceiling is the best of numpy's mixes of reads and writes, each with a slice for every core.
    """
    ceiling = max(rate.m_as("GB/s") for rate in bandwidths(setting.budget_s, setting.sizes.host_array_bytes).values())
    for elements in setting.sizes.host_add_elements:
        moved = 3 * FP32_BYTES * elements
        sets = sets_beyond(moved, cpu_cache_bytes())
        vectors = [tuple(torch.full((elements,), 0.5) for _ in range(3)) for _ in range(sets)]
        call = rotate(lambda a, b, out: torch.add(a, b, out=out), vectors)
        how = {"call": call, "work": moved / 1e9, "ceiling": ceiling, "rate_unit": "GB/s", "on_gpu": False}
        yield setting.row("host add", "torch", (elements,), "fp32", **how)


def sets_beyond(moved: int, cache_bytes: int) -> int:
    """Count the sets of `moved` bytes that together are four times a cache, at least one.

    >>> sets_beyond(moved=12, cache_bytes=30)
    10
    """
    return max(1, math.ceil(4 * cache_bytes / moved))


def vector_add(setting: Setting) -> Iterator[Row]:
    """Time sums of two vectors from memory: short ones change with each call and together are larger than the L2."""
    for elements in setting.sizes.add_elements:
        moved = 3 * FP32_BYTES * elements
        sets = sets_beyond(moved, setting.ceilings.device.cache_bytes)
        vectors = [tuple(setting.randn(elements) for _ in range(3)) for _ in range(sets)]
        a, b, out = vectors[0]
        long = elements >= LONG_ELEMENTS
        others = compiled(lambda a, b: a + b, a, b) if long else {}
        how = {
            "call": rotate(lambda a, b, out: torch.add(a, b, out=out), vectors),
            "peers": setting.peers(partial(torch.add, a, b, out=out), others),
            "moved": moved,
            "mix": setting.ceilings.roof_mix,
        }
        yield setting.bandwidth_row("vector add", "torch", (elements,), "fp32", graph=not long, **how)
