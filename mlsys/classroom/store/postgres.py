"""A store in a PostgreSQL database, which nbgrader's gradebook shares; one database for each course.

Our tables are in a schema of their own, `mlsys_store`: a row for each document, and the grades in a table for SQL. A
grade is kept under run, submission, question and digest, so that a result that comes twice is kept once.

A run holds an advisory lock, which goes with its connection, and writes on that connection only. If the connection is
lost, the run opens another one and takes the lock again, unless another run has had it meanwhile.
"""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import getpid
from typing import TypeVar

import psycopg
from psycopg import Connection, sql
from sqlalchemy.engine import make_url

from mlsys.classroom.store.codec import encode
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.store import CONTENT, KINDS, RECORD, DocumentStore, Key, decoded_record
from mlsys.course.digest import digest
from mlsys.course.nbgrader import PATIENCE_S, without_password
from mlsys.course.term import present_term
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

SCHEMA = 1
"""Version of the tables that this package reads and writes."""
_PAUSE_S = 0.25
_LOCK = 0x6D6C737973  # "mlsys": the lock's number, within the database

_TABLES = """
CREATE SCHEMA IF NOT EXISTS mlsys_store;
CREATE TABLE IF NOT EXISTS mlsys_store.about (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    schema integer NOT NULL,
    course text,
    runs bigint NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS mlsys_store.documents (
    kind text, lab text, student text, digest text, data bytea NOT NULL,
    PRIMARY KEY (kind, lab, student, digest)
);
CREATE TABLE IF NOT EXISTS mlsys_store.grades (
    run text, lab text, student text, question text, digest text,
    verdict text NOT NULL, points double precision NOT NULL, max_points double precision NOT NULL,
    device text NOT NULL, graded_at text NOT NULL,
    PRIMARY KEY (run, lab, student, question, digest)
);
"""
_WRITE = """
INSERT INTO mlsys_store.documents VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (kind, lab, student, digest) DO UPDATE SET data = EXCLUDED.data
"""
_WRITE_ONCE = "INSERT INTO mlsys_store.documents VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
_WRITE_GRADE = """
INSERT INTO mlsys_store.grades VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (run, lab, student, question, digest) DO UPDATE SET
    verdict = EXCLUDED.verdict, points = EXCLUDED.points, max_points = EXCLUDED.max_points,
    device = EXCLUDED.device, graded_at = EXCLUDED.graded_at
"""
_HOLDER = """
SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid)
WHERE locktype = 'advisory' AND (classid::bigint << 32) + objid::bigint = %s AND granted
"""

_T = TypeVar("_T")


