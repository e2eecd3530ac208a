"""The store of a class: records, runs and attempts, which are the truth about how everybody was graded.

nbgrader's gradebook is written from it. What is kept are documents, each under its key. `FileStore` has a file for each
in the folder of the course (see `mlsys.course.tree`), `mlsys.classroom.store.postgres` a row in a database.
"""

import fcntl
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import Any, Protocol

from mlsys.classroom.store.codec import Unreadable, decode, encode, loaded, typed
from mlsys.classroom.store.marks import KeptMarks, Marks
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.run import Run
from mlsys.classroom.store.score_history import ScoreHistory
from mlsys.classroom.students.deadlines import aware
from mlsys.classroom.students.history import TIME_EXAMPLE, Attempt, History
from mlsys.core.files import write_atomically
from mlsys.course.term import present_term
from mlsys.course.tree import ATTEMPTS, CourseTree
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

    def scores(self, lab: str, student: str) -> ScoreHistory:
        """Return the history of a student's scores; an empty one if there is none that can be read."""

    def save_scores(self, lab: str, scores: ScoreHistory) -> None:
        """Keep the history of a student's scores."""

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

    def present_term(self) -> str:
        """Return the name of the course's present term, or nothing before the first one."""

    def lock(self) -> AbstractContextManager[None]:
        """Keep every other grading run out of the course as long as this one works.

        Raises:
            UserError: another run is at work.
        """


RECORD, ATTEMPT_RECORD, RUN, MARKS = "record", "attempt record", "run", "marks"
SCORES, HISTORY, CONTENT = "scores", "attempts", "content"
KINDS = (RECORD, ATTEMPT_RECORD, RUN, MARKS, SCORES, HISTORY, CONTENT)
"""Kinds of documents."""
_NO_DIGEST = "none"


@dataclass(frozen=True, order=True)
class Key:
    """What a document is kept under; `student` and `digest` are empty where a kind has none."""

    kind: str
    lab: str
    student: str = ""
    digest: str = ""


class DocumentStore(ABC):
    """A store of documents: each method does what `Store` says, wherever documents lie."""

    @abstractmethod
    def read(self, key: Key) -> bytes | None:
        """Return a document, or None if there is none."""

    @abstractmethod
    def write(self, key: Key, data: bytes) -> None:
        """Keep a document, in place of an earlier one."""

    @abstractmethod
    def all_keys(self, lab: str = "*", kinds: tuple[str, ...] = KINDS) -> list[Key]:
        """Return the keys of all documents of these kinds, of a lab or of all labs."""

    @abstractmethod
    def place(self, key: Key) -> str:
        """Return where a document is kept, for messages."""

    def records(self, lab: str) -> dict[str, Record | None]:
        """Read the records of a lab."""
        students = sorted(key.student for key in self.all_keys(lab, (RECORD,)))
        return {student: self.record(lab, student) for student in students}

    def record(self, lab: str, student: str) -> Record | None:
        """Read a student's record."""
        return self._record(Key(RECORD, lab, student))

    def save_record(self, record: Record) -> None:
        """Write a student's record."""
        self.write(Key(RECORD, record.lab, record.student), encode(record))

    def attempt_record(self, lab: str, student: str, digest: str) -> Record | None:
        """Read the record of an attempt."""
        return self._record(Key(ATTEMPT_RECORD, lab, student, digest or _NO_DIGEST))

    def save_attempt_record(self, record: Record) -> None:
        """Write the record of an attempt."""
        self.write(Key(ATTEMPT_RECORD, record.lab, record.student, record.submission or _NO_DIGEST), encode(record))

    def _record(self, key: Key) -> Record | None:
        data = self.read(key)
        return decoded_record(data) if data is not None else None

    def run(self, lab: str) -> Run | None:
        """Read the latest run."""
        key = Key(RUN, lab)
        try:
            data = self.read(key)
            return decode(data, Run) if data is not None else None
        except Unreadable as error:
            raise UserError(
                f"{self.place(key)} is damaged ({error}): delete it, and the next run draws a new secret"
            ) from error

    def save_run(self, lab: str, run: Run) -> None:
        """Write the latest run."""
        self.write(Key(RUN, lab), encode(run))

    def marks(self, lab: str) -> dict[str, Marks]:
        """Read the marks."""
        try:
            data = self.read(Key(MARKS, lab))
            return decode(data, KeptMarks).students if data is not None else {}
        except Unreadable:  # what they were is in the gradebook too
            return {}

    def save_marks(self, lab: str, marks: Mapping[str, Marks]) -> None:
        """Write the marks."""
        self.write(Key(MARKS, lab), encode(KeptMarks(dict(marks))))

    def scores(self, lab: str, student: str) -> ScoreHistory:
        """Read a student's scores."""
        try:
            data = self.read(Key(SCORES, lab, student))
            return decode(data, ScoreHistory) if data is not None else ScoreHistory(student)
        except Unreadable:
            return ScoreHistory(student)

    def save_scores(self, lab: str, scores: ScoreHistory) -> None:
        """Write a student's scores."""
        self.write(Key(SCORES, lab, scores.student), encode(scores))

    def history(self, lab: str, student: str) -> History:
        """Read the list of attempts."""
        key = Key(HISTORY, lab, student)
        data = self.read(key)
        if data is None:
            return History()
        try:
            content = loaded(data)
            attempts = content["attempts"] if isinstance(content, dict) else content  # first a list of attempts alone
            return History(tuple(typed([_with_time(entry) for entry in attempts], list[Attempt])))
        except (Unreadable, ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{self.place(key)} cannot be read ({error}): correct it (times look like {TIME_EXAMPLE}), restore it, "
                "or delete it to begin a new list"
            ) from error

    def save_history(self, lab: str, student: str, history: History) -> None:
        """Write the list of attempts."""
        entries = tuple(asdict(one) | {"time": one.time.isoformat() if one.time else None} for one in history.attempts)
        self.write(Key(HISTORY, lab, student), encode(_History(entries)))

    def content(self, lab: str, student: str, digest: str) -> bytes:
        """Read what was handed in."""
        key = Key(CONTENT, lab, student, digest)
        data = self.read(key)
        if data is None:
            raise FileNotFoundError(self.place(key))
        return data

    @abstractmethod
    def save_content(self, lab: str, student: str, digest: str, data: bytes) -> None:
        """Write what was handed in, unless it is kept already."""

    @abstractmethod
    def secret(self) -> str:
        """Return the course's secret."""

    @abstractmethod
    def present_term(self) -> str:
        """Return the name of the present term."""

    @abstractmethod
    def lock(self) -> AbstractContextManager[None]:
        """Keep every other grading run out."""


