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
SHAPES = [(64, 80, 256), (48, 128, 144)]
WEIGHTS = [(80, 256)]
BATCHES = (1, 16, 32)


def small(monkeypatch):
    """The benchmark on the CPU, in float16, with small shapes: the same code as on a GPU."""
    bench = runpy.run_path(str(ROOT / "labs/precision/bench.py"))
    module = bench["rows"].__globals__
    device = dataclasses.replace(
        cpu_device(), kind="gpu", capability=(9, 0), multiprocessors=2, shared_bytes=227 * 1024
    )
    monkeypatch.setitem(module, "SHAPES", SHAPES)
    monkeypatch.setitem(module, "WEIGHTS", WEIGHTS)
    monkeypatch.setitem(module, "BATCHES", BATCHES)
    monkeypatch.setitem(module, "ALL_BYTES", 2**15)
    monkeypatch.setitem(module, "detect_device", lambda: device)
    monkeypatch.setattr(torch, "bfloat16", torch.float16)  # which the interpreter gets wrong
    one = bench["Product"].__init__
    monkeypatch.setattr(bench["Product"], "__init__", lambda case, shape, dtype: one(case, shape, dtype, "cpu"))
    other = bench["Weights"].__init__
    monkeypatch.setattr(
        bench["Weights"], "__init__", lambda case, batch, n, k: other(case, batch, n, k, "cpu", torch.float16)
    )
    fast = bench["fast_module"]()
    monkeypatch.setattr(fast, "PRODUCT_PLANS", {fast.Plan(64, 64, 4, 3): 0.5, fast.Plan(64, 64, 4, 3, True): 1.0})
    monkeypatch.setattr(
        bench["Product"],
        "library",
        lambda case, *, fast_sums: lambda: (case.a.float() @ case.b.float().T).half(),  # torch has none for every CPU
    )
    return bench, module, device


def test_every_row_is_measured_and_is_right(monkeypatch):
    bench, module, device = small(monkeypatch)
    row_module = module["row"].__globals__
    monkeypatch.setitem(row_module, "time_kernel", lambda call, **_: (call(), Timing.of([1e-5]))[1])
    monkeypatch.setitem(row_module, "time_pair", lambda one, other, **_: (one(), other(), Pair(1e-5, 1e-5, 1, 1, 1))[2])
    roofs = {name: ureg.Quantity(1000, "TFLOP/s") for name in ("bf16", "fp8", "int8")}
    ceilings = Ceilings(device, ureg.Quantity(1000, "GB/s"), roofs, {"read": ureg.Quantity(1000, "GB/s")})
    rows = list(bench["rows"](lab_names(ROOT / "labs/precision/lab.py"), ceilings))
    names = ["fast fp8 product"] * 4 + ["fast int8 product"] * 4 + ["int4 bytes"] + ["fast int4 weights"] * 3
    assert [row.name for row in rows] == names
    for row in rows:
        check_row(row, "this test")
    assert [set(row.peers) for row in rows[:8]] == [{"torch._scaled_mm"}] * 4 + [{"torch._int_mm"}] * 4
    assert [row.rate_unit for row in rows[8:]] == ["GB/s", "GB/s", "GB/s", "TFLOP/s"]
    # 80 x 256 weights of 4 bits with two scales a row are read.
    assert rows[8].achieved * rows[8].median_s == pytest.approx((80 * 128 + 80 * 4) / 1e9)
    # Batch 16: 16 x 256 activations, 80 x 256 weights of 4 bits with two scales a row, 16 x 80 results.
    assert rows[10].achieved * rows[10].median_s == pytest.approx((16 * 512 + 80 * 128 + 80 * 4 + 16 * 160) / 1e9)
    assert rows[0].achieved * rows[0].median_s == pytest.approx(2 * 64 * 80 * 256 / 1e12)
    fp8, plain, int8, int4 = (rows[place].error for place in (0, 4, 5, 9))
    assert plain is None
    assert 0.003 < int8 < fp8 < int4 < 0.13


