import dataclasses
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from mlsys.bench.run import lab_names
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import cpu_device
from mlsys.measure.records import check_row
from mlsys.measure.timing import Pair, Timing
from mlsys.units import ureg

pytestmark = pytest.mark.proof


ROOT = Path(__file__).parents[2]
SMALL = [(1, 3, 12, 12, 64, 7, 7, 2, 3), (1, 64, 6, 6, 64, 3, 3, 1, 1), (2, 64, 5, 3, 64, 1, 1)]


def small(monkeypatch):
    """The benchmark on the CPU, in float16, with small layers: the same code as on a GPU."""
    bench = runpy.run_path(str(ROOT / "labs/convolution/bench.py"))
    module = bench["rows"].__globals__
    fast = bench["fast_module"]()
    device = dataclasses.replace(cpu_device(), capability=(9, 0), multiprocessors=2, shared_bytes=200 * 1024)
    monkeypatch.setitem(module, "resnet_layers", lambda: [fast.Layer(*sizes) for sizes in SMALL])
    monkeypatch.setitem(module, "detect_device", lambda: device)
    init = bench["Case"].__init__
    monkeypatch.setattr(bench["Case"], "__init__", lambda case, layer: init(case, layer, "cpu", torch.float16))
    return bench, module, device


def test_every_row_is_measured_and_is_right(monkeypatch):
    bench, module, device = small(monkeypatch)
    row_module = module["row"].__globals__
    monkeypatch.setitem(row_module, "time_kernel", lambda call, **_: (call(), Timing.of([1e-5]))[1])
    monkeypatch.setitem(row_module, "time_pair", lambda one, other, **_: (one(), other(), Pair(1e-5, 1e-5, 1, 1, 1))[2])
    ceilings = Ceilings(device, ureg.Quantity(1000, "GB/s"), {"bf16": ureg.Quantity(1000, "TFLOP/s")})
    rows = list(bench["rows"](lab_names(ROOT / "labs/convolution/lab.py"), ceilings))
    names = ["fast convolution", "fast convolution + bias + ReLU"]
    assert [row.name for row in rows] == names * len(SMALL)
    for row in rows:
        check_row(row, "this test")
        assert set(row.peers) == {"cuDNN", "cuDNN channels first"}


def test_a_wrong_result_is_not_timed(monkeypatch):
    bench, module, _ = small(monkeypatch)
    case = bench["Case"](module["resnet_layers"]()[1])
    good = case.library(torch.channels_last, fused=False)()
    case.check(good, fused=False, what="the library's")
    for wrong in (good * 1.05, good.clone().fill_(float("nan")), good.roll(1, 2)):
        with pytest.raises(ArithmeticError, match="a wrong result"):
            case.check(wrong, fused=False, what="a wrong result")


def test_the_table_of_plans_is_printed(monkeypatch, capsys, tmp_path):
    bench, module, _ = small(monkeypatch)

    class Pool:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def map(self, *_, **__):
            return None

    def timed(call, *_, **__):
        call()
        return SimpleNamespace(median_s=1e-5, ratio=1.0)

    monkeypatch.setitem(
        module, "multiprocessing", SimpleNamespace(get_context=lambda _: SimpleNamespace(Pool=lambda _: Pool()))
    )
    monkeypatch.setitem(module, "time_kernel", timed)
    monkeypatch.setitem(module, "time_pair", timed)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bench.py", "--json", str(tmp_path / "times.json")])
    bench["main"]()
    shown = capsys.readouterr().out
    assert shown.count("| rule ") == len(SMALL)
    assert "geometric means" in shown
    assert (tmp_path / "times.json").read_text().count('"layer"') == len(SMALL)
