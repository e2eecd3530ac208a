"""Judging submissions side by side, each in one of a few worker processes with a sandbox of its own.

Workers only find verdicts. The gradebook, records and feedback are written by the process that started them, so there
is one writer, and a run that is killed at any moment goes on where it was.

Every worker is a process of its own and judges one submission at a time, so that its death blames no other. What was
lost with a worker or a sandbox is tried once more at the end, with nothing beside it: only the questions concerned.
"""

import math
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from mlsys.classroom.intake.canonical import canonical_notebook, released_lab
from mlsys.classroom.intake.reader import Refused, read_submission
from mlsys.classroom.processes.workers import worker
from mlsys.classroom.store.record import QuestionRecord
from mlsys.classroom.store.run import terms
from mlsys.course.digest import digest
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.judge.grade_question import GPU_TIME_FACTOR, LIMITS, check_device

MOST_S = 1800
"""Seconds after which the judging of a lab's own answers is given up."""

_SLACK = 2
"""Judging a submission may take this many times as long as its questions may run: reading and tests take time too."""


@dataclass(frozen=True)
class Judged:
    """What a worker found: the verdicts, or why the submission is refused."""

    student: str
    submission: str
    questions: tuple[QuestionRecord, ...] = ()
    refused: str = ""

    @property
    def lost(self) -> tuple[str, ...]:
        """Names of the questions whose process was killed from outside or lost with its slot."""
        return tuple(question.question for question in self.questions if question.lost)

    def with_questions(self, again: Sequence[QuestionRecord]) -> "Judged":
        """The same with what was found for some questions in another try."""
        found = {question.question: question for question in again}
        return replace(self, questions=tuple(found.get(one.question, one) for one in self.questions))


@dataclass(frozen=True)
class _Task:
    """A submission to judge: whole, or `only` some questions of it."""

    student: str
    only: tuple[str, ...] = ()


def judge_all(
    tree: CourseTree, lab: str, students: Sequence[str], *, workers: int, device: str, cpu_limit_s: int
) -> Iterator[Judged]:
    """Judge submissions in `workers` processes, and yield each as it is done.

    A submission whose worker dies or fails is tried once more, alone, and so are questions whose process was lost. A
    submission that fails its worker twice is refused with that reason, and so is one whose judging takes too long; a
    question lost twice counts as crashed.
    """
    arguments = (str(tree.root.resolve()), lab, device, cpu_limit_s, time_limit_s(tree, lab, device, cpu_limit_s))
    first: dict[str, Judged] = {}
    again: list[_Task] = []
    for task, judged in _in_workers([_Task(student) for student in students], workers, arguments):
        if judged is None:
            again.append(task)
        elif judged.lost:
            first[task.student] = judged
            again.append(_Task(task.student, judged.lost))
        else:
            yield judged
    for task, judged in _in_workers(again, 1, arguments):
        if judged is None:
            reason = "the grading process failed or died on it twice; look at it by hand"
            yield Judged(task.student, "", refused=reason)
        elif task.only:
            yield first[task.student].with_questions(judged.questions)
        else:
            yield judged


def time_limit_s(tree: CourseTree, lab: str, device: str, cpu_limit_s: int) -> int:
    """Seconds after which a worker that still judges one submission is given up: twice what its questions may take."""
    if not tree.source(lab).is_file():
        return MOST_S
    factor = cpu_limit_s / LIMITS.cpu_s * (GPU_TIME_FACTOR if check_device(device) == "gpu" else 1)
    return math.ceil(_SLACK * len(released_lab(tree, lab).questions) * factor * LIMITS.wall_s)


def _in_workers(
    tasks: Sequence[_Task], workers: int, arguments: tuple[str, str, str, int, int]
) -> Iterator[tuple[_Task, Judged | None]]:
    """Every task with what its worker found, or None if that died or failed."""
    limit_s = arguments[-1]
    workers = min(workers, len(tasks))
    waiting = deque(tasks)
    with ExitStack() as stack:
        processes: dict[int, ProcessPoolExecutor] = {}
        running: dict[Future[Judged], tuple[int, _Task, float]] = {}

        def give_next_task(index: int) -> None:
            if not waiting:
                return
            if index not in processes:
                processes[index] = stack.enter_context(worker(index, workers))
            task = waiting.popleft()
            future = processes[index].submit(_judge_one, task.student, task.only, *arguments)
            running[future] = index, task, time.monotonic()

        for index in range(workers):
            give_next_task(index)
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                index, task, started_s = running.pop(future)
                error = future.exception()
                if isinstance(error, UserError):
                    raise error  # a missing package or sandbox, which no submission can help
                if isinstance(error, BrokenProcessPool):
                    del processes[index]  # the next task starts another
                give_next_task(index)
                if isinstance(error, BrokenProcessPool) and time.monotonic() - started_s >= limit_s:
                    yield task, Judged(task.student, "", refused=_took_too_long(limit_s))
                else:
                    yield task, None if error else future.result()


def _took_too_long(limit_s: int) -> str:
    return (
        f"judging it took longer than {limit_s} s, {_SLACK} times what all its questions may take, and was given up; "
        "look at it by hand"
    )


def _judge_one(
    student: str, only: tuple[str, ...], root: str, lab: str, device: str, cpu_limit_s: int, limit_s: int
) -> Judged:
    from mlsys.classroom.batch.submission import judge_questions

    signal.alarm(limit_s)  # ends this process; the next submission sets it anew
    tree = CourseTree(Path(root))
    path = tree.submitted(lab, student)
    submission = digest(path.read_bytes()) if path.is_file() else ""
    try:
        notebook = canonical_notebook(tree, lab, read_submission(path))
    except Refused as reason:
        return Judged(student, submission, refused=str(reason))
    questions = judge_questions(
        tree, lab, notebook, device, cpu_limit_s, terms(tree, lab, student, submission), only=only, tries=1
    )
    return Judged(student, submission, questions)