def test_a_wrong_result_is_not_timed(monkeypatch):
    bench, _, device = small(monkeypatch)
    plan = bench["fast_module"]().Plan(64, 64, 4, 3)
    for dtype in (torch.int8, torch.float8_e4m3fn):
        case = bench["Product"](SHAPES[0], dtype)
        good = case.ours(plan, scaled=True, precise=True, device=device)()
        case.check(good, scaled=True, precise=True, what="ours")
        for wrong in (good * 1.05, good.clone().fill_(float("nan")), good.roll(1, 1)):
            with pytest.raises(ArithmeticError, match="a wrong result"):
                case.check(wrong, scaled=True, precise=True, what="a wrong result")
    case = bench["Product"](SHAPES[0], torch.int8)
    exact = case.ours(plan, scaled=False, precise=False, device=device)()
    case.check(exact, scaled=False, precise=True, what="ours")
    exact[3, 4] += 1
    with pytest.raises(ArithmeticError, match="off by one"):
        case.check(exact, scaled=False, precise=True, what="off by one")
    weights = bench["Weights"](5, 80, 256)
    good = weights.x @ weights.packed.whole().T
    weights.check(good, "the library's")
    for wrong in (good * 1.05, good.clone().fill_(float("nan")), good.roll(1, 1)):
        with pytest.raises(ArithmeticError, match="a wrong result"):
            weights.check(wrong, "a wrong result")


def test_reading_covers_all_words_and_scales(monkeypatch):
    """The last ones too, where the last program's block ends beyond them."""
    bench, _, _ = small(monkeypatch)
    weights = bench["Weights"](1, 336, 512)
    weights.copies = 1
    call = weights.reading()
    weights.check_reading(call())
    for part in (weights.packed.words, weights.packed.scales):
        numbers = part.view(torch.int32).view(-1)
        for place in (0, -1):
            before, numbers[place] = int(numbers[place]), 2**31 - 1
            assert int(call().max()) == 2**31 - 1
            numbers[place] = before
    with pytest.raises(ArithmeticError, match="reading"):
        weights.check_reading(call() * 0)


def test_copies_of_the_weights_take_turns(monkeypatch):
    bench, _, _ = small(monkeypatch)
    weights = bench["Weights"](3, 80, 256)
    assert weights.copies == len(weights.packed_copies) == round(2**15 / (80 * 132))
    assert len({one.words.data_ptr() for one in weights.packed_copies}) == weights.copies
    call = weights.ours(bench["fast_module"]().Int4Plan(16, 64, 4, 3, 1))
    first = call().clone()
    assert all(torch.equal(call(), first) for _ in range(weights.copies))


def test_the_table_of_plans_is_printed(monkeypatch, capsys, tmp_path):
    bench, module, _ = small(monkeypatch)

    def timed(call, *_, **__):
        call()
        return SimpleNamespace(median_s=1e-5, ratio=1.0)

    monkeypatch.setitem(module, "time_kernel", timed)
    monkeypatch.setitem(module, "time_pair", timed)
    monkeypatch.setitem(module, "BATCHES", (1, 32))
    fast = bench["fast_module"]()
    monkeypatch.setattr(fast, "int4_candidates", lambda m, n, k, device: [fast.int4_plan(m, n, k, device)])
    monkeypatch.setattr(sys, "argv", ["bench.py", "--json", str(tmp_path / "times.json")])
    bench["main"]()
    shown = capsys.readouterr().out
    assert shown.count("| rule ") == 2 * len(SHAPES) + 2
    assert "not run" not in shown
    assert "fp8: 1.000, at least 0.98 wanted: reached" in shown
    assert "int4 at batch 1 to 16: 1.000, at least 3.2 wanted: missed" in shown
    assert (tmp_path / "times.json").read_text().count('"us"') == 2 * len(SHAPES) + 2
