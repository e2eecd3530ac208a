"""nbgrader's gradebook of a class: refusals in, marks of people out, and the settings for grading."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nbgrader.plugins.export import CsvExportPlugin

from mlsys.classroom.store.record import Record
from mlsys.course.nbgrader import log_to, nbgrader_config, open_gradebook
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.judge.grade_question import LIMITS


def enter_refusal(tree: CourseTree, lab: str, student: str, reason: str) -> None:
    """Enter a submission that cannot be graded: no points, the reason as a comment, a person's marks untouched."""
    with open_gradebook(tree) as gradebook:
        gradebook.update_or_create_student(student)
        submission = gradebook.update_or_create_submission(lab, student)
        for notebook in submission.notebooks:
            for grade in notebook.grades:
                grade.auto_score, grade.needs_manual_grade = 0.0, False
            for comment in notebook.comments:
                comment.auto_comment = f"refused: {reason}"
        gradebook.db.commit()


def marks(tree: CourseTree, lab: str) -> dict[tuple[str, str], float]:
    """The points that a person gave, by student and grade_id."""
    with open_gradebook(tree) as gradebook:
        return {
            (submission.student.id, grade.cell.name): float(grade.score)
            for submission in gradebook.assignment_submissions(lab)
            for notebook in submission.notebooks
            for grade in notebook.grades
            if grade.manual_score is not None
        }


def export_gradebook(tree: CourseTree, lab: str, path: Path) -> None:
    """Write one lab's grades as nbgrader itself exports them."""
    with open_gradebook(tree) as gradebook, log_to(tree.log(f"{lab}-export")):
        CsvExportPlugin(to=str(path), assignment=[lab]).export(gradebook)


def configured_device(tree: CourseTree) -> str:
    """The device that the course's `nbgrader_config.py` sets for grading."""
    return str(nbgrader_config(tree).RunQuestions.get("device", "auto"))


def configured_cpu_limit_s(tree: CourseTree) -> int:
    """The limit on computing that the course's `nbgrader_config.py` sets for each question."""
    return int(nbgrader_config(tree).RunQuestions.get("cpu_limit_s", LIMITS.cpu_s))


def marked_records(tree: CourseTree, lab: str) -> tuple[list[Record], list[Path]]:
    """Return the records of a lab with the points that people gave, and the files of records that cannot be read.

    Raises:
        UserError: there are none.
    """
    paths = sorted((tree.root / "records" / lab).glob("*.json"))
    if not paths:
        raise UserError(f"{tree.root} has no results of {lab}: run `mlsys grade {lab}` first")
    read = [(path, Record.read(path)) for path in paths]
    given = _marks(tree, lab)
    records = [
        replace(
            record,
            questions=tuple(
                question.marked(given[record.student, question.grade_id])
                if (record.student, question.grade_id) in given
                else question
                for question in record.questions
            ),
        )
        for _, record in read
        if record
    ]
    return records, [path for path, record in read if not record]


def _marks(tree: CourseTree, lab: str) -> Mapping[tuple[str, str], float]:
    # Opening a gradebook that is not there would make one.
    if not (tree.root / "gradebook.db").is_file():
        return {}

    return marks(tree, lab)
