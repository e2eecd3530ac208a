"""The different answers of a sample class: most students answer most questions alike, and those are judged once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mlsys.classroom.batch.pool import Pool
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.intake.canonical import canonical_notebook, released_lab, submission_of
from mlsys.classroom.intake.reader import Refused, read_submission
from mlsys.classroom.store.record import QuestionRecord
from mlsys.course.lab import Question
from mlsys.course.tree import CourseTree
from mlsys.judge.grade_question import Submission, select_cells

Answer = tuple[str, str]
"""A question, and the cells that run for it."""


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
    found: dict[Answer, SampleAnswer] = {}
    for path in sorted(handed_in.glob("*.ipynb")):
        try:
            notebook = canonical_notebook(tree, name, read_submission(path))
        except Refused:
            continue
        submission = submission_of(notebook, lab)
        for question in lab.questions:
            if question.written:
                continue
            answer = answer_to(question, submission)
            found.setdefault(answer, SampleAnswer(submission, question, [])).students.append(path.stem)
    return list(found.values())


def answer_to(question: Question, submission: Submission) -> Answer:
    """The answer of a submission to a question that has tests."""
    return question.name, repr(select_cells(submission, question).all)


class EachAnswerOnce(Pool):
    """Processes that judge each different answer of a class once; its record is that of all who answer so.

    A verdict depends on the cells that run, on the tests, and on random inputs that all submissions of a run share.
    """

    def __init__(self, tree: CourseTree, name: str, workers: int) -> None:
        super().__init__(tree.root.resolve(), workers)
        self._lab = released_lab(tree, name)

    def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
        """Judge the answers that no submission before had, and yield every submission when the last is judged."""
        answers: dict[str, dict[str, Answer]] = {}
        taken: set[Answer] = set()

        def parts() -> Iterator[Task | Judged]:
            for task in tasks:
                if isinstance(task, Judged) or task.only:  # the reference solution's questions are asked one by one
                    yield task
                    continue
                answers[task.student] = own = self._answers(task)
                new = [question for question, answer in own.items() if answer not in taken]
                taken.update(own.values())
                yield replace(task, only=tuple(new or list(own)[:1]))  # no name at all would ask for every question

        found: dict[Answer, QuestionRecord] = {}
        judged = []
        for one in super().judge_all(parts()):
            if one.student not in answers or one.refused:
                yield one
                continue
            judged.append(one)
            found |= {answers[one.student][record.question]: record for record in one.questions}
        for one in judged:
            yield replace(one, questions=tuple(found[answer] for answer in answers[one.student].values()))

    def _answers(self, task: Task) -> dict[str, Answer]:
        """A submission's answers by question; what a person reads is of one student only."""
        submission = submission_of(task.notebook, self._lab)
        return {
            question.name: (question.name, task.student) if question.written else answer_to(question, submission)
            for question in self._lab.questions
        }
