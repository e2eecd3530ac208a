"""Judging submissions side by side, each in one of a few worker processes with a sandbox of its own.

Workers only find verdicts. The gradebook, records and feedback are written by the process that started them, so there
is one writer, and a run that is killed at any moment goes on where it was.
"""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from mlsys.course.digest import digest
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.grading.reader import Refused, read_submission
from mlsys.grading.records import QuestionRecord
from mlsys.grading.submission import canonical_notebook

MOST_S = 1800
"""Seconds after which a worker that still judges one submission is given up: questions have limits, this has none."""
TRIES = 2
"""How often a submission is judged whose worker process died."""


@dataclass(frozen=True)
class Judged:
    """What a worker found: the verdicts, or why the submission is refused."""

    student: str
    submission: str
    questions: tuple[QuestionRecord, ...] = ()
    refused: str = ""


def judge_all(
    tree: CourseTree, lab: str, students: Sequence[str], *, workers: int, device: str, cpu_limit_s: int
) -> Iterator[Judged]:
    """Judge submissions in `workers` processes, and yield each as it is done.

    A submission whose worker process dies or fails is tried once more, alone; then it is refused with that reason.
    """
    left = list(students)
    for attempt in range(TRIES):
        groups = [left] if attempt == 0 else [[student] for student in left]
        left = []
        for group in groups:
            done: set[str] = set()
            for judged in _judge_group(tree, lab, group, min(workers, len(group)), device, cpu_limit_s):
                done.add(judged.student)
                yield judged
            left += [student for student in group if student not in done]
    for student in left:
        yield Judged(student, "", refused="the grading process failed or died on it twice; look at it by hand")


def _judge_group(
    tree: CourseTree, lab: str, students: Sequence[str], workers: int, device: str, cpu_limit_s: int
) -> Iterator[Judged]:
    if not students:
        return
    context = multiprocessing.get_context("spawn")  # a fork would take this process's threads and sandbox with it
    indices = context.Queue()
    for index in range(workers):
        indices.put(index)
    arguments = (str(tree.root.resolve()), lab, device, cpu_limit_s)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_take_index, initargs=(indices,)) as pool:
        futures: list[Future[Judged]] = [pool.submit(_judge_one, student, *arguments) for student in students]
        try:
            for future in as_completed(futures):
                error = future.exception()
                if isinstance(error, UserError):
                    raise error  # a missing package or sandbox, which no submission can help
                if error is None:
                    yield future.result()
                # Whoever made a worker fail, or was left when it died, is tried again.
        except CancelledError:
            return
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _take_index(indices: "multiprocessing.Queue[int]") -> None:
    from mlsys.grading import runner

    runner.slot_index = indices.get()


def _judge_one(student: str, root: str, lab: str, device: str, cpu_limit_s: int) -> Judged:
    from mlsys.grading.questions import judge_questions

    signal.alarm(MOST_S)  # the next submission sets it anew
    tree = CourseTree(Path(root))
    path = tree.submitted(lab, student)
    submission = digest(path.read_bytes()) if path.is_file() else ""
    try:
        notebook = canonical_notebook(tree, lab, read_submission(path))
    except Refused as reason:
        return Judged(student, submission, refused=str(reason))
    return Judged(student, submission, judge_questions(tree, lab, notebook, device, cpu_limit_s))
