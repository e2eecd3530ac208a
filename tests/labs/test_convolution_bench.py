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
    monkeypatch.setattr(fast, "detect_device", lambda: device)
    monkeypatch.setattr(fast, "check_device", lambda device, dtype: None)
    monkeypatch.setitem(module, "ROUTES_LAYER", (2, 64, 5, 6, 72, 3, 3, 1, 1))
    monkeypatch.setitem(module, "DEPTHWISE_LAYER", (1, 16, 5, 6, 16, 3, 3, 1, 1, 16))
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
    extra = ["convolution routes"] * 4 + ["depthwise convolution", "fast convolution, host"]
    assert [row.name for row in rows] == names * len(SMALL) + extra
    for row in rows:
        check_row(row, "this test")
    for row in rows[: -len(extra)]:  # without cuDNN there is no kernel that also adds a bias
        assert set(row.peers) == {"cuDNN", "cuDNN channels first"}
    work = {(row.name, row.variant): row.achieved * row.median_s for row in rows if row.achieved is not None}
    pixels = 2 * 5 * 6
    product = 2 * pixels * 72 * 9 * 64 / 1e12
    routes = "convolution routes"
    assert work[routes, "one kernel"] == pytest.approx(product)
    assert work[routes, "product with the copy"] == pytest.approx(product)
    assert work[routes, "copy of the windows"] == pytest.approx(2 * pixels * 64 * (1 + 9) / 1e9)
    assert work["depthwise convolution", "cuDNN"] == pytest.approx(2 * 16 * (30 + 9 + 30) / 1e9)


def test_the_copy_of_the_windows_is_what_torch_unfolds(monkeypatch):
    bench = small(monkeypatch)[0]
    for sizes in ((2, 8, 5, 6, 4, 3, 2, 1, 1), (1, 16, 7, 7, 4, 3, 3, 2, 0)):
        layer = bench["fast_module"]().Layer(*sizes)
        case = bench["Case"](layer)
        view, windows = bench["window_copy"](case)
        found = windows.copy_(view).view(torch.float16).view(layer.n, layer.p * layer.q, layer.r * layer.s, layer.c)
        right = torch.nn.functional.unfold(
            case.x.float(), (layer.r, layer.s), padding=layer.padding, stride=layer.stride
        ).view(layer.n, layer.c, layer.r * layer.s, layer.p * layer.q)
        assert torch.equal(found.float(), right.permute(0, 3, 2, 1))


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
