"""nbgrader's converters, run in this process with the course's configuration and their log kept in a file."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins.export import CsvExportPlugin
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from mlsys.course.tree import CourseTree


class NbgraderFailed(Exception):
    """A step of nbgrader ended with an error; `log` is what it said."""

    def __init__(self, step: str, log: str, path: Path) -> None:
        errors = [line for line in log.splitlines() if line.strip()]
        super().__init__(f"{step}: {errors[-1] if errors else 'no message'} (all of it: {path})")
        self.log = log


def generate_assignment(tree: CourseTree, lab: str) -> None:
    """Make `release/` from `source/` and enter the questions in the gradebook."""
    _find_nbgraders_programs()
    config = nbgrader_config(tree)
    config.CourseDirectory.root = str(tree.root.resolve())
    config.CourseDirectory.assignment_id = lab
    config.GenerateAssignment.force = True
    path = tree.log(f"{lab}-GenerateAssignment")
    with _log_to(path):
        try:
            GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()
        except NbGraderException as error:
            raise NbgraderFailed("GenerateAssignment", path.read_text(encoding="utf-8"), path) from error


@contextmanager
def open_gradebook(tree: CourseTree) -> Iterator[Gradebook]:
    """The course's gradebook, closed afterwards."""
    _find_nbgraders_programs()
    with Gradebook(tree.gradebook_url) as gradebook:
        yield gradebook


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
    with open_gradebook(tree) as gradebook, _log_to(tree.log(f"{lab}-export")):
        CsvExportPlugin(to=str(path), assignment=[lab]).export(gradebook)


def configured_device(tree: CourseTree) -> str:
    """The device that the course's `nbgrader_config.py` sets for grading."""
    return str(nbgrader_config(tree).RunQuestions.get("device", "auto"))


def configured_cpu_limit_s(tree: CourseTree) -> int:
    """The limit on computing that the course's `nbgrader_config.py` sets for each question."""
    from mlsys.judge.grade_question import LIMITS

    return int(nbgrader_config(tree).RunQuestions.get("cpu_limit_s", LIMITS.cpu_s))


def nbgrader_config(tree: CourseTree) -> Config:
    """What the course's `nbgrader_config.py` sets."""
    return PyFileConfigLoader("nbgrader_config.py", path=str(tree.root)).load_config()


@contextmanager
def _log_to(path: Path) -> Iterator[None]:
    logger = logging.getLogger("traitlets")  # what converters without an application log to
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    kept = logger.handlers[:], logger.propagate, logger.level
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers, logger.propagate = kept[0], kept[1]
        logger.setLevel(kept[2])
        handler.close()


def _find_nbgraders_programs() -> None:
    # nbgrader starts `alembic` by name, which stands beside the Python that runs this.
    folder = str(Path(sys.executable).parent)
    if folder not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])
