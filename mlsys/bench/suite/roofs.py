"""Measured roofs: what the memory, the tensor cores and the vector units do when nothing else limits the work."""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import torch

from mlsys.bench.suite.setting import Setting
from mlsys.measure.records import Row
from mlsys.measure.roofs import FMA, TRIAD, roof, roofs_of

NAME = "independent roofs"
FUNCTIONS = ("exp2", "rsqrt")


def independent_roofs(setting: Setting) -> Iterator[Row]:
    """Measure each roof with a kernel that no chapter draws under it; its ceiling is the same roof, measured before."""
    if find_spec("triton") is None:
        return
    device = setting.ceilings.device
    for name in roofs_of(device):
        work = roof(name, device, setting.sizes.roofs)
        ceiling = setting.ceilings.memory_roof if name == TRIAD else setting.ceilings.product_roof(work.dtype)
        how = {"call": work.call, "work": work.work, "ceiling": ceiling.m_as(work.rate_unit)}
        yield setting.row(NAME, name, work.shape, work.dtype, rate_unit=work.rate_unit, **how)


def special_functions(setting: Setting) -> Iterator[Row]:
    """Time chains of special functions in registers beside the chains of multiply-adds, as many and as long.

    Time is all there is here: a step of a chain is one value of the function.
    """
    if find_spec("triton") is None:
        return
    from mlsys.measure.triton_kernels import special

    multiply_adds = roof(FMA, setting.ceilings.device, setting.sizes.roofs)
    chains, steps = multiply_adds.shape
    out = torch.empty(chains, device=setting.device)
    calls = {name: partial(special, out, name, steps) for name in FUNCTIONS} | {"fma": multiply_adds.call}
    for variant, call in calls.items():
        yield setting.row("special functions", variant, multiply_adds.shape, "fp32", call=call)
