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


def test_every_row_is_measured_and_agrees_with_pytorch(monkeypatch):
    """On the CPU, with small sizes: the same code as on a GPU, where its times mean something."""
    bench = runpy.run_path(str(ROOT / "labs/fusion/bench.py"))
    module = bench["rows"].__globals__
    sizes = {
        "ROWS": 6,
        "COLUMNS": (48,),
        "WIDTH": 48,
        "NUMBERS": 3 * 256,
        "FAST": dict.fromkeys(module["FAST"], (256,)),
    }
    monkeypatch.setitem(module, "compiled", lambda *_: {})
    monkeypatch.setitem(module, "Setting", partial(module["Setting"], device="cpu"))
    for name, size in sizes.items():
        monkeypatch.setitem(module, name, size)
    device = dataclasses.replace(cpu_device(), multiprocessors=2)
    ceilings = Ceilings(device, ureg.Quantity(1000, "GB/s"), {})
    rows = list(bench["rows"](lab_names(ROOT / "labs/fusion/lab.py"), ceilings))
    names = ("softmax", "layernorm", "chain", "bias + GELU", "layernorm backward")
    fast_names = ("softmax", "layernorm", "rmsnorm", "chain", "bias + GELU")
    assert [row.name for row in rows] == [f"fused {name}" for name in names] + [f"fast {name}" for name in fast_names]
    assert {row.shape for row in rows[5:]} == {(3, 256)}
    for row in rows:
        check_row(row, "this test")
        # A peer stays only if its result is the same; PyTorch's backward pass takes no mixed dtypes on a CPU.
        assert ("eager torch" in row.peers) == (row.name != "fused layernorm backward")


def test_softmax_has_sixteen_numbers_per_thread_and_no_small_programs():
    config = runpy.run_path(str(ROOT / "labs/fusion/bench.py"))["softmax_config"]
    assert config(1024) == {"ROWS": 2, "BLOCK": 1024, "num_warps": 4}
    assert config(8192) == {"ROWS": 1, "BLOCK": 8192, "num_warps": 16}
    assert config(5000) == config(8192)
    assert config(3) == {"ROWS": 128, "BLOCK": 16, "num_warps": 4}
    assert config(16384)["num_warps"] == config(30000)["num_warps"] == 32


def test_the_backward_pass_has_two_programs_per_multiprocessor():
    config = runpy.run_path(str(ROOT / "labs/fusion/bench.py"))["backward_config"]
    assert config(4096, 132) == {"PROGRAMS": 264, "BLOCK": 4096, "STAGES": 3, "num_warps": 8}
    assert config(100, 40) == {"PROGRAMS": 80, "BLOCK": 128, "STAGES": 3, "num_warps": 1}
