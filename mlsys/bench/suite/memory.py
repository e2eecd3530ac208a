"""Memory: mixes of reads and writes, caches, strides, the link to the host, and the sum of two vectors."""

import math
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import torch

from mlsys.bench.suite.setting import Setting, compiled
from mlsys.grading.checks.assertions import assert_close
from mlsys.measure.gpu_ceilings import MIXES, host_copies, scaled_copy
from mlsys.measure.records import Row
from mlsys.measure.timing import rotate

FP32_BYTES = 4
LONG_ELEMENTS = 2**26
"""Vectors from here on take far longer than a launch, so that eager calls and compiled ones can be compared."""


def copy_bandwidth(setting: Setting) -> Iterator[Row]:
    """Four mixes of reads and writes over arrays far larger than the L2."""
    a, b, c = (setting.randn(setting.sizes.copy_bytes // FP32_BYTES) for _ in range(3))
    for mix, (arrays, call) in MIXES.items():
        moved = arrays * a.nbytes
        how = {"call": partial(call, a, b, c), "moved": moved, "mix": mix}
        yield setting.bandwidth_row("copy bandwidth", mix, (moved,), "fp32", **how)


def working_set(setting: Setting) -> Iterator[Row]:
    """Copies of growing size, again and again: from what stays in the L2 to what does not.

    All are held against the L2's bandwidth, for a part of a larger set stays there as well.
    """
    for size in setting.sizes.working_sets:
        source = setting.randn(size // 2 // FP32_BYTES)
        how = {"call": partial(scaled_copy, source, torch.empty_like(source)), "moved": size, "mix": "cached copy"}
        yield setting.bandwidth_row("working set", "copy", (size,), "fp32", graph=True, **how)


def stride(setting: Setting) -> Iterator[Row]:
    """Reads of the same number of elements, ever farther apart; the rate counts only the bytes that were asked for."""
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


def host_link(setting: Setting) -> Iterator[Row]:
    """Transfers of growing size between host and device, both ways, held against large ones of pinned memory."""
    for size in setting.sizes.link_bytes:
        for variant, copy in host_copies(size, setting.device).items():
            way = variant.removeprefix("pinned ").removeprefix("pageable ")
            ceiling = setting.ceilings.host_link[f"pinned {way}"].m_as("GB/s")
            how = {"call": copy, "work": size / 1e9, "ceiling": ceiling, "rate_unit": "GB/s"}
            yield setting.row("host link", variant, (size,), "int8", **how)


def vector_add(setting: Setting) -> Iterator[Row]:
    """Sums of two vectors that come from memory: short ones change from call to call, together larger than the L2."""
    for elements in setting.sizes.add_elements:
        moved = 3 * FP32_BYTES * elements
        sets = max(1, math.ceil(4 * setting.ceilings.device.cache_bytes / moved))
        vectors = [tuple(setting.randn(elements) for _ in range(3)) for _ in range(sets)]
        a, b, out = vectors[0]
        long = elements >= LONG_ELEMENTS
        others = compiled(lambda a, b: a + b, a, b) if long else {}
        how = {
            "call": rotate(lambda a, b, out: torch.add(a, b, out=out), vectors),
            "peers": setting.peers(partial(torch.add, a, b, out=out), others),
            "moved": moved,
            "mix": "add",
        }
        yield setting.bandwidth_row("vector add", "torch", (elements,), "fp32", graph=not long, **how)
