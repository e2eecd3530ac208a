"""The released labs with right answers, run whole by a Jupyter kernel as a student does; on a GPU, if there is one."""

import re
from pathlib import Path

import nbformat
import pytest
from helpers.known_lab import ROOT, KnownLab
from helpers.sample_classes import SEEDS, handed_in

from mlsys.course.lab import find_labs
from mlsys.grading.scorecard import ANSWERED, GPU, PASSING, READ
from mlsys.measure.device import torch_sees_gpu

pytestmark = pytest.mark.proof

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: mlsys[book] brings it")


TERMS = [(name, ()) for name in find_labs(ROOT)]
TERMS += [(name, seeds) for name in find_labs(ROOT) if KnownLab(name).lab.variants for seeds in SEEDS]


@pytest.mark.parametrize(("name", "seeds"), TERMS)
def test_a_notebook_with_right_answers_runs_from_top_to_bottom(
    name: str, seeds: tuple[str, ...], tmp_path: Path
) -> None:
    handed_in(name, tmp_path, seeds)
    notebook = nbformat.read(tmp_path / "submissions" / "right.ipynb", as_version=4)
    folder = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, allow_errors=True, resources=folder).execute()

    lab = KnownLab(name).lab
    waiting = [] if torch_sees_gpu() else [question.name for question in lab.questions if question.device == "gpu"]
    outputs = [(cell, output) for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    failed = {cell.id: output.ename for cell, output in outputs if output.output_type == "error"}
    assert failed == {lab.question(question).graded.id: "NeedsGpu" for question in waiting}
    said = [output.evalue for _, output in outputs if output.output_type == "error"]
    assert all("compiles for compute capability" in one for one in said)
    shown = [output.data["text/plain"] for cell, output in outputs if "data" in output]
    rows = [re.split("  +", line) for line in next(text for text in reversed(shown) if "sum  " in text).splitlines()]
    states = {row[0]: row[-1] for row in rows}
    for question in lab.questions:
        due = (READ,) if question.written else (GPU,) if question.name in waiting else (PASSING, ANSWERED)
        assert states[question.name] in due
