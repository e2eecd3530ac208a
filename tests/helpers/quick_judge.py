"""The commands of `mlsys` with a judge that runs no code: for tests of who judges what, and what becomes of it.

    python -m helpers.quick_judge worker ADDRESS
    python -m helpers.quick_judge grade adding --submissions in --cluster ADDRESS

Verdicts follow from the digest of the submission, so they are the same wherever and however often it is judged.
MLSYS_QUICK_S is how long judging waits, in seconds. With MLSYS_QUICK_GPU=1 there seems to be a GPU, and with
MLSYS_QUICK_GPUS=GPU-a,GPU-b there seem to be these. The last question of the student "timed" needs one.
A student whose name begins with "kills" ends the worker.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from mlsys.classroom import grade_class, plan
from mlsys.classroom.batch.device_times import DeviceTime
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.gradebook import feedback, quote_answers
from mlsys.classroom.intake import reading
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.processes import workers
from mlsys.classroom.store.record import QuestionRecord
from mlsys.cli.main import main
from mlsys.course.tree import CourseTree
from mlsys.judge.gpus import Gpu

MACHINE: dict[str, Any] = {"device": "cpu", "versions": {"python": "3", "torch": "2", "triton": "3"}}


class QuickPool:
    """Takes the place of `mlsys.classroom.batch.pool.Pool`; judges in this process."""

    elsewhere = False

    def __init__(self, course: Path, workers: int = 1, first_sandbox: int = 0, gpus: Sequence[Gpu] = ()) -> None:
        self.workers, self._course = workers, course
        self._gpu = str(gpus[0]) if gpus else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def give_up(self) -> None:
        pass

    def machine(self, device: str) -> dict[str, Any]:
        return MACHINE

    def prepare(self, lab: str, device: str, cpu_limit_s: int) -> None:
        pass

    def device_times(self) -> tuple[DeviceTime, ...]:
        return ()

    def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
        for task in tasks:
            yield task if isinstance(task, Judged) else self._judge(task)

    def _judge(self, task: Task) -> Judged:
        if task.student.startswith("kills"):
            os.kill(os.getpid(), signal.SIGKILL)
        if task.student:  # the reference solution has none
            time.sleep(float(os.environ.get("MLSYS_QUICK_S", "0.1")))
        questions = tuple(
            verdict_of(task, one.name, one.title, one.graded.id, one.points, number)
            for number, one in enumerate(released_lab(CourseTree(self._course), task.lab).questions)
            if not task.only or one.name in task.only
        )
        if task.student == "timed" and task.device == "cpu":
            questions = (*questions[:-1], replace(questions[-1], verdict="needs gpu", points=0.0))
        common = {"notebook": task.notebook, "terms": task.terms, "seconds": 0.1}
        device = "cpu" if task.device == "cpu" else MACHINE["device"]
        here = MACHINE | {"device": device, "gpu": self._gpu}
        return Judged(task.student, task.submission, questions, **common, **here)


def verdict_of(task: Task, name: str, title: str, grade_id: str, points: float, number: int) -> QuestionRecord:
    """The verdict on one question: which one follows from the submission."""
    passes = not task.student or int(task.submission[number], 16) % 3 > 0
    verdict, given = ("passed", points) if passes else ("wrong answer", 0.0)
    return QuestionRecord(name, title, grade_id, verdict, given, points, "" if passes else f"see {task.submission}")


def be_quick() -> None:
    """Put the quick judge in the place of the other one, in this process."""
    gpus = tuple(
        Gpu(uuid, "simulated", uuid) for uuid in filter(None, os.environ.get("MLSYS_QUICK_GPUS", "").split(","))
    )
    MACHINE["device"] = "gpu" if gpus or os.environ.get("MLSYS_QUICK_GPU") else "cpu"
    grade_class.Pool = QuickPool  # type: ignore[misc, assignment]
    plan.check_sandbox = lambda *_: ""
    workers.warm_up = lambda: None
    for module in (quote_answers, feedback, reading):  # without a process of its own: what is read here is ours
        module.limited = lambda work, *arguments, time_s: work(*arguments)  # type: ignore[attr-defined]
    if "--cluster" in sys.argv or "worker" in sys.argv:
        from mlsys.fleet import worker

        worker.Pool = QuickPool  # type: ignore[misc, assignment]
        worker.check_sandbox = lambda *_: ""
        worker.device_and_versions = lambda _: MACHINE
        worker.visible_gpus = lambda: gpus


if __name__ == "__main__":
    be_quick()
    sys.exit(main())
