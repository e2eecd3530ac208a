"""Measured roofs: what the memory, the tensor cores and the vector units do when nothing else limits the work."""

from collections.abc import Iterator
from importlib.util import find_spec

from mlsys.bench.suite.setting import Setting
from mlsys.measure.records import Row
from mlsys.measure.roofs import TRIAD, roof, roofs_of

NAME = "independent roofs"


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