class PostgresStore(DocumentStore):
    """A store in the database at `url`; opened at the first call.

    Args:
        tree: the course, which holds the list of terms and the labs.
        url: address of the database, as SQLAlchemy writes it.
    """

    def __init__(self, tree: CourseTree, url: str) -> None:
        self.tree = tree
        self.url = url
        self._connection: Connection | None = None
        self._was_open = False
        self._run_number = 0  # of the run that holds the lock here; 0 for none

    def place(self, key: Key) -> str:
        """Return the database, and the key of a document in it."""
        words = " ".join(filter(None, (key.lab, key.student, key.digest)))
        return f"{key.kind} {words} in {without_password(self.url)}"

    def read(self, key: Key) -> bytes | None:
        """Read the row of a document."""
        query = "SELECT data FROM mlsys_store.documents WHERE kind = %s AND lab = %s AND student = %s AND digest = %s"
        row = self.do(lambda connection: connection.execute(query, _values(key)).fetchone())
        return bytes(row[0]) if row else None

    def write(self, key: Key, data: bytes) -> None:
        """Write the row of a document."""
        self.do(lambda connection: connection.execute(_WRITE, (*_values(key), data)))

    def remove(self, keys: Sequence[Key]) -> None:
        """Take documents away."""
        query = "DELETE FROM mlsys_store.documents WHERE kind = %s AND lab = %s AND student = %s AND digest = %s"

        def remove(connection: Connection) -> None:
            with connection.cursor() as cursor:
                cursor.executemany(query, [_values(key) for key in keys])

        self.do(remove)

    def all_keys(self, lab: str = "*", kinds: tuple[str, ...] = KINDS) -> list[Key]:
        """Ask for the keys of the rows."""
        query = "SELECT kind, lab, student, digest FROM mlsys_store.documents "
        query += "WHERE kind = ANY(%s) AND (%s = '*' OR lab = %s)"
        rows = self.do(lambda connection: connection.execute(query, (list(kinds), lab, lab)).fetchall())
        return sorted(Key(*row) for row in rows)

    def records(self, lab: str) -> dict[str, Record | None]:
        """Read all records of a lab at once."""
        query = "SELECT student, data FROM mlsys_store.documents WHERE kind = %s AND lab = %s"
        rows = self.do(lambda connection: connection.execute(query, (RECORD, lab)).fetchall())
        return {student: decoded_record(bytes(data)) for student, data in sorted(rows)}

    def save_record(self, record: Record) -> None:
        """Write a record and its grades, all of them or nothing."""
        values = (*_values(Key(RECORD, record.lab, record.student)), encode(record))

        def write(connection: Connection) -> None:
            connection.execute(_WRITE, values)
            _write_grades(connection, record)

        self.do(write)

    def save_grades(self, record: Record) -> None:
        """Write the grades of a record that is kept already."""
        self.do(lambda connection: _write_grades(connection, record))

    def save_content(self, lab: str, student: str, digest: str, data: bytes) -> None:
        """Write the row of an attempt, unless there is one."""
        values = (*_values(Key(CONTENT, lab, student, digest)), data)
        self.do(lambda connection: connection.execute(_WRITE_ONCE, values))

    def secret(self) -> str:
        """Return the course's secret, of which the database has the digest.

        Raises:
            UserError: the database is that of another course.
        """
        secret = self.tree.secret()
        own = digest(secret)

        def kept(connection: Connection) -> str:
            connection.execute("UPDATE mlsys_store.about SET course = %s WHERE course IS NULL", (own,))
            row = connection.execute("SELECT course FROM mlsys_store.about").fetchone()
            assert row is not None
            return str(row[0])

        if self.do(kept) != own:
            raise UserError(
                f"{without_password(self.url)} keeps another course than {self.tree.root}: their secrets differ. "
                "Nothing was written; correct the address, or name the right folder"
            )
        return secret

    def present_term(self) -> str:
        """Read the list of terms in the course's folder."""
        return present_term(self.tree)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the database's advisory lock; it goes with the connection.

        Raises:
            UserError: another run is at work, or had the lock while the connection was lost.
        """
        self.secret()  # the right course's database, before anything is written
        if not self.do(_try_lock):
            holder = self.do(lambda connection: connection.execute(_HOLDER, (_LOCK,)).fetchone())
            raise UserError(
                f"another grading run ({holder[0] if holder else 'just ended'}) works in {without_password(self.url)}: "
                "wait until it has ended, then start again"
            )
        try:
            self._run_number = self.do(_next_run)
            yield
        finally:
            self._run_number = 0
            if self._connection is not None and not self._connection.closed:
                self._connection.close()  # which lets go of the lock
            self._connection = None

    def do(self, work: Callable[[Connection], _T]) -> _T:
        """Do some work in one transaction; again from its beginning if the connection is lost on the way.

        Raises:
            UserError: the database cannot be reached, has no room, or refuses.
        """
        give_up_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                connection = self._opened()
                with connection.transaction():
                    return work(connection)
            except psycopg.Error as error:
                lost = self._connection is None or self._connection.closed or self._connection.broken
                if not (lost and self._was_open and isinstance(error, psycopg.OperationalError)):
                    raise UserError(self._fault(error)) from error
                if time.monotonic() > give_up_s:
                    raise UserError(self._fault(error)) from error
                self._connection = None
                time.sleep(_PAUSE_S)

    def _opened(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        self._connection = None
        name = f"mlsys, process {getpid()} on {socket.gethostname()}"
        address = make_url(self.url).set(drivername="postgresql").render_as_string(hide_password=False)
        connection = psycopg.connect(address, application_name=name, connect_timeout=10, autocommit=True)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._was_open = connection, True
        return connection

    def _prepare(self, connection: Connection) -> None:
        """Make the tables where there are none, check their version, and take a run's lock again."""
        if connection.execute("SELECT to_regclass('mlsys_store.about')").fetchone() == (None,):
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK + 1,))  # two may begin at once
                connection.execute(_TABLES)
                connection.execute(
                    "INSERT INTO mlsys_store.about (schema) VALUES (%s) ON CONFLICT DO NOTHING", (SCHEMA,)
                )
        row = connection.execute("SELECT schema, runs FROM mlsys_store.about").fetchone()
        assert row is not None
        if row[0] != SCHEMA:
            raise UserError(
                f"the tables in {without_password(self.url)} have schema {row[0]}, and this version of the package "
                f"uses {SCHEMA}: use the version of the package that wrote them"
            )
        if not self._run_number:
            return
        if row[1] != self._run_number:
            raise UserError(
                f"the connection to {without_password(self.url)} was lost, and another run has worked there meanwhile: "
                "this one stops. What is graded is kept; run the same command again"
            )
        if not _try_lock(connection):
            raise psycopg.OperationalError("the lost connection still holds the lock")  # until the server notices

    def _fault(self, error: psycopg.Error) -> str:
        text = " ".join(str(error).split())
        where = without_password(self.url)
        if error.sqlstate and error.sqlstate.startswith("53"):
            return f"{where} has no room ({text}): make some, then run the same command again. What is graded is kept"
        if error.sqlstate and not isinstance(error, psycopg.OperationalError):
            return f"{where} refuses ({text}): correct its permissions or its tables, then run the same command again"
        return (
            f"{where} cannot be reached ({text}): correct the address, or start the database, then run the same "
            "command again. What is graded is kept"
        )


def _values(key: Key) -> tuple[str, str, str, str]:
    return key.kind, key.lab, key.student, key.digest


def _write_grades(connection: Connection, record: Record) -> None:
    if record.refused:  # no grades, or those of an earlier run stay
        return
    under, about = (record.run, record.lab, record.student), (record.device, record.graded_at)
    with connection.cursor() as cursor:
        cursor.executemany(
            _WRITE_GRADE,
            [
                (*under, one.question, record.submission, one.verdict, one.points, one.max_points, *about)
                for one in record.questions
            ],
        )


def _try_lock(connection: Connection) -> bool:
    return connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone() == (True,)


def _next_run(connection: Connection) -> int:
    row = connection.execute("UPDATE mlsys_store.about SET runs = runs + 1 RETURNING runs").fetchone()
    assert row is not None
    return int(row[0])


def set_aside_tables(store: PostgresStore, name: str) -> str:
    """Move all tables of a class, nbgrader's too, into a schema with a name of its own; return that name."""

    def rename(connection: Connection) -> None:
        connection.execute(sql.SQL("ALTER SCHEMA mlsys_store RENAME TO {}").format(sql.Identifier(name)))
        for (table,) in connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        ).fetchall():
            statement = sql.SQL("ALTER TABLE {} SET SCHEMA {}")
            connection.execute(statement.format(sql.Identifier(table), sql.Identifier(name)))

    store.do(rename)
    return name
