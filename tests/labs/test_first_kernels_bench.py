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
    ("first shift and scale", {"two passes", "eager torch"}),
    ("first sum", {"one step", "atomics", "torch"}),
    ("first histogram", {"own counts"}),
    ("first histogram", {"own counts"}),
]


def test_every_row_is_measured_and_agrees_with_its_peers(monkeypatch):
    """On the CPU, with small sizes: the same code as on a GPU, where its times mean something."""
    bench = runpy.run_path(str(ROOT / "labs/first-kernels/bench.py"))
    module = bench["rows"].__globals__
    sizes = {"ROWS": 6, "COLUMNS": (48,), "ADDED": 9000, "COUNTED": 3000, "BINS": 16}
    monkeypatch.setitem(module, "compiled", lambda *_: {})
    monkeypatch.setitem(module, "Setting", partial(module["Setting"], device="cpu"))
    for name, size in sizes.items():
        monkeypatch.setitem(module, name, size)
    device = dataclasses.replace(cpu_device(), multiprocessors=1)
    ceilings = Ceilings(device, ureg.Quantity(1000, "GB/s"), {}, bandwidths={"read": ureg.Quantity(1000, "GB/s")})
    rows = list(bench["rows"](lab_names(ROOT / "labs/first-kernels/lab.py"), ceilings))
    assert [(row.name, set(row.peers)) for row in rows] == DUE
    for row in rows:
        check_row(row, "this test")
