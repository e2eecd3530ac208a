"""The page about the compiler: its examples run, and its new operation is right."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from mlsys.compiler import compile, import_torch, rules
from mlsys.measure.device import torch_sees_gpu

PAGE = (Path(__file__).parents[2] / "docs" / "compiler.md").read_text(encoding="utf-8")
FIRST, MISH, PASS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
DEVICE = "cuda" if torch_sees_gpu() else "cpu"


@pytest.mark.skipif(DEVICE == "cuda", reason="the examples use the interpreter, and other tests of the process do not")
def test_the_examples_run_and_the_pass_drops_what_it_says(capsys):
    names = {}
    exec(FIRST, names)
    torch.testing.assert_close(names["y"], nn.functional.layer_norm(names["x"], (40,)))
    assert "--- lower" in capsys.readouterr().out
    exec(PASS, names)
    assert names["compiled"].stages["import"].count("Relu(") == 2
    assert names["compiled"].stages["optimize"].count("Relu(") == 1


def test_the_operation_of_the_page_is_right(monkeypatch):
    monkeypatch.setitem(rules.RULES, "Mish", eval(f"{{{MISH}}}", vars(rules))["Mish"])
    monkeypatch.setitem(import_torch.ELEMENTWISE, "mish", "Mish")
    x = torch.randn(5, 7)
    torch.testing.assert_close(compile(nn.Mish(), [x], DEVICE)(x)[0].cpu(), nn.functional.mish(x))
