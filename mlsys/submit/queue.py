"""What the queue keeps: hand-ins with their files and receipts, verdicts, logins, and who gave which mark.

One database, SQLite with a write-ahead log unless the settings name another. Each method is one transaction, on the
disk before it returns, so that a kill at any moment loses nothing that was answered.
"""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from mlsys.classroom.store.codec import decode, encode
from mlsys.classroom.store.record import QuestionRecord
from mlsys.errors import UnknownName, UserError

WAITING, JUDGING, DONE, REPLACED = "waiting", "judging", "done", "replaced"
"""States of a hand-in: not judged yet; at a worker; judged or refused; not judged, because a newer one is."""
OPEN = (WAITING, JUDGING)
BUSY_S = 30
"""Seconds to wait for another process that is writing."""

_META = sa.MetaData()
_HAND_INS = sa.Table(
    "hand_ins",
    _META,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("student", sa.Text, nullable=False),
    sa.Column("lab", sa.Text, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("time", sa.Text, nullable=False, index=True),
    sa.Column("term", sa.Text, nullable=False),
    sa.Column("receipt", sa.LargeBinary, nullable=False),
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("hidden_at", sa.Text, nullable=False),
    sa.Column("found", sa.LargeBinary),
    sa.Index("by_student", "student", "lab", "number"),
    sqlite_autoincrement=True,  # no number is ever given twice
)
_FILES = sa.Table(
    "files",
    _META,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
_LOGINS = sa.Table(
    "logins",
    _META,
    sa.Column("secret", sa.Text, primary_key=True),  # a digest: who reads the database cannot log in
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("person", sa.Text, nullable=False, index=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("expires", sa.Text, nullable=False),
)
_MARKS = sa.Table(
    "marks",
    _META,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("lab", sa.Text, nullable=False, index=True),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("marker", sa.Text, nullable=False),
    sa.Column("points", sa.Float),
    sa.Column("comment", sa.Text, nullable=False),
    sa.Column("time", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)


@dataclass(frozen=True)
class Found:
    """What judging a hand-in found.

    Attributes:
        questions: the verdicts of the questions that were judged.
        refused: why it cannot be judged.
        hidden: whether hidden tests ran too.
        device: "cpu" or "gpu", where it was judged.
        judged_at: when, in UTC.
    """

    questions: tuple[QuestionRecord, ...] = ()
    refused: str = ""
    hidden: bool = False
    device: str = ""
    judged_at: str = ""


@dataclass(frozen=True)
class HandIn:
    """One hand-in, without its file.

    Attributes:
        number: grows with every hand-in of the course.
        student: who handed in.
        lab: the lab.
        sha256: digest of the file.
        size: of the file, in bytes.
        time: when it came in, in UTC.
        term: name of the term in which it came in.
        receipt: the receipt, as the text of its file.
        state: one of the states above.
        hidden: whether hidden tests were asked for.
        found: what judging found, once it has.
    """

    number: int
    student: str
    lab: str
    sha256: str
    size: int
    time: datetime
    term: str
    receipt: bytes
    state: str
    hidden: bool
    found: Found | None


@dataclass(frozen=True)
class Login:
    """Who a token or a session belongs to: a person, what the person may do, and until when."""

    person: str
    role: str
    expires: datetime


@dataclass(frozen=True)
class Given:
    """One mark as it came in: who gave it, to which answer, when; `points` are None where one was taken back."""

    question: str
    answer: str
    marker: str
    points: float | None
    comment: str
    time: datetime


class Queue:
    """The database of a course's queue.

    Args:
        folder: folder of the queue.
        url: of the database; SQLite in the folder when empty.
    """

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._engine = sa.create_engine(url or f"sqlite:///{folder.resolve() / 'queue.db'}")
        if self._engine.dialect.name == "sqlite":
            sa.event.listen(self._engine, "connect", _set_up_sqlite)
            sa.event.listen(self._engine, "begin", _begin_in_sqlite)
        try:
            with self._engine.begin() as connection:
                _META.create_all(connection)
        except sa.exc.SQLAlchemyError as error:
            where = self._engine.url.render_as_string(hide_password=True)
            raise UserError(f"the queue's database {where} cannot be used ({error.args[0]})") from error

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that writes, and keep other writers out from its first statement on.

        Raises:
            UserError: the database cannot be written, as on a full disk; nothing of the transaction is kept.
        """
        try:
            with self._engine.connect().execution_options(mlsys_writes=True) as connection, connection.begin():
                yield connection
        except sa.exc.OperationalError as error:
            raise UserError(
                f"the queue cannot be written at this moment ({error.orig}), so nothing was taken: try again soon, and "
                "tell your instructor if it stays so"
            ) from error

    # Hand-ins

    def newest(self, connection: Connection, student: str, lab: str) -> HandIn | None:
        """Return a student's newest hand-in of a lab."""
        return _first(_hand_ins(connection, _HAND_INS.c.student == student, _HAND_INS.c.lab == lab, newest=1))

    def newest_time(self, connection: Connection | None = None) -> datetime | None:
        """Return the time of the newest receipt."""
        if connection is None:
            with self._engine.connect() as connection:
                return self.newest_time(connection)
        time = connection.execute(sa.select(sa.func.max(_HAND_INS.c.time))).scalar()
        return datetime.fromisoformat(time) if time else None

    def since(self, connection: Connection, student: str, lab: str, time: datetime) -> list[datetime]:
        """Return when a student handed in a lab since some time."""
        asked = sa.select(_HAND_INS.c.time).where(
            _HAND_INS.c.student == student, _HAND_INS.c.lab == lab, _HAND_INS.c.time > _text(time)
        )
        return sorted(datetime.fromisoformat(one) for one in connection.execute(asked).scalars())

    def hidden_since(self, connection: Connection, student: str, lab: str, time: datetime) -> int:
        """Return how often a student asked for the hidden tests of a lab since some time."""
        asked = (
            sa.select(sa.func.count())
            .select_from(_HAND_INS)
            .where(_HAND_INS.c.student == student, _HAND_INS.c.lab == lab, _HAND_INS.c.hidden_at > _text(time))
        )
        return int(connection.execute(asked).scalar_one())

    def waiting(self, connection: Connection) -> int:
        """Return how many hand-ins wait or are being judged."""
        asked = sa.select(sa.func.count()).select_from(_HAND_INS).where(_HAND_INS.c.state.in_(OPEN))
        return int(connection.execute(asked).scalar_one())

    def add(self, connection: Connection, hand_in: HandIn, data: bytes) -> int:
        """Add a hand-in, whose number is not known yet, and its file; return the number."""
        row = {
            "student": hand_in.student,
            "lab": hand_in.lab,
            "sha256": hand_in.sha256,
            "size": hand_in.size,
            "time": _text(hand_in.time),
            "term": hand_in.term,
            "receipt": b"",
            "state": WAITING,
            "hidden_at": _text(hand_in.time) if hand_in.hidden else "",
        }
        inserted = connection.execute(sa.insert(_HAND_INS).values(row)).inserted_primary_key
        assert inserted is not None
        number = int(inserted[0])
        connection.execute(sa.insert(_FILES).values(number=number, data=data))
        # Of one student the newest is judged; whoever hands in often keeps nobody waiting.
        older = _of_student(hand_in.student, hand_in.lab) & (_HAND_INS.c.number < number)
        connection.execute(sa.update(_HAND_INS).where(older, _HAND_INS.c.state == WAITING).values(state=REPLACED))
        return number

    def save_receipt(self, connection: Connection, number: int, receipt: bytes) -> None:
        """Keep the receipt of a hand-in."""
        _update(connection, number, receipt=receipt)

    def ask_for_hidden_tests(self, connection: Connection, number: int, time: datetime) -> None:
        """Have a hand-in judged again, with hidden tests too."""
        _update(connection, number, state=WAITING, hidden_at=_text(time))

    def hand_in(self, number: int) -> HandIn:
        """Return a hand-in.

        Raises:
            UnknownName: there is none with this number.
        """
        with self._engine.connect() as connection:
            found = _first(_hand_ins(connection, _HAND_INS.c.number == number))
        if found is None:
            raise UnknownName(f"there is no hand-in {number}")
        return found

    def hand_ins(self, lab: str = "", student: str = "") -> list[HandIn]:
        """Return the hand-ins of a lab or a student, or all of them, oldest first."""
        wanted = [_HAND_INS.c.lab == lab] if lab else []
        wanted += [_HAND_INS.c.student == student] if student else []
        with self._engine.connect() as connection:
            return list(_hand_ins(connection, *wanted))

    def content(self, number: int) -> bytes:
        """Return the file of a hand-in."""
        with self._engine.connect() as connection:
            return bytes(connection.execute(sa.select(_FILES.c.data).where(_FILES.c.number == number)).scalar_one())

    def place(self, number: int) -> int:
        """Return the place of a hand-in among those that wait or are being judged; 1 is the next."""
        asked = sa.select(sa.func.count()).select_from(_HAND_INS)
        asked = asked.where(_HAND_INS.c.state.in_(OPEN), _HAND_INS.c.number <= number)
        with self._engine.connect() as connection:
            return int(connection.execute(asked).scalar_one())

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many hand-ins there are, by lab and state."""
        asked = sa.select(_HAND_INS.c.lab, _HAND_INS.c.state, sa.func.count()).group_by(
            _HAND_INS.c.lab, _HAND_INS.c.state
        )
        with self._engine.connect() as connection:
            return {(lab, state): int(count) for lab, state, count in connection.execute(asked)}

    # Judging

    @contextmanager
    def only_judge(self) -> Iterator[None]:
        """Keep every other process from judging this queue, and put back what one that died had begun.

        Raises:
            UserError: another process judges it.
        """
        with (self.folder / "judging.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UserError("another process judges this queue: wait until it has ended") from error
            with self.write() as connection:
                connection.execute(sa.update(_HAND_INS).where(_HAND_INS.c.state == JUDGING).values(state=WAITING))
            yield

    def take(self, most: int) -> list[HandIn]:
        """Return the hand-ins that have waited longest, and note that they are being judged."""
        with self.write() as connection:
            found = list(_hand_ins(connection, _HAND_INS.c.state == WAITING, oldest=most))
            numbers = [one.number for one in found]
            if numbers:
                connection.execute(sa.update(_HAND_INS).where(_HAND_INS.c.number.in_(numbers)).values(state=JUDGING))
        return found

    def put_back(self, numbers: Sequence[int]) -> None:
        """Have hand-ins wait again that were taken and not judged."""
        with self.write() as connection:
            taken = _HAND_INS.c.number.in_(numbers) & (_HAND_INS.c.state == JUDGING)
            connection.execute(sa.update(_HAND_INS).where(taken).values(state=WAITING))

    def save_found(self, number: int, found: Found) -> None:
        """Keep what judging found; the last one counts, so judging twice does no harm."""
        with self.write() as connection:
            asked_again = _HAND_INS.c.state == WAITING  # with hidden tests, since it was taken
            state = sa.case((asked_again, WAITING), else_=DONE)
            _update(connection, number, state=state, found=encode(found))

    # Logins

    def save_login(self, secret: str, kind: str, login: Login) -> None:
        """Keep a token or a session by the digest of its secret."""
        row = {"secret": secret, "kind": kind, "person": login.person, "role": login.role}
        with self.write() as connection:
            connection.execute(sa.insert(_LOGINS).values(**row, expires=_text(login.expires)))

    def login(self, secret: str, kind: str) -> Login | None:
        """Return whose token or session it is, also if it has expired."""
        asked = sa.select(_LOGINS).where(_LOGINS.c.secret == secret, _LOGINS.c.kind == kind)
        with self._engine.connect() as connection:
            row = connection.execute(asked).mappings().first()
        return Login(row["person"], row["role"], datetime.fromisoformat(row["expires"])) if row else None

    def logins(self, kind: str) -> list[Login]:
        """Return all tokens or sessions."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(_LOGINS).where(_LOGINS.c.kind == kind)).mappings().all()
        return [Login(row["person"], row["role"], datetime.fromisoformat(row["expires"])) for row in rows]

    def forget(self, *, person: str = "", secret: str = "") -> int:
        """Forget all tokens and sessions of a person, or one of them; return how many."""
        wanted = _LOGINS.c.person == person if person else _LOGINS.c.secret == secret
        with self.write() as connection:
            return int(connection.execute(sa.delete(_LOGINS).where(wanted)).rowcount)

    # Marks

    def save_mark(self, lab: str, given: Given) -> None:
        """Keep who gave a mark."""
        row: dict[str, object] = {"lab": lab, "question": given.question, "answer": given.answer}
        row |= {"marker": given.marker, "points": given.points, "comment": given.comment, "time": _text(given.time)}
        with self.write() as connection:
            connection.execute(sa.insert(_MARKS).values(row))

    def marks(self, lab: str) -> list[Given]:
        """Return all marks that came in for a lab, oldest first."""
        asked = sa.select(_MARKS).where(_MARKS.c.lab == lab).order_by(_MARKS.c.number)
        with self._engine.connect() as connection:
            rows = connection.execute(asked).mappings().all()
        return [
            Given(
                row["question"],
                row["answer"],
                row["marker"],
                row["points"],
                row["comment"],
                datetime.fromisoformat(row["time"]),
            )
            for row in rows
        ]


def _set_up_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # this module begins transactions itself
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={1000 * BUSY_S}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_in_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("mlsys_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _of_student(student: str, lab: str) -> sa.ColumnElement[bool]:
    return (_HAND_INS.c.student == student) & (_HAND_INS.c.lab == lab)


def _update(connection: Connection, number: int, **values: object) -> None:
    connection.execute(sa.update(_HAND_INS).where(_HAND_INS.c.number == number).values(**values))


def _hand_ins(
    connection: Connection, *wanted: sa.ColumnElement[bool], newest: int = 0, oldest: int = 0
) -> Iterator[HandIn]:
    order = _HAND_INS.c.number.desc() if newest else _HAND_INS.c.number
    asked = sa.select(_HAND_INS).where(*wanted).order_by(order)
    if newest or oldest:
        asked = asked.limit(newest or oldest)
    return map(_hand_in, connection.execute(asked).mappings().all())


def _hand_in(row: RowMapping) -> HandIn:
    return HandIn(
        row["number"],
        row["student"],
        row["lab"],
        row["sha256"],
        row["size"],
        datetime.fromisoformat(row["time"]),
        row["term"],
        bytes(row["receipt"]),
        row["state"],
        bool(row["hidden_at"]),
        decode(bytes(row["found"]), Found) if row["found"] else None,
    )


def _first(found: Iterator[HandIn]) -> HandIn | None:
    return next(found, None)


def _text(time: datetime) -> str:
    """Return a time as it is kept: in UTC and of one length, so that texts sort as times do."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")
