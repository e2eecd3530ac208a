"""All questions of one submission: the verdict of each, as it goes into the record."""

import time
from dataclasses import replace

from nbformat import NotebookNode
from nbgrader.utils import compute_checksum

from mlsys.course.digest import digest
from mlsys.course.lab import Question
from mlsys.course.tree import CourseTree
from mlsys.grading.ingest import grade_id
from mlsys.grading.records import QuestionRecord
from mlsys.grading.runner import LIMITS, grade_question
from mlsys.grading.submission import released_lab, submission_of
from mlsys.grading.verdicts import Verdict


def course_seed(tree: CourseTree, lab: str) -> int:
    """What the hidden tests of a lab draw their inputs from: the same in every run of a course."""
    return int(digest(tree.secret(), lab)[:8], 16)


def judge_questions(
    tree: CourseTree, name: str, notebook: NotebookNode, device: str, cpu_limit_s: int
) -> tuple[QuestionRecord, ...]:
    """Run every question of a canonical notebook, with the tests of the version that the student worked on.

    Args:
        tree: the course.
        name: the lab.
        notebook: the canonical notebook of a submission.
        device: "cpu", "gpu" or "auto".
        cpu_limit_s: seconds of computing that one question may use.
    """
    current = released_lab(tree, name)
    version = notebook.metadata["mlsys"]["submitted_version"]
    lab = current if version == current.version else released_lab(tree, name, version)
    cells = {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}
    submission, seed = submission_of(notebook, lab), course_seed(tree, name)
    # Waiting is limited in proportion.
    limits = replace(LIMITS, cpu_s=cpu_limit_s, wall_s=cpu_limit_s * LIMITS.wall_s / LIMITS.cpu_s)

    def judged(question: Question) -> QuestionRecord:
        started = time.monotonic()
        if question.written:
            verdict = _written_verdict(cells[question.graded.id])
        else:
            asked = next((other for other in lab.questions if other.name == question.name), question)
            verdict = grade_question(submission, asked, device, seed=seed, limits=limits)
        return QuestionRecord.of(
            verdict,
            question=question.name,
            title=question.title,
            grade_id=question.graded.id,
            max_points=question.points,
            seconds=time.monotonic() - started,
        )

    return tuple(judged(question) for question in current.questions)


def _written_verdict(cell: NotebookNode) -> Verdict:
    if cell.metadata["nbgrader"].get("checksum") == compute_checksum(cell):
        return Verdict("not implemented", message="No answer was written.")
    return Verdict("needs review")
