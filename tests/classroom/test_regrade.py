import dataclasses
import os
import shutil
import signal
from pathlib import Path

import nbformat
import pytest
from helpers.adding_course import ANOTHER_PREDICTION, change_lab
from rich.console import Console

from mlsys.classroom.batch.pool import Pool
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.regrade import changes_of, changes_title, with_gpu_results
from mlsys.classroom.report import to_csv
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.store.run import Terms
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

QUIET = Console(quiet=True)
WAS = QuestionRecord("b", "", "b-test", "wrong answer", 0.0, 3.0, "C is wrong")
IS = dataclasses.replace(WAS, verdict="passed", points=3.0, message="")
OLD = Record("right", "adding", "1", "2026-11-20", submission="abc", questions=(WAS,))


def test_a_changed_score_of_the_same_submission_is_a_change_with_its_reason() -> None:
    (change,) = changes_of(OLD, Judged("right", "abc", (IS,)))
    assert (change.question, change.before, change.after) == ("b", "wrong answer 0", "passed 3")
    assert "All tests pass" in change.why


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, Judged("right", "abc", (IS,))),
        (OLD, Judged("right", "another", (IS,))),
        (OLD, Judged("right", "abc", (WAS,))),
        (
            dataclasses.replace(OLD, questions=(dataclasses.replace(WAS, verdict="needs gpu"),)),
            Judged("right", "abc", (IS,)),
        ),
    ],
    ids=["first grading", "new submission", "same score", "points that waited"],
)
def test_what_is_no_change(old: Record | None, new: Judged) -> None:
    assert changes_of(old, new) == []


def test_a_score_that_would_be_lost_is_a_change() -> None:
    (change,) = changes_of(dataclasses.replace(OLD, questions=(IS,)), Judged("right", "abc", refused="it is too big"))
    assert (change.question, change.before, change.after, change.why) == ("all", "3 points", "refused", "it is too big")
    assert changes_of(dataclasses.replace(OLD, refused="empty"), Judged("right", "abc", refused="empty")) == []


def test_the_number_of_changes_is_said() -> None:
    one = changes_of(OLD, Judged("right", "abc", (IS,)))
    assert changes_title(one) == "1 score or mark changes for 1 student:"
    two = changes_of(dataclasses.replace(OLD, student="bob"), Judged("bob", "abc", (IS,)))
    assert changes_title([*one, *one, *two]) == "3 scores or marks change for 2 students:"


def test_a_pass_on_a_gpu_fills_only_what_waited_for_it() -> None:
    waits = dataclasses.replace(WAS, question="d", verdict="needs gpu")
    old = dataclasses.replace(OLD, questions=(WAS, waits))
    measured = dataclasses.replace(IS, question="d", points=2.5, verdict="slow")
    assert with_gpu_results(old, Judged("right", "abc", (IS, measured))).questions == (WAS, measured)
    refused = Judged("right", "abc", refused="died")
    assert with_gpu_results(old, refused) == refused


def a_course(adding: tuple[Path, CourseTree, Path], folder: Path) -> tuple[Path, CourseTree]:
    shutil.copytree(adding[0], folder / "repository")
    tree = CourseTree(folder / "repository" / "_build" / "course")
    for student in [path.name for path in (tree.root / "submitted").iterdir() if path.name not in ("right", "half")]:
        shutil.rmtree(tree.root / "submitted" / student)
    return folder / "repository", tree


@pytest.mark.proof
def test_a_regrade_that_changes_scores_waits_for_a_yes(adding: tuple[Path, CourseTree, Path], tmp_path: Path) -> None:
    root, tree = a_course(adding, tmp_path)
    sample = tree.root / "sample-class" / "adding" / "right.ipynb"
    (tmp_path / "in").mkdir()
    shutil.copy(sample, tmp_path / "in" / "right.ipynb")
    options = Options(tmp_path / "in")
    before = to_csv(grade_class(root, tree, "adding", options, QUIET).records.values())
    change_lab(root, ANOTHER_PREDICTION)
    held = grade_class(root, tree, "adding", options, QUIET)
    assert held.withheld
    assert len(held.changes) == 1
    assert to_csv(held.records.values()) == before
    taken = grade_class(root, tree, "adding", dataclasses.replace(options, accept_changes=True), QUIET)
    assert not taken.withheld
    assert to_csv(taken.records.values()) != before


def test_one_student_is_graded_alone_and_an_unknown_one_is_named(
    adding: tuple[Path, CourseTree, Path], tmp_path: Path
) -> None:
    folder = adding[1].root / "sample-class" / "adding"
    root, tree = a_course(adding, tmp_path)
    batch = grade_class(root, tree, "adding", Options(folder, student="right"), QUIET)
    assert list(batch.records) == ["right"]
    with pytest.raises(UserError, match="unknown student 'rihgt': did you mean 'right'"):
        grade_class(root, tree, "adding", Options(folder, student="rihgt"), QUIET)


def test_a_submission_on_which_the_worker_dies_is_refused_and_the_others_are_judged(
    adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is killed from outside, as the system does when memory runs out."""
    tree = adding[1]
    rest = (nbformat.v4.new_notebook(), "abc", Terms("run", 1), "cpu", 5, 100)
    tasks = [Task(student, "adding", "1", *rest) for student in ("right", "crash")]
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", die_on_crash)
    with Pool(tree.root, 1) as pool:
        found = {one.student: one for one in pool.judge_all(tasks)}
    assert found["right"].submission == "judged"
    assert "died on it twice" in found["crash"].refused


def die_on_crash(task: Task, *_: object) -> Judged:
    if task.student == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    return Judged(task.student, "judged")
