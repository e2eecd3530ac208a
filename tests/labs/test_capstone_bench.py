import dataclasses
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from mlsys.grading import use_device
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import cpu_device
from mlsys.measure.records import check_row
from mlsys.measure.timing import Pair, Timing
from mlsys.models.decoder import random_decoder
from mlsys.units import ureg

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]


def small(monkeypatch):
    """The benchmark on the CPU, in float16, with a small model: the same code as on a GPU."""
    use_device()
    bench = runpy.run_path(str(ROOT / "labs/capstone/bench.py"))
    module = bench["rows"].__globals__
    device = dataclasses.replace(cpu_device(), kind="gpu", capability=(9, 0), multiprocessors=2)
    given = random_decoder(layers=2, width=48, heads=3, vocabulary=45, positions=16)
    larger = {name: (5 * part if name.endswith("weight") else part).half() for name, part in given.tensors.items()}
    few = bench["fast_module"]().Plan(
        qkv=64, project=32, up=64, down=32, head=32, splits=2, keys=8, persistent_head=16
    )  # fmt: skip
    monkeypatch.setitem(module, "random_gpt2", lambda *_, **__: SimpleNamespace(to=lambda _: type(given)(3, **larger)))
    monkeypatch.setitem(module, "detect_device", lambda: device)
    monkeypatch.setitem(module, "BARRIERS", 3)
    monkeypatch.setattr(torch, "compile", lambda step, **_: step)
    init = bench["Case"].__init__
    monkeypatch.setattr(
        bench["Case"], "__init__", lambda case, plan=None, model=None: init(case, few, model=model, tokens=12)
    )
    return bench, module, device


def ceilings(device):
    latencies = {"graph": ureg.Quantity(1e-6, "second")}
    return Ceilings(device, ureg.Quantity(1000, "GB/s"), {}, launch_latency=latencies)


def test_every_row_is_measured_and_is_right(monkeypatch):
    bench, module, device = small(monkeypatch)
    row_module = module["row"].__globals__
    found = {}
    monkeypatch.setitem(row_module, "time_kernel", lambda call, **_: (call(), Timing.of([1e-3]))[1])

    def pair(one, other, **_):
        found[len(found)] = one(), other()
        return Pair(1e-3, 1e-3, 1, 1, 1)

    monkeypatch.setitem(row_module, "time_pair", pair)
    rows = list(bench["rows"]({}, ceilings(device)))
    assert [(row.name, row.variant) for row in rows] == [
        (bench["NAME"], bench["FUSED"]), (bench["NAME"], bench["PERSISTENT"]),
        (bench["BY_HOST"], bench["EAGER"]), (bench["BY_HOST"], bench["FUSED"]),
        (bench["WEIGHTLESS"], bench["FUSED"]), (bench["WEIGHTLESS"], bench["PERSISTENT"]),
        ("grid barrier", "1 programs"),
    ]  # fmt: skip
    for row in rows:
        check_row(row, "this test")
    assert set(rows[0].peers) == {"eager", "torch.compile"}
    assert rows[0].shape == (2, 48, 45, 12)
    assert len({int(other) for _, other in found.values()}) == 1  # all peers find the same token


def test_the_library_finds_the_token_of_the_kernels(monkeypatch):
    bench, _, _ = small(monkeypatch)
    case = bench["Case"]()
    theirs = int(case.eager())
    for call in case.ours.values():
        case.decoder.best.zero_()
        call()
        assert case.decoder.next_token() == theirs


def test_a_wrong_score_is_not_timed(monkeypatch):
    bench, _, _ = small(monkeypatch)
    case = bench["Case"]()
    case.check()
    case.decoder.folded_up[1].add_(0.1)
    with pytest.raises(ArithmeticError, match="five kernels a layer: a score is off by"):
        case.check()


def test_bytes_are_those_of_gpt2(monkeypatch):
    bench, _, device = small(monkeypatch)
    case = SimpleNamespace(tokens=512)
    moved = bench["Case"].moved.fget(case)
    assert moved == 2 * 124_439_808 + 2 * 12 * 512 * 768 * 2
    seconds = bench["predicted"](SimpleNamespace(moved=moved), ceilings(device), weightless_s=62e-6)
    assert seconds == pytest.approx(moved / 1e12 + 62e-6)


def test_the_times_are_printed_beside_their_predictions(monkeypatch, capsys):
    bench, module, device = small(monkeypatch)
    monkeypatch.setitem(module, "measure_ceilings", lambda: ceilings(device))
    monkeypatch.setitem(module, "time_kernel", lambda call, **_: (call(), SimpleNamespace(median_s=1e-4))[1])
    monkeypatch.setitem(module, "plans", lambda fast: [(fast.Plan(), (bench["FUSED"], bench["PERSISTENT"]))])
    monkeypatch.setattr(sys, "argv", ["bench.py", "--plans"])
    bench["main"]()
    shown = capsys.readouterr().out
    assert shown.count("predicted") == 2
    assert "persistent kernel: 100.0 us" in shown
    assert "torch.compile in a graph: 100.0 us" in shown
    assert "Plan(" in shown
