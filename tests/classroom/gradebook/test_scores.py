"""What `mlsys grade` enters is what nbgrader's own commands make of the same submissions."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.adding_course import make_course_repository
from rich.console import Console

from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.gradebook.scores import write_results
from mlsys.classroom.intake.reading import LabReader
from mlsys.classroom.store.store import FileStore
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.release import release
from mlsys.course.sample_class import hand_in
from mlsys.course.tree import CourseTree

pytestmark = pytest.mark.proof

SCORES = """
    SELECT submitted_assignment.student_id, base_cell.name, grade.auto_score, grade.manual_score,
           grade.needs_manual_grade
    FROM grade JOIN submitted_notebook ON grade.notebook_id = submitted_notebook.id
    JOIN submitted_assignment ON submitted_notebook.assignment_id = submitted_assignment.id
    JOIN base_cell ON grade.cell_id = base_cell.id ORDER BY 1, 2
"""
COMMENTS = """
    SELECT submitted_assignment.student_id, base_cell.name, comment.auto_comment, comment.manual_comment
    FROM comment JOIN submitted_notebook ON comment.notebook_id = submitted_notebook.id
    JOIN submitted_assignment ON submitted_notebook.assignment_id = submitted_assignment.id
    JOIN base_cell ON comment.cell_id = base_cell.id ORDER BY 1, 2
"""
ARRIVALS = """
    SELECT submitted_assignment.student_id, timestamp, late_submission_penalty
    FROM submitted_assignment JOIN submitted_notebook ON submitted_notebook.assignment_id = submitted_assignment.id
    ORDER BY 1
"""
DUE = "2099-01-01 00:00:00 UTC"
LATE = ("right", "half-done")


def rows(tree: CourseTree, query: str, students: list[str]) -> list[tuple[Any, ...]]:
    with sqlite3.connect(tree.root / "gradebook.db") as connection:
        return [row for row in connection.execute(query) if row[0] in students]


def notebook(tree: CourseTree, student: str) -> Any:
    return json.loads(tree.autograded("adding", student).read_text())


def canonical(tree: CourseTree, student: str) -> Any:
    return LabReader(tree, "adding").canonical(tree.submitted("adding", student).read_bytes())


def record(tree: CourseTree, student: str) -> Any:
    content = json.loads(tree.record("adding", student).read_text())
    for question in content["questions"]:
        question.pop("seconds")
    return {name: value for name, value in content.items() if name not in ("graded_at", "state")}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[CourseTree, CourseTree, list[str]]:
    """A class graded by `mlsys grade`, marked by a person and graded again; then the same by nbgrader."""
    root = make_course_repository(tmp_path_factory.mktemp("scores") / "repository")
    tree = CourseTree(root / "_build" / "course")
    release(root, tree)
    with (tree.root / "nbgrader_config.py").open("a") as config:
        config.write('c.RunQuestions.device = "cpu"\nc.LateSubmissionPlugin.penalty_method = "zero"\n')
    hand_in(root / "labs" / "adding" / "lab.py", tree.root / "sample-class" / "adding", tree)
    with open_gradebook(tree) as gradebook:
        gradebook.update_or_create_assignment("adding", duedate=DUE)
    first = grade_class(root, tree, "adding", Options(tree.root / "sample-class" / "adding"), Console(quiet=True))
    for student in LATE:
        tree.submitted("adding", student).with_name("timestamp.txt").write_text("2099-01-02 00:00:00 UTC")
    with open_gradebook(tree) as gradebook:
        submission = gradebook.find_submission("adding", "half-done")
        for grade in submission.notebooks[0].grades:
            if grade.cell.name.startswith("e"):
                grade.manual_score = 0.5
        for comment in submission.notebooks[0].comments:
            comment.manual_comment = f"seen {comment.cell.name}"
        gradebook.db.commit()
    students = [student for student, one in first.records.items() if not one.refused]
    for student in students:
        write_results(tree, first.records[student], canonical(tree, student))
    plain = CourseTree(tmp_path_factory.mktemp("plain") / "course")
    shutil.copytree(tree.root, plain.root)
    for command in ("autograde", "generate_feedback"):
        program = Path(sys.executable).with_name("nbgrader")
        done = subprocess.run(
            [program, command, "adding", "--force"], cwd=plain.root, capture_output=True, text=True, check=False
        )
        assert command != "autograde" or "Autograding" in done.stderr, done.stderr
    return tree, plain, students


@pytest.mark.parametrize("query", [SCORES, COMMENTS, ARRIVALS], ids=["scores", "comments", "arrivals"])
def test_the_gradebook_is_the_same(both: tuple[CourseTree, CourseTree, list[str]], query: str) -> None:
    tree, plain, students = both
    found = rows(tree, query, students)
    assert found == rows(plain, query, students)
    assert {row[0] for row in found} == set(students)


def test_late_points_are_taken_off_and_a_persons_marks_stay(both: tuple[CourseTree, CourseTree, list[str]]) -> None:
    tree, _, students = both
    penalties = {student: penalty for student, _, penalty in rows(tree, ARRIVALS, students)}
    assert {student for student, penalty in penalties.items() if penalty} == set(LATE)
    marked = [row for row in rows(tree, SCORES, ["half-done"]) if row[3] is not None]
    assert marked
    assert all((row[3], row[4]) == (0.5, 1) for row in marked)
    assert "seen " in tree.feedback("adding", "half-done").read_text()


@pytest.mark.parametrize("of", [notebook, record, lambda tree, student: tree.feedback("adding", student).read_text()])
def test_notebook_record_and_page_are_the_same(both: tuple[CourseTree, CourseTree, list[str]], of: Any) -> None:
    tree, plain, students = both
    for student in students:
        assert of(tree, student) == of(plain, student), student


def test_a_file_that_changes_while_it_is_judged_changes_no_result(
    both: tuple[CourseTree, CourseTree, list[str]],
) -> None:
    tree, _, students = both
    student = students[0]
    path, graded = tree.submitted("adding", student), FileStore(tree).record("adding", student)
    assert graded is not None
    before = notebook(tree, student), rows(tree, SCORES, [student]), tree.feedback("adding", student).read_text()
    data, taken = path.read_bytes(), canonical(tree, student)
    path.write_bytes(b"{")
    try:
        write_results(tree, graded, taken)
    finally:
        path.write_bytes(data)
    after = notebook(tree, student), rows(tree, SCORES, [student]), tree.feedback("adding", student).read_text()
    assert after == before
