"""Kernels as people write them: a judge takes what a GPU takes, and a notebook says beforehand what a judge refuses.

Samples stand in `honest_kernels/`, one cell each. The line below the name of a sample says what comes of it:

    right: EXPRESSION   it makes EXPRESSION of x, in Triton's interpreter and on a GPU
    gpu: EXPRESSION     the same, though Triton's interpreter does not run it as it is written
    refused: PATTERN    a GPU's compiler or the judge does not take it; PATTERN is in the sentence that says so
"""

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from helpers.judging import LAUNCH, SETUP, question_cells
from helpers.on_gpu import needs_gpu

from mlsys.grading import check_kernel
from mlsys.grading.kernels.source import KernelSource, kernel_source
from mlsys.grading.verdicts import NotAKernel
from mlsys.judge.grade_question import LIMITS, Grader, on_gpu
from mlsys.judge.run_tests import judge

HERE = Path(__file__).parents[2] / "helpers"
SIZES = (37, 64)
TEST = """
for size in {sizes}:
    x = torch.linspace(-1, 2, size)
    grading.check_kernel(kernel, {{"TILE": 16}}, [x], {right}, launch=launch_copy)
"""
MATH = "\nimport math\n"


@dataclass(frozen=True)
class Sample:
    """A kernel, and what comes of it."""

    name: str
    kind: str
    said: str
    cell: str

    def source(self) -> KernelSource:
        return kernel_source([SETUP + LAUNCH, self.cell], "kernel")


def read_samples() -> list[Sample]:
    samples = []
    for path in sorted((HERE / "honest_kernels").glob("*.py")):
        for part in path.read_text().split("# %% ")[1:]:
            name, outcome, cell = part.split("\n", 2)
            kind, said = outcome.removeprefix("# ").split(": ", 1)
            samples.append(Sample(f"{path.stem}: {name}", kind, said, cell))
    return samples


SAMPLES = read_samples()
RIGHT, GPU, REFUSED = ([s for s in SAMPLES if s.kind == kind] for kind in ("right", "gpu", "refused"))


def each(samples):
    return pytest.mark.parametrize("sample", samples, ids=[sample.name for sample in samples])


@pytest.fixture
def names(tmp_path, monkeypatch):
    """Run a sample's cell as a notebook does, in Triton's interpreter, and no judge near."""
    monkeypatch.setitem(os.environ, "TRITON_INTERPRET", "1")

    def run(sample):
        path = tmp_path / "cells.py"
        path.write_text("\n".join([SETUP, LAUNCH, sample.cell]))
        spec = importlib.util.spec_from_file_location("cells", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return vars(module)

    return run


def test_every_sample_has_an_outcome_and_a_name_of_its_own():
    assert len({sample.name for sample in SAMPLES}) == len(SAMPLES) == len(RIGHT) + len(GPU) + len(REFUSED)
    assert len(SAMPLES) >= 60


@each(RIGHT)
def test_an_honest_kernel_is_right_in_the_notebook(names, sample):
    found = names(sample)
    for size in SIZES:
        x = torch.linspace(-1, 2, size)
        right = eval(sample.said, {"x": x, "torch": torch, "math": math})
        check_kernel(found["kernel"], {"TILE": 16}, [x], right, launch=found["launch_copy"])


@each(RIGHT)
def test_a_judge_passes_an_honest_kernel(verdict, sample):
    found = verdict(sample.cell, TEST.format(sizes=SIZES, right=sample.said), setup=SETUP + MATH + LAUNCH)
    assert (found.name, found.message) == ("passed", "")


def test_what_a_judge_launches_compiles_for_a_gpu():
    texts, failed = {}, {}
    for sample in RIGHT + GPU:
        try:
            source = sample.source()
            texts[sample.name] = source.text, source.name
        except NotAKernel as error:
            failed[sample.name] = str(error)
    assert failed | compiled(texts) == {}


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(600)
def test_a_judge_on_a_gpu_passes_honest_kernels():
    failed, sandbox = {}, Grader(8).sandbox(True, on_gpu(LIMITS), (), ())
    for sample in RIGHT + GPU:
        cells, tests = question_cells(sample.cell, SETUP + MATH + LAUNCH), TEST.format(sizes=SIZES, right=sample.said)
        found = judge(sandbox, cells, tests, "tests of q", device="cuda", seed=3)
        if found.name != "passed":
            failed[sample.name] = f"{found.name}: {found.message}"
    assert failed == {}


def compiled(texts):
    """What goes wrong when kernels are compiled, by their names."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, str(HERE / "compile_texts.py")]
    done = subprocess.run(
        command, input=json.dumps(texts), capture_output=True, text=True, env=environment, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stderr.splitlines()[-1])


@each(REFUSED)
def test_what_a_judge_refuses_is_refused_in_the_notebook_in_the_same_words(names, sample):
    with pytest.raises(NotAKernel) as in_judge:
        sample.source()
    said = str(in_judge.value)
    assert re.search(sample.said, said)
    assert "\n" not in said
    found, x = names(sample), torch.linspace(-1, 2, 37)
    with pytest.raises(NotAKernel) as in_notebook:
        check_kernel(found["kernel"], {"TILE": 16}, [x], x, launch=found["launch_copy"])
    assert str(in_notebook.value) == said
