"""A grading run: one call of `mlsys grade`, until everything that was open is graded, also after a kill.

Each run draws a secret. Together with the course's it seeds what hidden tests draw, so all submissions of a run meet
the same inputs, and nobody can prepare for them who saw an earlier run's feedback. The record of a submission keeps the
secret of the run that it was graded in, and a regrade of the same file draws the same again: what changes then comes
from the tests or the package, not from luck.

    _build/course/runs/<lab>.json      the lab's latest run; it is interrupted as long as it is not finished
"""

import fcntl
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from mlsys.classroom.store.record import Record
from mlsys.core.files import write_atomically
from mlsys.course.digest import digest
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


@dataclass(frozen=True)
class Run:
    """The latest run of a lab.

    Attributes:
        secret: drawn for this run.
        started_at: when it began, in UTC.
        sandboxed: whether student code runs in the sandbox.
        arguments: the words of the command line that chose submissions and roster, for `--resume`.
        finished: whether everything that was open is graded.
    """

    secret: str
    started_at: str
    sandboxed: bool = True
    arguments: Mapping[str, str] = field(default_factory=dict)
    finished: bool = False

    @classmethod
    def read(cls, tree: CourseTree, lab: str) -> "Run | None":
        """The latest run, or None before the first.

        Raises:
            UserError: its file is damaged.
        """
        path = _path(tree, lab)
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise UserError(f"{path} is damaged ({error}): delete it, and the next run draws a new secret") from error

    @classmethod
    def begin(cls, tree: CourseTree, lab: str, *, sandboxed: bool, arguments: Mapping[str, str]) -> "Run":
        """A new run, or the interrupted one again, with its secret."""
        last = cls.read(tree, lab)
        if last is None or last.finished:
            last = cls(secrets.token_hex(16), datetime.now(UTC).isoformat(timespec="seconds"))
        run = replace(last, sandboxed=sandboxed, arguments=dict(arguments), finished=False)
        run.write(tree, lab)
        return run

    def finish(self, tree: CourseTree, lab: str) -> None:
        """Note that nothing of this run is open any more."""
        replace(self, finished=True).write(tree, lab)

    def write(self, tree: CourseTree, lab: str) -> None:
        """Write it down, readable for the instructor only."""
        path = _path(tree, lab)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(asdict(self), indent=1) + "\n").encode())


@dataclass(frozen=True)
class Terms:
    """What a submission is judged under: the run whose secret it draws with, and whether it is sandboxed."""

    run: str
    seed: int
    sandboxed: bool = True


def terms(tree: CourseTree, lab: str, student: str, submission: str) -> Terms:
    """The terms for a file of a student's: those of its record if it was graded before, else those of the latest run.

    Args:
        tree: the course.
        lab: the lab.
        student: whose.
        submission: digest of the file.
    """
    latest = Run.read(tree, lab) or _of_plain_nbgrader(tree, lab)
    known = (Record.read(tree.record(lab, student)), Record.read(attempt_record(tree, lab, student, submission)))
    before = [record.run for record in known if record and record.run and record.submission == submission]
    secret = before[0] if before else latest.secret
    return Terms(secret, seed(tree, lab, secret), latest.sandboxed)


def seed(tree: CourseTree, lab: str, secret: str) -> int:
    """What the hidden tests of a lab draw their inputs from, for a run's secret: 256 bits."""
    return int.from_bytes(hmac.digest(tree.secret().encode(), digest(lab, secret).encode(), "sha256"), "big")


def attempt_record(tree: CourseTree, lab: str, student: str, submission: str) -> Path:
    """Where the grading of one of several attempts is written down, beside the attempt."""
    return tree.root / "attempts" / student / lab / f"{submission or 'none'}.json"


def _of_plain_nbgrader(tree: CourseTree, lab: str) -> Run:
    run = Run(secrets.token_hex(16), datetime.now(UTC).isoformat(timespec="seconds"), finished=True)
    run.write(tree, lab)
    return run


def _path(tree: CourseTree, lab: str) -> Path:
    return tree.root / "runs" / f"{lab}.json"


@contextmanager
def one_at_a_time(tree: CourseTree) -> Iterator[None]:
    """Keep every other grading run out of the course; the kernel lets go of it when this process ends.

    Raises:
        UserError: another run is at work.
    """
    with (tree.root / "grading.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            who = lock.read(100).strip() or "unknown"
            raise UserError(
                f"another grading run (process {who}) works in {tree.root}: wait until it has ended, then start again"
            ) from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield
