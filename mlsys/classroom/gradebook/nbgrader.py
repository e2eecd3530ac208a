"""nbgrader's gradebook of a class: refusals in, its own export out, and the settings for grading."""

from pathlib import Path

from nbgrader.plugins.export import CsvExportPlugin

from mlsys.course.nbgrader import log_to, nbgrader_config, open_gradebook
from mlsys.course.tree import CourseTree
from mlsys.judge.grade_question import LIMITS


def record_refusal(tree: CourseTree, lab: str, student: str, reason: str) -> None:
    """Record a submission that cannot be graded: no points, the reason as a comment, a person's marks untouched."""
    with open_gradebook(tree) as gradebook:
        gradebook.update_or_create_student(student)
        submission = gradebook.update_or_create_submission(lab, student)
        for notebook in submission.notebooks:
            for grade in notebook.grades:
                grade.auto_score, grade.needs_manual_grade = 0.0, False
            for comment in notebook.comments:
                comment.auto_comment = f"refused: {reason}"
        gradebook.db.commit()


def export_gradebook(tree: CourseTree, lab: str, path: Path) -> None:
    """Write one lab's grades as nbgrader itself exports them."""
    path.unlink(missing_ok=True)  # nbgrader would write into the file that a backup keeps
    with open_gradebook(tree) as gradebook, log_to(tree.log(f"{lab}-export")):
        CsvExportPlugin(to=str(path), assignment=[lab]).export(gradebook)


def configured_device(tree: CourseTree) -> str:
    """Return the device that the course's `nbgrader_config.py` sets for grading."""
    return str(nbgrader_config(tree).RunQuestions.get("device", "auto"))


def configured_cpu_limit_s(tree: CourseTree) -> int:
    """Return the limit on computing that the course's `nbgrader_config.py` sets for each question."""
    return int(nbgrader_config(tree).RunQuestions.get("cpu_limit_s", LIMITS.cpu_s))
