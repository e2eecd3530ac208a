"""The text for a GPU passes Triton's own compiler, which needs no GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")
TESTS = Path(__file__).parents[1]


def compiled(*which):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    command = [sys.executable, str(TESTS / "helpers" / "compile_programs.py"), *which]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def test_drawn_graphs_compile_for_a_gpu():
    found = compiled("0", "1")
    assert found["failed"] == {}
    assert found["kernels"] >= 1


@pytest.mark.proof
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("which", [("1", "60"), ("networks",)])
def test_more_drawn_graphs_and_networks_compile_for_a_gpu(which):
    assert compiled(*which)["failed"] == {}
