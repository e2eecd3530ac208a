"""The different answers of a sample class: most students answer most questions alike, and those are judged once."""

from dataclasses import dataclass
from pathlib import Path

from mlsys.classroom.intake.canonical import canonical_notebook, released_lab, submission_of
from mlsys.classroom.intake.reader import Refused, read_submission
from mlsys.course.lab import Question
from mlsys.course.tree import CourseTree
from mlsys.judge.grade_question import Submission, select_cells


@dataclass(frozen=True)
class SampleAnswer:
    """One way to answer a question that has tests, and the students who answer so.

    `submission` is that of the first of them: all cells that run for the question are the same in the others.
    """

    submission: Submission
    question: Question
    students: list[str]


def sample_answers(name: str, tree: CourseTree, handed_in: Path) -> list[SampleAnswer]:
    """Read the notebooks of a folder that are not refused, and return their different answers."""
    lab = released_lab(tree, name)
    found: dict[tuple[str, ...], SampleAnswer] = {}
    for path in sorted(handed_in.glob("*.ipynb")):
        try:
            notebook = canonical_notebook(tree, name, read_submission(path))
        except Refused:
            continue
        submission = submission_of(notebook, lab)
        for question in lab.questions:
            if question.written:
                continue
            cells = select_cells(submission, question).all
            key = (question.name, *(f"{cell.label}\n{cell.source}" for cell in cells))
            found.setdefault(key, SampleAnswer(submission, question, [])).students.append(path.stem)
    return list(found.values())
