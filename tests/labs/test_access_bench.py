import dataclasses
import runpy
from functools import partial
from pathlib import Path

import pytest

from mlsys.bench.run import lab_names
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import cpu_device
from mlsys.measure.records import check_row
from mlsys.units import ureg

pytestmark = pytest.mark.proof


ROOT = Path(__file__).parents[2]
DUE = [
    *[("access transpose", {"naive", "torch", "copy"})] * 2,
    *[("access channel sum", {"torch"})] * 4,
    ("access embedding", {"torch"}),
]


def test_every_row_is_measured_and_agrees_with_its_peers(monkeypatch):
    """On the CPU, with small sizes: the same code as on a GPU, where its times mean something."""
    bench = runpy.run_path(str(ROOT / "labs/access/bench.py"))
    module = bench["rows"].__globals__
    sizes = {"SHAPES": ((70, 50),), "IMAGES": 2, "PIXELS": 30, "CHANNELS": 20, "BAGS": 3, "BAG_SIZE": 4, "DIMS": (16,)}
    monkeypatch.setitem(module, "Setting", partial(module["Setting"], device="cpu"))
    for name, size in (sizes | {"TABLE_BYTES": 2**12}).items():
        monkeypatch.setitem(module, name, size)
    padded = module["AccessBench"].padded_transpose
    monkeypatch.setattr(module["AccessBench"], "padded_transpose", lambda self, _: padded(self, (51, 33)))
    device = dataclasses.replace(cpu_device(), multiprocessors=1)
    ceilings = Ceilings(device, ureg.Quantity(1000, "GB/s"), {}, bandwidths={"read": ureg.Quantity(1000, "GB/s")})
    rows = list(bench["rows"](lab_names(ROOT / "labs/access/lab.py"), ceilings))
    assert [(row.name, set(row.peers)) for row in rows] == DUE
    for row in rows:
        check_row(row, "this test")
