"""A class that is kept in PostgreSQL: graded, graded again and undone as one in files, by the same commands."""

import shutil
from pathlib import Path

import pytest
from helpers.postgres import Server, postgres
from helpers.quick_judge import QuickPool
from rich.console import Console

from mlsys.classroom import plan
from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.gradebook.marks import marks_of
from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.report import to_csv
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.move import move_to_database, move_to_files
from mlsys.classroom.store.run import Run
from mlsys.cli.main import main
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.notebook import read_notebook, write_notebook
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

__all__ = ["postgres"]

QUIET = Console(quiet=True)
STUDENTS = ("half-done", "right", "syntax")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLSYS_QUICK_S", "0")
    monkeypatch.setattr(plan, "check_sandbox", lambda *_: "")


@pytest.fixture
def root(adding: tuple[Path, CourseTree, Path], tmp_path: Path) -> Path:
    shutil.copytree(adding[0], tmp_path / "course", ignore=shutil.ignore_patterns("sample-class"))
    (tmp_path / "course" / "in").mkdir()
    for student in STUDENTS:
        shutil.copy(adding[2] / f"{student}.ipynb", tmp_path / "course" / "in")
    store_of(tree_in(tmp_path / "course")).save_run("adding", Run("5" * 32, "2026-11-20T10:00:00+00:00"))
    return tmp_path / "course"


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.create()


def tree_in(root: Path) -> CourseTree:
    return CourseTree(root / "_build" / "course")


def grade(root: Path, **options: object) -> str:
    pool = {"open_pool": lambda tree, _: QuickPool(tree.root)}
    batch = grade_class(root, tree_in(root), "adding", Options(root / "in", **pool, **options), QUIET)  # type: ignore[arg-type]
    return to_csv(batch.results.values())


def scores(tree: CourseTree) -> list[tuple[object, ...]]:
    with open_gradebook(tree) as gradebook:
        return sorted((one.student.id, one.score) for one in gradebook.assignment_submissions("adding"))


@pytest.mark.proof
def test_a_class_in_a_database_comes_out_as_one_in_files_also_after_an_undo(
    root: Path, url: str, tmp_path: Path
) -> None:
    tree = tree_in(root)
    shutil.copytree(root, tmp_path / "files")
    in_files = grade(tmp_path / "files")
    move_to_database(tree, url)
    assert grade(root) == in_files
    assert scores(tree) == scores(tree_in(tmp_path / "files"))
    assert not tree.gradebook.exists()
    assert not list((tree.root / "records").rglob("*.json"))
    before, records = scores(tree), store_of(tree).records("adding")
    again = read_notebook(root / "in" / "right.ipynb")
    again.cells[0].source += " Again."
    write_notebook(again, root / "in" / "right.ipynb")
    grade(root, accept_changes=True)
    assert store_of(tree).records("adding") != records
    assert len(store_of(tree).history("adding", "right").attempts) == 2
    assert main(["undo", "--course", str(tree.root)]) == 3
    assert main(["undo", "--yes", "--course", str(tree.root)]) == 0
    assert store_of(tree).records("adding") == records
    assert len(store_of(tree).history("adding", "right").attempts) == 1
    assert scores(tree) == before
    assert marks_of(tree, "adding") == {}
    move_to_files(tree)
    assert store_of(tree).records("adding") == records
    assert scores(tree) == before


def test_a_run_ends_with_a_sentence_when_its_database_does_not_answer(root: Path, postgres: Server, url: str) -> None:
    tree = tree_in(root)
    move_to_database(tree, url)
    postgres.stop()
    with pytest.raises(UserError, match="cannot be reached|cannot be written"), disk_faults(tree):
        grade(root)
    postgres.start()
    assert grade(root).count("right") == 5
