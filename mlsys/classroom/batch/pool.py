"""Judge submissions side by side, each in one of a few worker processes with a sandbox of its own.

Workers only find verdicts. The gradebook, records and feedback are written by the process that started them, so there
is one writer, and a run that is killed at any moment goes on where it was.

Every worker is a process of its own and judges one submission at a time, so that its death blames no other. What was
lost with a worker or a sandbox is tried once more at the end, with nothing beside it: only the questions concerned.
"""

import math
import multiprocessing
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from mlsys.classroom.batch.device_times import DeviceTime, DeviceTimes
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.processes.workers import worker
from mlsys.course.lab import Lab
from mlsys.course.term import tree_of
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.judge.gpus import Gpu, gpus_to_grade_on
from mlsys.judge.grade_question import GPU_TIME_FACTOR, LIMITS, device_and_versions

_T = TypeVar("_T")
_SLACK = 2
"""Judging a submission may take this many times as long as its questions may run: the tests take time too."""
LATER_TOGETHER = 4
"""Submissions for each worker whose timings wait before these are made; a run that is killed makes as many again."""


class JudgePool(Protocol):
    """Where submissions are judged side by side; leaving its `with` block ends what was started.

    Attributes:
        workers: how many judge side by side.
        elsewhere: whether they are on other machines, each of which has checked its own sandbox.
    """

    elsewhere: bool

    @property
    def workers(self) -> int:
        """Return how many judge side by side."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def machine(self, device: str) -> dict[str, Any]:
        """Return the `device`, "cpu" or "gpu", on which questions would be judged, for an asked one."""

    def prepare(self, lab: str, device: str, cpu_limit_s: int) -> None:
        """Have every worker open the sandbox in which it will judge a lab."""

    def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
        """Judge submissions, and yield each as it is done."""

    def device_times(self) -> tuple[DeviceTime, ...]:
        """Return how busy each GPU was in the last `judge_all`; nothing where that is not known."""


class Pool:
    """Processes of this machine that judge submissions side by side; each keeps its sandbox from task to task.

    A process begins when it is first needed. Leaving the `with` block ends them all. Each process sees one GPU, and the
    GPUs have the same number of processes, or one more.

    Args:
        course: folder of the course, in which a worker finds the lab.
        workers: how many processes judge side by side.
        first_sandbox: number of the first worker's sandbox, where other pools use this machine too.
        gpus: those to judge on; by default all of this machine that are of the first one's model.
    """

    elsewhere = False

    def __init__(self, course: Path, workers: int, first_sandbox: int = 0, gpus: Sequence[Gpu] | None = None) -> None:
        self.workers = workers
        self._gpus = gpus
        self._times = DeviceTimes(())
        self._course = course
        self._first_sandbox = first_sandbox
        self._processes: dict[int, ProcessPoolExecutor] = {}
        self._given_up = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def machine(self, device: str) -> dict[str, Any]:
        """Ask a worker for the device that it would judge on, "cpu" or "gpu", and its `versions`.

        Raises:
            UserError: a package or the asked device is missing there, or the worker does not start.
        """
        try:
            self._find_gpus(device)
            return self._submit(0, device_and_versions, device).result()
        except BrokenProcessPool as error:
            raise UserError("the process that judges does not start: is memory short?") from error

    def _find_gpus(self, device: str) -> None:
        """Ask a worker which GPUs there are, unless that is known, or none is asked for."""
        if self._gpus is not None or device == "cpu":
            return
        self._gpus = self._submit(0, gpus_to_grade_on, device).result()
        self._times = DeviceTimes(map(str, self._gpus))
        if len(self._gpus) > 1:
            self._processes.pop(0).shutdown()  # CUDA has shown it all of them

    def _gpu(self, index: int) -> Gpu | None:
        """Return the GPU of a worker, if there are any."""
        return self._gpus[index % len(self._gpus)] if self._gpus else None

    def device_times(self) -> tuple[DeviceTime, ...]:
        """Return how busy each GPU was in the last `judge_all`; what was tried once more at its end does not count."""
        return self._times.found()

    def prepare(self, lab: str, device: str, cpu_limit_s: int) -> None:
        """Have every worker open the sandbox in which it will judge a lab, while others do something else.

        What goes wrong here goes wrong again, and is reported, when the worker gets its first task.
        """
        self._find_gpus(device)
        for index in range(self.workers):
            self._submit(index, _open_sandbox, self._course, lab, device, cpu_limit_s)

    def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
        """Judge submissions, and yield each as it is done.

        A submission whose worker dies or fails is tried once more, alone, and so are questions whose process was lost.
        A submission that fails its worker twice is refused with that reason, and so is one whose judging takes too
        long; a question lost twice counts as crashed.

        Args:
            tasks: the submissions, each taken when a worker is about to be free; what is refused already comes back as
                it is.
        """
        first: dict[tuple[str, str], Judged] = {}
        again: list[Task] = []
        for task, judged in self._in_workers(tasks):
            if task is None or (judged is not None and not judged.lost):
                assert judged is not None
                yield judged
            elif judged is None:
                again.append(replace(task, later=()))
            else:
                first[task.student, task.submission] = judged
                again.append(replace(task, only=judged.lost, later=()))
        if not again or self._given_up:
            return
        self._end()  # nothing beside what is tried again, no sandbox of another worker either
        with Pool(self._course, 1, self._first_sandbox, self._gpus) as alone:
            for task, judged in alone._in_workers(again):
                assert task is not None
                if judged is None:
                    reason = "the grading process failed or died on it twice; look at it by hand"
                    yield Judged(task.student, task.submission, refused=reason, failed=True)
                elif task.only:
                    yield first[task.student, task.submission].with_questions(judged.questions)
                else:
                    yield judged

    def _in_workers(self, tasks: Iterable[Task | Judged]) -> Iterator[tuple[Task | None, Judged | None]]:
        """Yield every task with what its worker found, or None if that died or failed; and what is refused already.

        What a task leaves for later waits until much does, and is then judged before anything else begins: a GPU that
        ran empty for the timings of each submission would idle for most of a run.
        """
        waiting = iter(tasks)
        running: dict[Future[Judged], tuple[int, _Step, float]] = {}
        idle = list(range(self.workers))
        upcoming: _Step | None = None
        later: list[_Step] = []
        now: deque[_Step] = deque()
        more = True

        def give() -> None:
            nonlocal upcoming
            while idle and (now or upcoming):
                if now:
                    step = now.popleft()
                elif upcoming is None or any(one.first for _, one, _ in running.values()):
                    return
                else:
                    step, upcoming = upcoming, None
                self._find_gpus(step.task.device)
                on_gpus = Counter(self._gpu(index) for index, *_ in running.values())
                index = min(idle, key=lambda index: on_gpus[self._gpu(index)])
                idle.remove(index)
                future = self._submit(index, _judge_one, step.part, self._course)
                running[future] = index, step, time.monotonic()
                if gpu := self._gpu(index):
                    self._times.begins(str(gpu))
                    future.add_done_callback(partial(_ended, self._times, str(gpu)))
                self._times.submissions_wait(bool(more or now or later))

        self._times = DeviceTimes(map(str, self._gpus or ()))
        self._times.submissions_wait(more)
        while more or running or later or now:
            if not more or len(later) >= LATER_TOGETHER * self.workers:
                now.extend(later)
                later.clear()
                give()
            while more and upcoming is None:  # one more than there are workers: it is read while they judge
                found = next(waiting, None)
                if isinstance(found, Judged):
                    yield None, found
                else:
                    more = found is not None
                    upcoming = _Step(found) if found else None
                    self._times.submissions_wait(bool(more or now or later))
                    give()
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                index, step, started_s = running.pop(future)
                error = future.exception()
                if isinstance(error, UserError):
                    raise error  # a missing package or sandbox, which no submission can help
                idle.append(index)
                give()
                if isinstance(error, BrokenProcessPool) and time.monotonic() - started_s >= step.task.time_limit_s:
                    reason = _took_too_long(step.task.time_limit_s)
                    yield step.task, Judged(step.task.student, step.task.submission, refused=reason, failed=True)
                elif error:
                    yield step.task, None
                elif step.first:
                    yield step.task, step.first.with_later(future.result())
                elif step.task.later:
                    later.append(_Step(step.task, future.result()))
                else:
                    yield step.task, future.result()

    def _submit(self, index: int, function: Callable[..., _T], *args: object) -> Future[_T]:
        """Hand a call to one worker, which is started if it does not run or has died."""
        if index in self._processes:
            with suppress(BrokenProcessPool):
                return self._processes[index].submit(function, *args)
            self._processes.pop(index).shutdown()
        gpu = self._gpu(index)
        process = worker(index, self.workers, self._first_sandbox, gpu.visible if gpu else "")
        self._processes[index] = process
        return process.submit(function, *args)

    def give_up(self) -> None:
        """Kill what judges in this process, whose end must not wait for it, and try nothing again."""
        self._given_up = True
        for process in multiprocessing.active_children():
            process.kill()

    def _end(self) -> None:
        """End all workers."""
        while self._processes:
            self._processes.popitem()[1].shutdown()


@dataclass(frozen=True)
class _Step:
    """A submission on its way: `first` is what was found so far, if some of its questions are judged later."""

    task: Task
    first: Judged | None = None

    @property
    def part(self) -> Task:
        """What is to be judged now."""
        return replace(self.task, only=self.task.later, later=()) if self.first else self.task


def _ended(times: DeviceTimes, gpu: str, _: Future[Judged]) -> None:
    times.ends(gpu)


def time_limit_s(lab: Lab, device: str, cpu_limit_s: int) -> int:
    """Return after how many seconds the judging of one submission is given up: twice what its questions may take.

    Args:
        lab: the lab.
        device: "cpu" or "gpu", on the machine that judges.
        cpu_limit_s: seconds of computing that one question may use.
    """
    factor = cpu_limit_s / LIMITS.cpu_s * (GPU_TIME_FACTOR if device == "gpu" else 1)
    return math.ceil(_SLACK * len(lab.questions) * factor * LIMITS.wall_s)


def _took_too_long(limit_s: int) -> str:
    return (
        f"judging it took longer than {limit_s} s, {_SLACK} times what all its questions may take, and was given up; "
        "look at it by hand"
    )


def _open_sandbox(course: Path, lab: str, device: str, cpu_limit_s: int) -> None:
    from mlsys.classroom.batch.submission import open_sandbox

    open_sandbox(CourseTree(course), lab, device, cpu_limit_s)


def _judge_one(task: Task, course: Path) -> Judged:
    from mlsys.classroom.batch.submission import judge_questions

    signal.alarm(task.time_limit_s)  # ends this process; the next submission sets it anew
    started_s = time.monotonic()
    tree = CourseTree(course)
    if (version := released_lab(tree_of(tree, task.lab, task.terms.term), task.lab).version) != task.version:
        raise UserError(f"{task.lab} is at version {version} here, not at {task.version}: release it again, then grade")
    questions = judge_questions(
        tree,
        task.lab,
        task.notebook,
        task.device,
        task.cpu_limit_s,
        task.terms,
        only=task.only,
        later=task.later,
        tries=1,
        hidden=task.hidden,
    )
    return Judged(
        task.student,
        task.submission,
        questions,
        notebook=task.notebook,
        terms=task.terms,
        seconds=time.monotonic() - started_s,
        **device_and_versions(task.device),
    )
