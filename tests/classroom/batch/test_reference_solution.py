import shutil
from pathlib import Path

import pytest
from helpers.adding_course import change_lab
from rich.console import Console

from mlsys.classroom.batch.reference_solution import LabFault
from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.store.run import seed
from mlsys.classroom.store.store import FileStore
from mlsys.course.tree import CourseTree

QUIET = Console(quiet=True)
RIGHT = 'u + v, what="sum of ragged vectors"'


@pytest.fixture
def course(
    course_repository: Path, adding: tuple[Path, CourseTree, Path], tmp_path: Path
) -> tuple[Path, CourseTree, Options]:
    (tmp_path / "in").mkdir()
    shutil.copy(adding[2] / "right.ipynb", tmp_path / "in")
    return course_repository, CourseTree(tmp_path / "course"), Options(tmp_path / "in", workers=1)


def test_nobody_is_graded_with_a_test_that_the_labs_own_answer_fails(course: tuple[Path, CourseTree, Options]) -> None:
    root, tree, options = course
    wrong = RIGHT.replace("+", "-")
    change_lab(root, {RIGHT: wrong})
    with pytest.raises(LabFault, match="nothing was graded:\n  b: wrong answer: sum of ragged vectors") as error:
        grade_class(root, tree, "adding", options, QUIET)
    failed = FileStore(tree).run("adding")
    assert failed is not None
    assert f"MLSYS_GRADING_SEED={seed(tree.secret(), 'adding', failed.secret)} " in str(error.value)
    assert not tree.record("adding", "right").exists()

    change_lab(root, {wrong: RIGHT})
    batch = grade_class(root, tree, "adding", options, QUIET)
    assert batch.records["right"].questions[1].verdict == "passed"
    assert batch.records["right"].run != failed.secret  # other inputs, for those may have been at fault


def test_all_questions_that_the_labs_own_answers_fail_are_named(course: tuple[Path, CourseTree, Options]) -> None:
    root, tree, options = course
    change_lab(root, {RIGHT: RIGHT.replace("+", "-"), "return add(add(x, y), z)": "return add(x, y)"})
    with pytest.raises(LabFault, match=r"nothing was graded:\n  b: wrong answer.*\n(?s:.*)  c: wrong answer"):
        grade_class(root, tree, "adding", options, QUIET)


@pytest.mark.proof
def test_a_test_that_ends_the_judge_is_no_students_fault(course: tuple[Path, CourseTree, Options]) -> None:
    root, tree, options = course
    change_lab(root, {"hidden_size =": "__import__('os')._exit(1)\nhidden_size ="})
    with pytest.raises(LabFault, match="adding could not be judged.*: the grading process failed or died on it twice"):
        grade_class(root, tree, "adding", options, QUIET)
    assert not tree.record("adding", "right").exists()


@pytest.mark.proof
def test_a_question_without_an_answer_of_the_labs_own_stops_nobody(course: tuple[Path, CourseTree, Options]) -> None:
    root, tree, options = course
    change_lab(root, {"    return add(add(x, y), z)\n": '    raise NotImplementedError("add_three")\n'})
    batch = grade_class(root, tree, "adding", options, QUIET)
    assert {one.question: one.verdict for one in batch.records["right"].questions}["c"] == "passed"