def decoded_record(data: bytes) -> Record | None:
    """Return the record in a document, or None if it cannot be read."""
    try:
        return decode(data, Record)
    except Unreadable:
        return None


@dataclass(frozen=True)
class FileStore(DocumentStore):
    """A store in the files of a course tree."""

    tree: CourseTree

    def path(self, key: Key) -> Path:
        """Return the file of a document."""
        tree, lab, student = self.tree, key.lab, key.student
        paths = {
            RECORD: tree.record(lab, student),
            ATTEMPT_RECORD: tree.attempt_record(lab, student, key.digest),
            RUN: tree.run(lab),
            MARKS: tree.marks(lab),
            SCORES: tree.scores(lab, student),
            HISTORY: tree.attempts(lab, student),
            CONTENT: tree.attempt(lab, student, key.digest),
        }
        return paths[key.kind]

    def place(self, key: Key) -> str:
        """Return the path of a document."""
        return str(self.path(key))

    def read(self, key: Key) -> bytes | None:
        """Read the file of a document."""
        try:
            return self.path(key).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, key: Key, data: bytes) -> None:
        """Write the file of a document; only the instructor can read the folder of the runs."""
        path = self.path(key)
        if key.kind == RUN:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, data)

    def all_keys(self, lab: str = "*", kinds: tuple[str, ...] = KINDS) -> list[Key]:
        """Look through the folders of the documents."""
        name = lab if lab == "*" else escape(lab)
        found: list[Key] = []
        for kind in kinds:
            if kind in (RUN, MARKS):
                folder = self.path(Key(kind, "lab")).parent
                found += [Key(kind, path.stem) for path in folder.glob(f"{name}.json")]
            elif kind in (RECORD, SCORES):
                folder = self.path(Key(kind, "lab", "student")).parents[1]
                found += [Key(kind, path.parent.name, path.stem) for path in folder.glob(f"{name}/*.json")]
            else:
                folder = self.tree.attempts("lab", "student").parents[2]
                for path in folder.glob(f"*/{name}/*"):
                    if path.is_file() and _kind_beside_attempts(path) == kind:
                        digest = "" if kind == HISTORY else path.stem
                        found.append(Key(kind, path.parent.name, path.parent.parent.name, digest))
        return sorted(found)

    def save_content(self, lab: str, student: str, digest: str, data: bytes) -> None:
        """Write the file of an attempt."""
        path = self.tree.attempt(lab, student, digest)
        if not path.is_file():
            write_atomically(path, data)

    def secret(self) -> str:
        """Read the course's secret."""
        return self.tree.secret()

    def present_term(self) -> str:
        """Read the list of terms."""
        return present_term(self.tree)

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


def _kind_beside_attempts(path: Path) -> str:
    if path.name == ATTEMPTS:
        return HISTORY
    return {".json": ATTEMPT_RECORD, ".ipynb": CONTENT}.get(path.suffix, "")


def _with_time(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of the list with its time read: a person may have entered it in any form of ISO 8601."""
    time = entry["time"]
    return entry | {"time": aware(datetime.fromisoformat(str(time)), "time") if time else None}
