import runpy
from pathlib import Path

import pytest

from mlsys.bench.run import lab_names
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import cpu_device
from mlsys.measure.records import check_row
from mlsys.units import ureg

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
SMALL = {
    "ELEMENTS": 2**16,
    "WIDTH": 64,
    "SIDES": {"small product": 8, "large product": 256},
    "BAGS": 16,
    "BAG_SIZE": 4,
    "DIM": 8,
    "TABLE_ROWS": 64,
    "RACES": [(4, 40, 2)],
}


def test_every_row_is_held_against_a_roof_that_no_library_set(monkeypatch):
    """On the CPU, with small sizes: the same code as on a GPU, where its times mean something."""
    bench = runpy.run_path(str(ROOT / "labs/roofline/bench.py"))
    module = bench["rows"].__globals__
    monkeypatch.setitem(module, "compiled", lambda *_: {})
    monkeypatch.setitem(module, "ADDED", 2**12)
    names = lab_names(ROOT / "labs/roofline/lab.py")
    names.update(SMALL)
    slow, triad, chain = ureg.Quantity(1, "GB/s"), ureg.Quantity(1e5, "GB/s"), ureg.Quantity(1e3, "TFLOP/s")
    library = {"fp32": ureg.Quantity(1, "GFLOP/s")}
    ceilings = Ceilings(cpu_device(), slow, library, {"add": slow, "read": slow, "triad": triad}, {"fp32": chain})
    rows = list(bench["rows"](names, ceilings))
    assert {row.name for row in rows} == {"roofline add", "roofline sweep", "roofline operations"}
    for row in rows:
        check_row(row, "this test")
        flat = 2 * row.shape[-1] + 1 if row.name == "roofline sweep" else None
        if flat is None:
            assert row.ceiling == pytest.approx(1e5 if row.rate_unit == "GB/s" else 1e3)
        else:  # a row of 40 numbers of 4 bytes is read, its sum written, and the coefficients once for all 4 rows
            moved = 4 * (4 * 40 + 4 + row.shape[-1])
            assert row.ceiling == pytest.approx(min(1e3, 1e2 * 4 * 40 * flat / moved))
