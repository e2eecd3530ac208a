"""The work log: what it notes in a real notebook, how it goes on after a restart, and that nothing else reads it."""

import ast
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from mlsys.classroom.intake.reader import notebook_from
from mlsys.core.package import PACKAGE
from mlsys.grading.session.notebook import find_shell, read_notebook
from mlsys.grading.session.work_log import KEY, Run, WorkLog, begin_log, runs_in, saved_runs

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: mlsys[book] brings it")

SETUP = 'from mlsys import grading\nscorecard = grading.Scorecard({"a": 5, "b": 5, "j": 5}, gpu=["j"])'
PASSES = 'x = 1\nscorecard.passed("a")'
FAILS = 'raise grading.WrongAnswer("3 is not 4")\nscorecard.passed("a")'
BROKEN = 'def (:\nscorecard.passed("b")'
WAITS = 'raise grading.NeedsGpu("no GPU")\nscorecard.passed("j", 0.5)'
ANSWERED = 'scorecard.answered("b")'
PARTLY = "scorecard.passed('a', 0.5)"
SHOWS = "scorecard.work_log"


def run(*cells: str, path: Path | None = None) -> nbformat.NotebookNode:
    """Run cells in a Jupyter kernel of their own; `path` is where Jupyter says that the notebook is."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    client = nbclient.NotebookClient(notebook, timeout=60, allow_errors=True)
    client.extra_arguments = []
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JPY_SESSION_NAME", raising=False)
        if path:
            patch.setenv("JPY_SESSION_NAME", str(path))
        client.execute()
    nbformat.validate(notebook)
    return notebook


def noted(cell: nbformat.NotebookNode) -> list[Run]:
    return [one for output in cell.outputs for one in runs_in(output)]


def test_each_run_of_a_test_cell_is_noted_with_its_verdict_and_time_and_nothing_else_is(tmp_path: Path) -> None:
    notebook = run(SETUP, "y = 2", FAILS, PASSES, BROKEN, ANSWERED, WAITS, PARTLY, SHOWS)
    last = noted(notebook.cells[-1])
    assert [(one.question, one.verdict) for one in last] == [
        ("a", "wrong answer"), ("a", "passed"), ("b", "error"), ("b", "answered"), ("j", "needs gpu"),
        ("a", "passed in part"),
    ]  # fmt: skip
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", one.at) and 0 <= one.seconds < 5 for one in last
    )
    assert [len(noted(cell)) for cell in notebook.cells[:-1]] == [0, 0, 1, 2, 1, 2, 1, 3]
    # What is noted is said in words too: nothing in the notebook is hidden from its owner.
    for cell in notebook.cells[2:-1]:
        said = [output.data["text/plain"] for output in cell.outputs if KEY in str(output.get("metadata"))]
        assert re.fullmatch(r"Work log: run \d of question [abj], .*, \d\.\d s", said[0])
    [shown] = [output for output in notebook.cells[-1].outputs if output.output_type == "execute_result"]
    assert shown.data["image/svg+xml"].startswith("<svg")
    assert "a: 3 runs in" in shown.data["text/plain"]


def test_after_a_restart_the_log_goes_on_with_what_the_saved_notebook_holds(tmp_path: Path) -> None:
    path = tmp_path / "lab.ipynb"
    nbformat.write(run(SETUP, FAILS, SHOWS), path)
    again = run(SETUP, PASSES, SHOWS, path=path)
    assert [one.verdict for one in noted(again.cells[-1])] == ["wrong answer", "passed"]
    nbformat.write(again, path)
    cleared = nbformat.read(path, as_version=4)
    for cell in cleared.cells:
        cell.outputs = []
    nbformat.write(cleared, path)
    assert [one.verdict for one in noted(run(SETUP, PASSES, SHOWS, path=path).cells[-1])] == ["passed"]


def test_running_the_setup_again_keeps_the_log_and_notes_each_run_once(tmp_path: Path) -> None:
    notebook = run(SETUP, FAILS, SETUP, PASSES, SHOWS)
    assert [one.verdict for one in noted(notebook.cells[-1])] == ["wrong answer", "passed"]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"cells": 3}', '{"cells": [3, {"outputs": [4, {"metadata": {"mlsys": {"work_log": [{}, 5]}}}]}]}'],
)
def test_a_saved_notebook_of_another_form_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    path = tmp_path / "lab.ipynb"
    path.write_text(content)
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    assert list(saved_runs(read_notebook({}))) == []


def test_outside_a_notebook_and_in_a_judge_nothing_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert begin_log("ab", str).runs == []
    shell = SimpleNamespace(events=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert find_shell() is shell
    monkeypatch.setenv("MLSYS_IN_JUDGE", "1")
    assert find_shell() is None


def test_the_picture_has_a_mark_for_each_run_and_says_it_in_words() -> None:
    runs = [
        Run("a", "wrong answer", "2027-03-01T10:00:00+01:00", 0.4),
        Run("a", "passed", "2027-03-02T10:00:00+01:00", 1.6),
        Run("<b>", "passed", "2027-03-02T11:00:00+01:00", 0.1),
        Run("other", "passed", "2027-03-02T11:00:00+01:00", 0.1),
    ]
    log = WorkLog(["a", "<b>"], [*runs, runs[0]])
    assert log.runs == runs[:3]
    picture = ET.fromstring(log.svg())
    space = "{http://www.w3.org/2000/svg}"
    marks = [one for one in picture.iter() if one.tag in (f"{space}circle", f"{space}path") and len(one)]
    assert [one[0].text for one in marks] == [
        "a: wrong answer, 2027-03-01 10:00, 0.4 s",
        "a: passed, 2027-03-02 10:00, 1.6 s",
        "<b>: passed, 2027-03-02 11:00, 0.1 s",
    ]
    assert [one.tag.removeprefix(space) for one in marks] == ["path", "circle", "circle"]
    assert picture.find(f"{space}title").text == "Work log: 3 runs of tests on 2 days, 2027-03-01 to 2027-03-02"  # type: ignore[union-attr]
    assert "a: 2 runs in 2.0 s, the last passed" in picture.find(f"{space}desc").text  # type: ignore[union-attr, operator]


def test_a_long_log_stays_within_the_picture() -> None:
    many = [Run("a", "passed", f"2027-03-01T10:{n // 60:02}:{n % 60:02}+01:00", 0.1) for n in range(900)]
    picture = ET.fromstring(WorkLog(["a"], many).svg())
    xs = [float(one.get("cx", 0)) for one in picture.iter("{http://www.w3.org/2000/svg}circle")]
    assert len(xs) == 901  # and the one that explains the form
    assert max(xs) < float(picture.get("width", 0)) - 10


def test_nothing_of_the_package_but_the_log_itself_reads_it() -> None:
    """Who else would read it must name it: the key in the metadata, or the module."""
    texts = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
    for tree in texts.values():
        tree.body = [
            one for one in tree.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        ]
    naming = {name for name, tree in texts.items() if re.search(r"work_log|begin_log", ast.unparse(tree))}
    assert naming == {"grading/session/work_log.py", "grading/scorecard.py"}


def test_grading_takes_no_log_over_from_what_is_handed_in() -> None:
    entry = {"question": "a", "verdict": "passed", "at": "2027-03-01T10:00:00+01:00", "seconds": 0.4}
    log = {"mlsys": {KEY: [entry], "lab": "adding", "version": "1"}}
    output = {"output_type": "display_data", "data": {"text/plain": "Work log: run 1"}, "metadata": log}
    cell = {"cell_type": "code", "source": "x = 1", "metadata": log, "outputs": [output], "execution_count": 1}
    content = {"cells": [cell], "metadata": log, "nbformat": 4, "nbformat_minor": 5}
    taken = nbformat.writes(notebook_from(json.dumps(content).encode()))
    assert "x = 1" in taken
    assert not re.search(r"(?i)work.?log|2027-03-01", taken)
