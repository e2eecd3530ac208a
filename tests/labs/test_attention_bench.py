import dataclasses
import runpy
import sys
from pathlib import Path

import pytest
import torch
from helpers.reductions import interpret_reductions
from torch.nn.attention import SDPBackend

from mlsys.bench.run import lab_names
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import cpu_device
from mlsys.measure.records import check_row
from mlsys.measure.timing import Pair, Timing
from mlsys.units import ureg

pytestmark = pytest.mark.proof


ROOT = Path(__file__).parents[2]
SMALL = [(1, 2, 1, 40, 40, 16, True), (2, 2, 2, 37, 37, 24, False)]


def small(monkeypatch):
    """The benchmark on the CPU, in float16, with small sizes and blocks: the same code as on a GPU."""
    bench = runpy.run_path(str(ROOT / "labs/attention/bench.py"))
    module = bench["rows"].__globals__
    fast, ladder = bench["fast_module"](), bench["harness_module"]()
    device = dataclasses.replace(cpu_device(), capability=(9, 0), multiprocessors=2, shared_bytes=200 * 1024)
    plans = {128: (fast.Plan(16, 32, 4, 2), fast.Plan(16, 16, 4, 2))}
    interpret_reductions()
    for name in ("PLANS", "BACKWARD_PLANS"):
        monkeypatch.setattr(fast, name, plans)
    monkeypatch.setitem(module, "detect_device", lambda: device)
    monkeypatch.setitem(module, "cases", lambda: [fast.Sizes(*sizes) for sizes in SMALL])
    monkeypatch.setitem(module, "BACKWARD_LENGTHS", (40,))
    monkeypatch.setitem(module, "PEERS", {"torch": SDPBackend.MATH})
    monkeypatch.setattr(ladder, "SHAPE", (1, 40, 16))
    monkeypatch.setattr(ladder, "small_shapes", lambda: [(1, 20, 16)])
    init = bench["Case"].__init__
    monkeypatch.setattr(bench["Case"], "__init__", lambda case, sizes: init(case, sizes, "cpu", torch.float16))
    return bench, module, device


def test_every_row_is_measured_and_is_right(monkeypatch):
    bench, module, device = small(monkeypatch)
    row_module = module["row"].__globals__
    monkeypatch.setitem(row_module, "time_kernel", lambda call, **_: (call(), Timing.of([1e-5]))[1])
    monkeypatch.setitem(row_module, "time_pair", lambda one, other, **_: (one(), other(), Pair(1e-5, 1e-5, 1, 1, 1))[2])
    rates = {name: ureg.Quantity(1000, "TFLOP/s") for name in ("bf16", "fp16")}
    ceilings = Ceilings(device, ureg.Quantity(1000, "GB/s"), rates)
    rows = list(bench["rows"](lab_names(ROOT / "labs/attention/lab.py"), ceilings))
    ladder = bench["harness_module"]()
    names = ["fast attention, causal", "fast attention backward, causal", "fast attention"]
    assert [row.name for row in rows] == names + ["attention ladder"] * len(ladder.rungs())
    assert [row.variant for row in rows[3:]] == [ladder.title(rung) for rung in ladder.rungs()]
    for row in rows:
        check_row(row, "this test")
        assert set(row.peers) == {"torch"}
    work = [row.achieved * row.median_s * 1e12 for row in rows[:4]]
    pairs = 40 * 41 // 2
    assert work == pytest.approx([4 * 2 * pairs * 16, 10 * 2 * pairs * 16, 4 * 4 * 37 * 37 * 24, 4 * pairs * 16])


def test_a_device_without_the_copy_engine_climbs_the_first_rungs_only(monkeypatch):
    bench, module, device = small(monkeypatch)
    monkeypatch.setitem(module, "row", lambda *given, **_: given)
    older = dataclasses.replace(device, capability=(8, 0))
    rates = {"fp16": ureg.Quantity(1000, "TFLOP/s")}
    found = list(bench["rows"]({}, Ceilings(older, ureg.Quantity(1000, "GB/s"), rates)))
    ladder = bench["harness_module"]()
    assert [variant for _, _, variant, *_ in found] == [ladder.title(rung) for rung in ladder.rungs()[:5]]


def test_a_rung_that_fails_does_not_end_the_others(monkeypatch):
    bench, module, device = small(monkeypatch)
    ladder = bench["harness_module"]()
    monkeypatch.setitem(module, "row", lambda *given, **_: given)
    monkeypatch.setattr(ladder.load("02_online_softmax"), "attend", lambda q, k, v, out: None)
    found = []
    ceilings = Ceilings(device, ureg.Quantity(1000, "GB/s"), {"fp16": ureg.Quantity(1000, "TFLOP/s")})
    with pytest.raises(ExceptionGroup) as failed:
        found.extend(bench["ladder_rows"](ceilings))
    assert failed.value.exceptions[0].__notes__ == ["in rung 02_online_softmax"]
    assert len(list(ladder.rungs())) == 6


def test_a_wrong_result_is_not_timed(monkeypatch):
    bench, module, _ = small(monkeypatch)
    case = bench["Case"](module["cases"]()[0])
    good = case.library(SDPBackend.MATH)()
    gradients = case.library_gradients(SDPBackend.MATH)()
    case.check([good, *gradients], "the library's")
    for wrong in (good * 1.05, good.clone().fill_(float("nan")), good.roll(1, 2)):
        with pytest.raises(ArithmeticError, match="a wrong result"):
            case.check([wrong], "a wrong result")
    for place in range(3):
        changed = [gradient * (1.05 if place == number else 1) for number, gradient in enumerate(gradients)]
        with pytest.raises(ArithmeticError, match="wrong gradients"):
            case.check([good, *changed], "wrong gradients")


def test_a_peer_that_torch_does_not_have_is_left_out_with_a_reason(monkeypatch, capsys):
    bench, module, _ = small(monkeypatch)
    monkeypatch.setitem(module, "PEERS", {"cuDNN": SDPBackend.CUDNN_ATTENTION, "torch": SDPBackend.MATH})
    case = bench["Case"](module["cases"]()[0])
    assert set(case.peers(case.library)) == {"torch"}
    assert "without cuDNN" in capsys.readouterr().out


def test_the_cases_are_the_lengths_and_heads_that_are_compared():
    bench = runpy.run_path(str(ROOT / "labs/attention/bench.py"))
    found = bench["cases"]()
    assert {(one.n, one.d, one.causal) for one in found} == {
        (n, d, causal) for n in (1000, 2048, 4096, 16_384) for d in (64, 128) for causal in (False, True)
    }
    assert [one for one in found if one.kv_heads < one.heads]


def test_the_table_of_plans_is_printed(monkeypatch, capsys):
    bench, module, _ = small(monkeypatch)
    monkeypatch.setitem(module, "TOKENS", 40)
    monkeypatch.setitem(module, "WIDTH", 48)
    monkeypatch.setitem(module, "HEAD_SIZES", (24,))
    monkeypatch.setitem(module, "time_kernel", lambda call, **_: (call(), Timing.of([1e-5]))[1])
    monkeypatch.setattr(sys, "argv", ["bench.py", "--tokens", "40"])
    bench["main"]()
    shown = capsys.readouterr().out
    assert shown.count("forward ") == 2 * 2
    assert shown.count("backward ") == 2 * 2
    assert shown.count(" *: ") == 4
