"""The command `mlsys grade` as the instructor types it: what it leaves on disk, and what Ctrl-C leaves."""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from mlsys.course.tree import CourseTree

BEFORE_THE_SERVER = """
import sys
from mlsys.classroom.processes import workers

def warm_up():
    print([name for name in ("nbgrader", "sqlalchemy", "torch") if name in sys.modules])
    raise SystemExit

workers.warm_up = warm_up
from mlsys.cli.main import main
main(["grade", "tiling"])
"""


def test_the_server_of_the_workers_imports_torch_while_this_process_imports_nbgrader() -> None:
    done = subprocess.run([sys.executable, "-c", BEFORE_THE_SERVER], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.fixture
def course(adding: tuple[Path, CourseTree, Path], tmp_path: Path) -> CourseTree:
    """A repository, with a folder `in` of three submissions."""
    root = tmp_path / "repository"
    shutil.copytree(adding[0], root)
    (root / "in").mkdir()
    for student, sample in {"ann": "right", "bob": "syntax", "cy": "half-done"}.items():
        shutil.copy(adding[2] / f"{sample}.ipynb", root / "in" / f"{student}.ipynb")
    return CourseTree(root / "_build" / "course")


def start(tree: CourseTree, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mlsys.cli.main", "grade", "adding", "--workers", "1", *words]
    env = {**os.environ, "COLUMNS": "250"}
    # A group of its own, which hears Ctrl-C as that of a terminal does, also where these tests run in the background.
    return subprocess.Popen(
        command,
        cwd=tree.root.parents[1],
        stdout=-1,
        stderr=-1,
        text=True,
        env=env,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def by_student(path: Path) -> dict[str, list[dict[str, str]]]:
    rows: dict[str, list[dict[str, str]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row.get("student") or row["student_id"], []).append(row)
    return rows


def test_times_without_their_submissions_are_refused(course: CourseTree) -> None:
    (course.root.parents[1] / "times.csv").write_text("student,time\nann,2026-11-20T18:00+01:00\n")
    run = start(course, "--times", "times.csv")
    _, errors = run.communicate()
    assert run.returncode == 2
    assert "name that download as well" in errors


def test_a_forgotten_download_is_asked_for(course: CourseTree) -> None:
    run = start(course)
    _, errors = run.communicate()
    assert run.returncode == 2
    assert "no submissions to adding have come in: name them with --submissions" in errors


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_grading_one_student_keeps_the_rows_of_the_others(course: CourseTree) -> None:
    paths = [course.results("adding"), course.results("adding").with_name("adding-nbgrader.csv")]
    said, errors = start(course, "--submissions", "in").communicate()
    assert "3 submissions (3 graded now" in said, errors
    before = [by_student(path) for path in paths]
    assert [sorted(rows) for rows in before] == [["ann", "bob", "cy"]] * 2
    root = course.root.parents[1]
    shutil.copy(root / "in" / "ann.ipynb", root / "in" / "bob.ipynb")
    said, errors = start(course, "--submissions", "in", "--student", "bob").communicate()
    assert "1 submissions (1 graded now" in said, errors
    for path, old in zip(paths, before, strict=True):
        new = by_student(path)
        assert list(new) == list(old)
        assert new["bob"] != old["bob"]
        assert (new["ann"], new["cy"]) == (old["ann"], old["cy"])


@pytest.mark.timeout(600)
def test_changes_that_wait_for_a_yes_are_in_a_file_and_in_the_exit_status(course: CourseTree) -> None:
    start(course, "--submissions", "in").communicate()
    (course.root.parents[1] / "in" / "ann.ipynb").write_text("{")
    waiting = start(course, "--submissions", "in")
    said, _ = waiting.communicate()
    listed = course.results("adding").with_name("adding-changes.csv")
    assert f"The list is in _build/course/results/{listed.name}" in said
    (row,) = by_student(listed)["ann"]
    assert (row["question"], row["after"], waiting.returncode) == ("all", "refused", 3)
    points = sum(float(one["points"]) for one in by_student(course.results("adding"))["ann"])
    assert row["before"] == f"{points:g} points"
    accepted = start(course, "--submissions", "in", "--yes")
    accepted.communicate()
    assert accepted.returncode == 0
    assert {one["verdict"] for one in by_student(course.results("adding"))["ann"]} == {"refused"}


@pytest.mark.timeout(600)
def test_ctrl_c_keeps_what_is_graded_and_says_how_to_go_on(course: CourseTree) -> None:
    last = course.root.parents[1] / "in" / "cy.ipynb"
    notebook = nbformat.read(last, 4)
    for cell in notebook.cells:
        if cell.cell_type == "code" and "def add(" in cell.source:
            cell.source = f"import time\ntime.sleep(2)\n{cell.source}"  # else the run may end before it is interrupted
    nbformat.write(notebook, last)
    run = start(course, "--submissions", "in")
    records = course.root / "records" / "adding"
    while run.poll() is None and not list(records.glob("*.json")):
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGINT)
    _, errors = run.communicate()
    assert run.returncode == 130
    assert errors == "mlsys: Interrupted: what was graded is kept. Continue with `mlsys grade adding --resume`\n"
    said, errors = start(course, "--resume").communicate()
    assert "was interrupted: continuing it" in said, errors
    match = re.search(r"3 submissions \((\d) graded now", said)
    assert match is not None
    assert int(match[1]) < 3
