"""Where the sandbox cannot run, grading stops and says what to do; told to go on, it marks everything so."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mlsys.classroom.store.record import Record
from mlsys.classroom.store.store import FileStore
from mlsys.course.tree import CourseTree

# A user namespace in which no other can be made, as on machines that forbid them.
NO_NAMESPACES = ("bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc")
NO_NAMESPACES += ("--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns")
NAMESPACE = (*NO_NAMESPACES, "unshare", "--user", "true")


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_grading_stops_without_a_sandbox_and_goes_on_only_when_told(
    adding: tuple[Path, CourseTree, Path], tmp_path: Path
) -> None:
    if subprocess.run([*NO_NAMESPACES, "true"], capture_output=True).returncode:
        pytest.skip("bubblewrap cannot forbid namespaces here")
    assert subprocess.run(NAMESPACE, capture_output=True).returncode != 0
    root = tmp_path / "repository"
    shutil.copytree(adding[0], root)
    tree = CourseTree(root / "_build" / "course")
    (root / "in").mkdir()
    for student in ("syntax", "right", "empty"):
        shutil.copy(adding[2] / f"{student}.ipynb", root / "in")

    def grade(*words: str, within: tuple[str, ...] = NO_NAMESPACES) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "mlsys.cli.main",
            "grade",
            "adding",
            "--submissions",
            "in",
            "--workers",
            "1",
            *words,
        ]
        env = {**os.environ, "COLUMNS": "200"}
        return subprocess.run([*within, *command], cwd=root, capture_output=True, text=True, timeout=600, env=env)

    def record(student: str) -> Record:
        found = FileStore(tree).record("adding", student)
        assert found is not None
        return found

    stopped = grade()
    assert stopped.returncode == 2
    assert "the sandbox cannot run here" in stopped.stderr
    assert "namespace" in stopped.stderr
    assert "--unsafe-no-sandbox" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not list((tree.root / "records").rglob("*.json"))

    unsafe = grade("--unsafe-no-sandbox")
    assert unsafe.returncode == 0, unsafe.stderr
    assert [question.points for question in record("right").questions] == [1, 3, 2, 0, 0]
    assert not record("right").sandboxed
    assert not record("syntax").sandboxed
    assert record("empty").sandboxed  # nothing of it ran
    assert "2 of them were graded WITHOUT the sandbox" in unsafe.stdout
    assert unsafe.stdout.count("graded without the sandbox") == 2
    assert "graded without the sandbox" in tree.feedback("adding", "right").read_text()
    with tree.results("adding").open() as file:
        assert {row["student"] for row in csv.DictReader(file) if row["sandboxed"] == "no"} == {"right", "syntax"}

    safe = grade(within=())
    assert safe.returncode == 0, safe.stderr
    assert "(2 graded now, 1 unchanged)" in safe.stdout
    assert "WITHOUT" not in safe.stdout
    assert record("right").sandboxed
    assert "without the sandbox" not in tree.feedback("adding", "right").read_text()
    again = grade("--unsafe-no-sandbox", within=())
    assert "(0 graded now, 3 unchanged)" in again.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes to /usr")
@pytest.mark.parametrize(
    ("exposed", "words"),
    [
        pytest.param("repository", (), marks=pytest.mark.proof),
        pytest.param("tree", (), marks=pytest.mark.proof),
        ("in", ()),
        ("tree", ("--unsafe-no-sandbox",)),
    ],
)
def test_nothing_is_graded_where_the_sandbox_would_show_the_course(
    adding: tuple[Path, CourseTree, Path], tmp_path: Path, exposed: str, words: tuple[str, ...]
) -> None:
    with tempfile.TemporaryDirectory(dir="/usr/local/src") as folder:
        places = {name: Path(folder if name == exposed else tmp_path) / name for name in ("repository", "tree", "in")}
        shutil.copytree(adding[0], places["repository"], ignore=shutil.ignore_patterns("_build"))
        shutil.copytree(adding[1].root, places["tree"])
        places["in"].mkdir()
        shutil.copy(adding[2] / "right.ipynb", places["in"])
        command = [sys.executable, "-m", "mlsys.cli.main", "grade", "adding", "--workers", "1", *words]
        command += ["--course", str(places["tree"]), "--submissions", str(places["in"])]
        done = subprocess.run(command, cwd=places["repository"], capture_output=True, text=True, timeout=600)
        assert not list((places["tree"] / "records").rglob("*.json"))
    assert done.returncode == 2
    assert f"{folder}" in done.stderr.replace("\n", "")
    assert "is in /usr" in done.stderr.replace("\n", " ")
    assert "Nothing was graded" in done.stderr
