"""What makes a later run judge again: a change of what decides verdicts, and of nothing else."""

import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from mlsys.classroom import plan
from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.store.store import FileStore
from mlsys.core import package
from mlsys.course import digest
from mlsys.course.lab import Lab
from mlsys.course.tree import CourseTree

Edited = Callable[..., str]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adding: tuple[Path, CourseTree, Path]) -> Iterator[Edited]:
    """Edit a file of a copy of the package, and return a lab's digest then; of no file, the digest of the copy."""
    copy = tmp_path / "mlsys"
    shutil.copytree(package.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for module in (package, digest):
        monkeypatch.setattr(module, "PACKAGE", copy)
    lab = released_lab(adding[1], "adding")

    def after(name: str, lab: Lab = lab) -> str:
        path = copy / name
        before = path.read_bytes() if name else b""
        if name:
            path.write_bytes(before + b"\n# edited\n")
        _forget()
        try:
            return plan._package_digest([lab])
        finally:
            if name:
                path.write_bytes(before)

    yield after
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    package.modules.cache_clear()
    package._imports_of.cache_clear()


@pytest.mark.parametrize(
    "name",
    [
        "costs/carbon.py",
        "data/carbon.toml",
        "data/prices.toml",
        "scaling/ring.py",
        "cli/main.py",
        "classroom/lms/fill.py",
        "classroom/gradebook/feedback.py",
        "course/publish.py",
        "grading/replays/network_plan.py",
        "systolic/cycles.py",
    ],
)
def test_what_no_verdict_depends_on_judges_nobody_again(edited: Edited, name: str) -> None:
    assert edited(name) == edited("")


@pytest.mark.parametrize(
    "name",
    [
        "grading/checks/tolerances.py",
        "judge/run_tests.py",
        "judge/sandbox/inside/seccomp.py",
        "classroom/batch/submission.py",
        "classroom/intake/normalize.py",
        "core/cells.py",
        "course/lab.py",
        "units.py",
        "data/units.txt",
        "data/chips/t4.toml",
    ],
)
def test_what_a_verdict_may_depend_on_judges_everybody_again(edited: Edited, name: str) -> None:
    assert edited(name) != edited("")


def test_what_a_lab_imports_counts_for_it(adding: tuple[Path, CourseTree, Path], tmp_path: Path) -> None:
    text = (adding[0] / "labs" / "adding" / "lab.py").read_text()
    (tmp_path / "lab.py").write_text(text.replace("from mlsys import grading", "from mlsys import grading, scaling"))
    ours, other = released_lab(adding[1], "adding"), Lab.load(tmp_path / "lab.py")
    assert plan._package_digest([ours]) != plan._package_digest([other])


def test_what_one_lab_checks_counts_for_that_lab_alone(adding: tuple[Path, CourseTree, Path], edited: Edited) -> None:
    schedules = Lab.load(ROOT / "labs" / "schedules" / "lab.py")
    edits = ("grading/replays/network_plan.py", "systolic/cycles.py")
    assert [edited(name, schedules) == edited("", schedules) for name in edits] == [False, False]


def test_a_changed_package_is_given_as_the_reason_once(
    adding: tuple[Path, CourseTree, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, folder = tmp_path / "repository", tmp_path / "in"
    shutil.copytree(adding[0], root)
    tree = CourseTree(root / "_build" / "course")
    folder.mkdir()
    (folder / "ann.ipynb").write_text("{")

    def said() -> str:
        console = Console(file=io.StringIO(), width=1000)
        grade_class(root, tree, "adding", Options(folder), console)
        return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]

    reason = "The part of the package that decides verdicts has changed since the last run"
    assert reason not in said()
    secret = FileStore(tree).run("adding")
    monkeypatch.setattr(plan, "_package_digest", lambda _: "another")
    assert said().count(reason) == 1
    (folder / "bob.ipynb").write_text("[")
    assert reason not in said()
    after = FileStore(tree).run("adding")
    assert secret is not None
    assert after is not None
    assert (after.package, after.secret != secret.secret) == ("another", True)
