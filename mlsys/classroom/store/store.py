"""The store of a class: records, runs and attempts, which are the truth about how everybody was graded.

nbgrader's gradebook is written from it. `FileStore` keeps it in the folder of the course; see `mlsys.course.tree`.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from mlsys.classroom.store.codec import Unreadable, decode, encode, loaded, typed
from mlsys.classroom.store.marks import KeptMarks, Marks
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.run import Run
from mlsys.classroom.students.deadlines import aware
from mlsys.classroom.students.history import TIME_EXAMPLE, Attempt, History
from mlsys.core.files import write_atomically
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


class Store(Protocol):
    """What grading keeps of a class.

    Every write is whole: no reader, and no run after a kill, sees half of it. Each raises UserError where the disk is
    full or the store cannot be written.
    """

    def records(self, lab: str) -> dict[str, Record | None]:
        """Return the record of everybody who was graded, by student; None for one that cannot be read."""

    def record(self, lab: str, student: str) -> Record | None:
        """Return the record of a student, or None if there is none that can be read."""

    def save_record(self, record: Record) -> None:
        """Keep the record of a student in place of an earlier one."""

    def attempt_record(self, lab: str, student: str, digest: str) -> Record | None:
        """Return how one of several attempts was judged, or None if that is not known."""

    def save_attempt_record(self, record: Record) -> None:
        """Keep how one of several attempts was judged."""

    def run(self, lab: str) -> Run | None:
        """Return the latest run, or None before the first.

        Raises:
            UserError: what is kept of it is damaged.
        """

    def save_run(self, lab: str, run: Run) -> None:
        """Keep the latest run of a lab, readable for the instructor only."""

    def marks(self, lab: str) -> dict[str, Marks]:
        """Return what people gave, by student, as it was last seen in the gradebook."""

    def save_marks(self, lab: str, marks: Mapping[str, Marks]) -> None:
        """Keep what people gave."""

    def history(self, lab: str, student: str) -> History:
        """Return the attempts of a student; none if nothing was handed in.

        Raises:
            UserError: the list cannot be read.
        """

    def save_history(self, lab: str, student: str, history: History) -> None:
        """Keep the attempts of a student."""

    def content(self, lab: str, student: str, digest: str) -> bytes:
        """Return what was handed in with an attempt."""

    def save_content(self, lab: str, student: str, digest: str, data: bytes) -> None:
        """Keep what was handed in with an attempt, unless it is kept already."""

    def secret(self) -> str:
        """Return the course's secret, which is drawn once."""

    def lock(self) -> AbstractContextManager[None]:
        """Keep every other grading run out of the course as long as this one works.

        Raises:
            UserError: another run is at work.
        """


@dataclass(frozen=True)
class FileStore:
    """A store in the files of a course tree; each method does what `Store` says."""

    tree: CourseTree

    def records(self, lab: str) -> dict[str, Record | None]:
        """Read the folder of the lab's records."""
        students = sorted(path.stem for path in self.tree.records(lab).glob("*.json"))
        return {student: self.record(lab, student) for student in students}

    def record(self, lab: str, student: str) -> Record | None:
        """Read the file of a student's record."""
        return self._record(self.tree.record(lab, student))

    def save_record(self, record: Record) -> None:
        """Write the file of a student's record."""
        write_atomically(self.tree.record(record.lab, record.student), encode(record))

    def attempt_record(self, lab: str, student: str, digest: str) -> Record | None:
        """Read the record beside the attempt."""
        return self._record(self.tree.attempt_record(lab, student, digest))

    def save_attempt_record(self, record: Record) -> None:
        """Write the record beside the attempt."""
        write_atomically(self.tree.attempt_record(record.lab, record.student, record.submission), encode(record))

    def _record(self, path: Path) -> Record | None:
        try:
            return decode(path.read_bytes(), Record)
        except (FileNotFoundError, Unreadable):
            return None

    def run(self, lab: str) -> Run | None:
        """Read the file of the run."""
        path = self.tree.run(lab)
        try:
            return decode(path.read_bytes(), Run)
        except FileNotFoundError:
            return None
        except Unreadable as error:
            raise UserError(f"{path} is damaged ({error}): delete it, and the next run draws a new secret") from error

    def save_run(self, lab: str, run: Run) -> None:
        """Write the file of the run, in a folder that only the instructor can read."""
        path = self.tree.run(lab)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, encode(run))

    def marks(self, lab: str) -> dict[str, Marks]:
        """Read the file of the marks."""
        try:
            return decode(self.tree.marks(lab).read_bytes(), KeptMarks).students
        except (FileNotFoundError, Unreadable):  # what they were is in the gradebook too
            return {}

    def save_marks(self, lab: str, marks: Mapping[str, Marks]) -> None:
        """Write the file of the marks."""
        write_atomically(self.tree.marks(lab), encode(KeptMarks(dict(marks))))

    def history(self, lab: str, student: str) -> History:
        """Read the list of attempts."""
        path = self.tree.attempts(lab, student)
        try:
            content = loaded(path.read_bytes())
            attempts = content["attempts"] if isinstance(content, dict) else content  # first a list of attempts alone
            return History(tuple(typed([_with_time(entry) for entry in attempts], list[Attempt])))
        except FileNotFoundError:
            return History()
        except (Unreadable, ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{path} cannot be read ({error}): correct it (times look like {TIME_EXAMPLE}), restore it, or delete "
                "it to begin a new list"
            ) from error

    def save_history(self, lab: str, student: str, history: History) -> None:
        """Write the list of attempts."""
        entries = tuple(asdict(one) | {"time": one.time.isoformat() if one.time else None} for one in history.attempts)
        write_atomically(self.tree.attempts(lab, student), encode(_History(entries)))

    def content(self, lab: str, student: str, digest: str) -> bytes:
        """Read the file of an attempt."""
        return self.tree.attempt(lab, student, digest).read_bytes()

    def save_content(self, lab: str, student: str, digest: str, data: bytes) -> None:
        """Write the file of an attempt."""
        path = self.tree.attempt(lab, student, digest)
        if not path.is_file():
            write_atomically(path, data)

    def secret(self) -> str:
        """Read the course's secret."""
        return self.tree.secret()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock file; the kernel lets go of it when this process ends."""
        with self.tree.lock.open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                lock.seek(0)
                who = lock.read(100).strip() or "unknown"
                raise UserError(
                    f"another grading run (process {who}) works in {self.tree.root}: wait until it has ended, then "
                    "start again"
                ) from error
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            yield


@dataclass(frozen=True)
class _History:
    attempts: tuple[dict[str, Any], ...]


def _with_time(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of the list with its time read: a person may have entered it in any form of ISO 8601."""
    time = entry["time"]
    return entry | {"time": aware(datetime.fromisoformat(str(time)), "time") if time else None}
