"""The process that judges what waits in the queue, beside the web process and apart from the grading that counts.

It draws its random inputs with a secret of its own, so what students learn from verdicts says nothing about the inputs
of the run that counts. By default only the tests run that students see anyway.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from rich.console import Console

from mlsys.classroom.batch.pool import time_limit_s
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.gradebook.nbgrader import configured_cpu_limit_s, configured_device
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.intake.reading import LabReader
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.run import Terms, seed
from mlsys.course.digest import digest
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.judge.sandbox.check import check_sandbox
from mlsys.judge.sandbox.protocol.places import SandboxError
from mlsys.judge.site import site
from mlsys.submit.queue import Found, HandIn, Queue

LOOK_AGAIN_S = 0.5
"""Seconds until an empty queue is looked at again."""
AFTER_FAULT_S = 20.0
"""Seconds until judging is tried again after a fault that is nobody's, such as a full disk."""


class Judges(Protocol):
    """Whatever judges tasks: the pool of this machine, or a fleet."""

    def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
        """Judge submissions, and yield each as it is done."""


def check_that_sandbox_holds(tree: CourseTree, private: Sequence[Path]) -> None:
    """Make sure that students' code can be shut in on this machine.

    Raises:
        SandboxError: it cannot, or the sandbox would show the course.
    """
    if fault := check_sandbox(site(), (tree.root, *private)):
        raise SandboxError(f"nothing of the queue is judged: {fault}\n`mlsys doctor` looks again")


@dataclass(frozen=True)
class QueueJudging:
    """The judging of one queue.

    Attributes:
        tree: the course.
        queue: what waits.
        judges: where submissions are judged.
        kind: "cpu" or "gpu", where that is.
        at_once: how many hand-ins are taken together; the next ones wait until these are done.
    """

    tree: CourseTree
    queue: Queue
    judges: Judges
    kind: str
    at_once: int = 8
    _secret: str = field(default_factory=lambda: secrets.token_hex(16))
    _readers: dict[str, LabReader] = field(default_factory=dict)

    def judge_waiting(self) -> int:
        """Judge the hand-ins that have waited longest, and return how many there were.

        Raises:
            UserError: a fault of this machine; what was taken waits again.
        """
        taken = self.queue.take(self.at_once)
        open_ones = {(one.student, digest(data)): one for one, data in self._with_files(taken)}
        left = {one.number for one in taken}
        try:
            tasks = [self._task(one, name) for (_, name), one in open_ones.items()]
            for judged in self.judges.judge_all(tasks):
                hand_in = open_ones[judged.student, judged.submission]
                self.queue.save_found(hand_in.number, _found(judged, hidden=hand_in.hidden))
                left.discard(hand_in.number)
        finally:
            if left:
                self.queue.put_back(sorted(left))
        return len(taken)

    def _with_files(self, taken: Iterable[HandIn]) -> Iterator[tuple[HandIn, bytes]]:
        for one in taken:
            yield one, self.queue.content(one.number)

    def _task(self, hand_in: HandIn, name: str) -> Task | Judged:
        """Return a hand-in as a worker takes it, or refused already."""
        lab, student = hand_in.lab, hand_in.student
        reader = self._readers.setdefault(lab, LabReader(self.tree, lab))
        try:
            notebook = reader.canonical(self.queue.content(hand_in.number), hand_in.term)
        except Refused as reason:
            return Judged(student, name, refused=str(reason))
        released, cpu_limit_s = released_lab(self.tree, lab), configured_cpu_limit_s(self.tree)
        return Task(
            student=student,
            lab=lab,
            version=notebook.metadata["mlsys"]["version"],
            notebook=notebook,
            submission=name,
            terms=Terms("", seed(store_of(self.tree).secret(), lab, self._secret), term=hand_in.term),
            device=configured_device(self.tree),
            cpu_limit_s=cpu_limit_s,
            time_limit_s=time_limit_s(released, self.kind, cpu_limit_s),
            hidden=hand_in.hidden,
        )


def judge_forever(judging: QueueJudging, console: Console, ends: Callable[[], bool]) -> None:
    """Judge whatever waits, until `ends` says so; a fault of this machine is said, and tried again."""
    with judging.queue.only_judge():
        while not ends():
            try:
                if not judging.judge_waiting():
                    time.sleep(LOOK_AGAIN_S)
            except UserError as error:
                console.print(f"Judging waits {AFTER_FAULT_S:g} s: {error}")
                until_s = time.monotonic() + AFTER_FAULT_S
                while time.monotonic() < until_s and not ends():
                    time.sleep(LOOK_AGAIN_S)


def _found(judged: Judged, *, hidden: bool) -> Found:
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    return Found(judged.questions, judged.refused, hidden, judged.device, now)
