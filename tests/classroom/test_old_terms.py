"""Grading across terms: a solution of last term does not fit, and what is of last term is graded as it was."""

import json
import shutil
from pathlib import Path

import pytest
from helpers.adding_course import VARIANTS, change_lab
from rich.console import Console

from mlsys.classroom.grade_class import Batch, Options, grade_class
from mlsys.classroom.report import other_terms
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.history import Attempt, History
from mlsys.course.lab import Lab
from mlsys.course.notebook import read_notebook, write_notebook
from mlsys.course.release import release
from mlsys.course.sample_class import build
from mlsys.course.term import read_terms
from mlsys.course.tree import CourseTree

QUIET = Console(quiet=True)


class Course:
    """A course of the small lab, whose question a draws a number."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tree = CourseTree(root / "_build" / "course")
        self.store = FileStore(self.tree)
        change_lab(root, VARIANTS)

    def begin(self, term: str) -> None:
        release(self.root, self.tree, term=term)
        config = self.tree.root / "nbgrader_config.py"
        if "cpu_limit_s" not in config.read_text().replace("c.RunQuestions.cpu_limit_s = 20`", ""):
            config.write_text(config.read_text() + "c.RunQuestions.cpu_limit_s = 3\n")

    def right(self, path: Path) -> Path:
        """A right submission for the present term."""
        seeds = [term.seed for term in read_terms(self.tree)]
        lab = Lab.load(self.root / "labs" / "adding" / "lab.py", seeds)
        write_notebook(build("# %% solve=*\n", lab, read_notebook(self.tree.release("adding")), "x"), path)
        return path

    def grade(self, folder: Path | None = None, **more: object) -> Batch:
        return grade_class(self.root, self.tree, "adding", Options(folder, workers=1, **more), QUIET)  # type: ignore[arg-type]

    def points(self, student: str) -> list[float]:
        record = self.store.record("adding", student)
        assert record is not None
        return [question.points for question in record.questions[:3]]


@pytest.fixture
def course(course_repository: Path) -> Course:
    return Course(course_repository)


def folder_with(path: Path, **files: Path) -> Path:
    path.mkdir()
    for student, file in files.items():
        shutil.copy(file, path / f"{student}.ipynb")
    return path


@pytest.mark.timeout(600)
def test_last_terms_solution_does_not_fit_and_last_terms_records_stay(course: Course, tmp_path: Path) -> None:
    course.begin("2027a")
    old = course.right(tmp_path / "old.ipynb")
    course.grade(folder_with(tmp_path / "first", ann=old))
    assert course.points("ann") == [1, 3, 2]
    graded_at = course.store.record("adding", "ann").graded_at  # type: ignore[union-attr]

    course.begin("2028a")
    new = course.right(tmp_path / "new.ipynb")
    assert new.read_bytes() != old.read_bytes()
    batch = course.grade(folder_with(tmp_path / "second", bob=old, cy=new))
    assert course.points("bob") == [0, 3, 2]
    assert course.points("cy") == [1, 3, 2]
    [repair] = batch.records["bob"].repairs[:1]
    assert "says that it is of term '2027a'; the lab as it is in term '2028a' was used" in repair

    # Everybody again: nothing of last term is judged anew, and nothing changes.
    batch = course.grade()
    assert batch.graded_now == 0
    assert course.store.record("adding", "ann").graded_at == graded_at  # type: ignore[union-attr]
    # Judged anew, as after an update of the package, it is with the lab of then.
    record = course.store.record("adding", "ann")
    assert record is not None
    course.tree.feedback("adding", "ann").unlink()
    batch = course.grade()
    assert batch.graded_now == 1
    assert batch.changes == ()
    assert course.points("ann") == [1, 3, 2]
    assert batch.records["ann"].term == "2027a"
    said = other_terms(batch.records.values(), "2028a", Path("attempts.json")).plain
    assert said.startswith("term: ann: handed in in term 2027a (now 2028a), and graded with the lab of then.")


@pytest.mark.timeout(600)
def test_a_student_who_comes_again_is_graded_in_the_new_term(course: Course, tmp_path: Path) -> None:
    course.begin("2027a")
    old = course.right(tmp_path / "old.ipynb")
    course.grade(folder_with(tmp_path / "first", ann=old))
    course.begin("2028a")
    new = course.right(tmp_path / "new.ipynb")
    batch = course.grade(folder_with(tmp_path / "second", ann=new), policy="best")  # of this term, not of all
    assert (course.points("ann"), batch.records["ann"].term) == ([1, 3, 2], "2028a")
    assert [one.term for one in course.store.history("adding", "ann").attempts] == ["2027a", "2028a"]


@pytest.mark.timeout(600)
def test_the_term_of_an_attempt_can_be_entered_by_hand(course: Course, tmp_path: Path) -> None:
    course.begin("2027a")
    old = course.right(tmp_path / "old.ipynb")
    course.grade(folder_with(tmp_path / "first", ann=old))
    course.begin("2028a")
    batch = course.grade(folder_with(tmp_path / "again", ann=old))
    assert (course.points("ann"), batch.records["ann"].term) == ([1, 3, 2], "2027a")
    path = course.tree.attempts("adding", "ann")
    content = json.loads(path.read_text())
    content["attempts"][0]["term"] = "2028a"
    path.write_text(json.dumps(content))
    batch = course.grade()
    assert batch.withheld
    assert [(one.student, one.question) for one in batch.changes] == [("ann", "a")]
    assert course.points("ann") == [1, 3, 2]
    course.grade(accept_changes=True)
    assert course.points("ann") == [0, 3, 2]


def attempt(term: str, number: int | None = None, digest: str = "d") -> Attempt:
    return Attempt(digest, "x.ipynb", "canvas", number=number, term=term)


@pytest.mark.parametrize(
    ("met", "known"),
    [
        (attempt("2027a"), True),
        (attempt("2028a"), True),  # nothing says that it is another upload
        (attempt("2028a", 900), True),
        (attempt("2028a", 905), False),
        (attempt("2027a", 905), True),  # as before: the newest's content again is the same attempt
        (attempt("2028a", 900, "other"), False),
    ],
)
def test_the_same_file_is_another_attempt_in_a_new_term_if_it_is_another_upload(met: Attempt, known: bool) -> None:
    assert History((attempt("2027a", 900),)).knows(met) == known
