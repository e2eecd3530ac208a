"""Record what was judged: gradebook, record and feedback page of one submission, safe against a kill."""

import errno
import logging
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TypeGuard

from sqlalchemy.exc import DBAPIError, OperationalError

from mlsys.classroom.batch.task import Judged
from mlsys.classroom.gradebook.feedback import refusal_page
from mlsys.classroom.gradebook.marks import entered
from mlsys.classroom.gradebook.nbgrader import record_refusal
from mlsys.classroom.gradebook.quote_answers import read_unquoted
from mlsys.classroom.gradebook.scores import write_results
from mlsys.classroom.store.store import Store
from mlsys.core.files import write_atomically
from mlsys.course.lab import Lab
from mlsys.course.nbgrader import PATIENCE_S, NbgraderFailed
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

INTERRUPTED = "its grading was interrupted: run `mlsys grade` again"

_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO)
_SQLITE = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PERM,
)
"""Errors by which SQLite says that the course's folder, not a submission, is at fault."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_FULL = ("53000", "53100", "53200")
"""Codes by which PostgreSQL says that it has no room."""
_PAUSE_S = 0.25
_IN_LOGS = (
    "disk is full",
    "disk i/o error",
    "no space left",
    "quota exceeded",
    "file too large",
    "permission denied",
    "read-only",
    "readonly",
    "unable to open database",
    "database is locked",
)
"""The same in nbgrader's log, which keeps no codes; it is read for a release only, and holds no student's text."""


def record_result(tree: CourseTree, store: Store, lab: Lab, judged: Judged, state: str) -> None:
    """Record one judged submission: gradebook, autograded notebook, feedback page, and the record itself.

    The record comes last. Until then one stands there that says that grading was interrupted, and keeps the run's
    secret, so that the next run draws the same.

    Args:
        tree: the course, whose nbgrader files are written.
        store: where the record goes.
        lab: the lab.
        judged: what was found.
        state: what the record is recognized by; empty if it is to be graded again next time.

    Raises:
        UserError: the course's folder cannot be written, or its disk is full.
    """
    if old := store.record(lab.name, judged.student):
        store.save_record(replace(old, state="", questions=(), refused=INTERRUPTED))
    if judged.refused or judged.notebook is None:
        _refuse(tree, store, lab, judged, state)
        return
    record = judged.record(lab, state)
    try:
        notebook = judged.notebook
        _despite_lost_connections(lambda: write_results(tree, record, deepcopy(notebook)))
    except (OSError, OperationalError):
        raise  # the course's folder is at fault: see `disk_faults`
    except Exception as error:
        if fault := fault_of_machine(error):
            raise UserError(_cure(tree, fault)) from error
        # Without a state it is tried again next time: the fault may not be the student's.
        reason = f"its scores could not be recorded ({type(error).__name__}: {error})"
        _refuse(tree, store, lab, replace(judged, refused=reason), state="")
        return
    store.save_record(record)


def enter_again(tree: CourseTree, store: Store, lab: str) -> None:
    """Enter in the gradebook what is recorded and not in it, as after the file was lost; nothing is judged."""
    there = entered(tree, lab)
    for student, record in store.records(lab).items():
        if record is None or student in there:
            continue
        path = tree.autograded(lab, student)
        if record.refused:
            record_refusal(tree, lab, student, record.refused)
        elif path.is_file():
            write_results(tree, record, read_unquoted(path))


def _refuse(tree: CourseTree, store: Store, lab: Lab, judged: Judged, state: str) -> None:
    student, reason = judged.student, judged.refused
    _despite_lost_connections(lambda: record_refusal(tree, lab.name, student, reason))
    shutil.rmtree(tree.autograded(lab.name, student).parent, ignore_errors=True)
    write_atomically(tree.feedback(lab.name, student), refusal_page(lab.title, student, reason).encode())
    store.save_record(judged.record(lab, state))


def _despite_lost_connections(write: Callable[[], None]) -> None:
    """Write into the gradebook; again from the beginning if a database's connection is lost on the way."""
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return write()
        except Exception as error:
            if not _is_lost(error) or time.monotonic() > give_up_s:
                raise
        time.sleep(_PAUSE_S)


def _is_lost(error: BaseException) -> bool:
    """Return whether a database's connection was lost; nbgrader puts other errors around some of the driver's."""
    one: BaseException | None = error
    while one is not None:
        if isinstance(one, DBAPIError) and _is_database(one):
            full = getattr(one.orig, "sqlstate", None) in _FULL
            return not full and (one.connection_invalidated or isinstance(one, OperationalError))
        one = one.__cause__ or one.__context__
    return False


def _is_database(error: BaseException) -> bool:
    """Return whether the driver of PostgreSQL raised an error; it may not be installed."""
    return isinstance(error, DBAPIError) and type(error.orig).__module__.partition(".")[0] == "psycopg"


@contextmanager
def disk_faults(tree: CourseTree) -> Iterator[None]:
    """Turn what a full disk or a closed folder raises into one message.

    Raises:
        UserError: one of them was met.
    """
    log = logging.getLogger("tornado.application")
    log.addFilter(_says_more_than_the_error)
    try:
        yield
    except UserError as error:
        # A release that nbgrader could not make.
        if isinstance(error.__cause__, NbgraderFailed) and (fault := _fault_in_log(error.__cause__.log)):
            raise UserError(_cure(tree, fault)) from error
        raise
    except (DBAPIError, OSError) as error:
        if is_damaged(error):
            raise UserError(
                f"{tree.gradebook} is damaged ({error.orig}): put the newest gradebook.db of {tree.backups} in its "
                "place. Without one, move the file away: scores come back from the records, marks do not"
            ) from error
        if fault := fault_of_machine(error):
            raise UserError(_cure(tree, fault)) from error
        raise
    finally:
        log.removeFilter(_says_more_than_the_error)


def is_damaged(error: BaseException) -> TypeGuard[DBAPIError]:
    """Return whether SQLite found that the file is no database, or a broken one."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    return isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


def _says_more_than_the_error(record: logging.LogRecord) -> bool:
    """Leave out what nbgrader logs of a database error, with its traceback, before it raises it."""
    return not record.getMessage().startswith("Rolling back session")


def fault_of_machine(error: BaseException) -> str:
    """Return what the system or SQLite says if the course's folder is at fault, or nothing; found by code."""
    one: BaseException | None = error
    while one is not None:
        if isinstance(one, OSError) and one.errno in _ERRNOS:
            return f"{one.filename}: {one.strerror}" if one.filename else str(one.strerror)
        if _is_database(one) and isinstance(one, OperationalError):
            return " ".join(str(one.orig).split())
        cause = one.orig if isinstance(one, DBAPIError) else one
        # The lowest byte is the kind of error, the others say more of it.
        if isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) & 0xFF in _SQLITE:
            return str(cause)
        one = one.__cause__ or one.__context__
    return ""


def _fault_in_log(text: str) -> str:
    """Return the last line of nbgrader's log that blames the course's folder, or nothing."""
    lines = [line.strip() for line in text.splitlines() if any(sign in line.lower() for sign in _IN_LOGS)]
    return lines[-1] if lines else ""


def _cure(tree: CourseTree, fault: str) -> str:
    if tree.database.is_file():
        place = tree.database.read_text(encoding="utf-8").strip()
        return (
            f"{tree.root} or {place} cannot be written ({fault}): make room, or start the database; then run the same "
            "command again. What is graded is kept."
        )
    return (
        f"{tree.root} cannot be written ({fault}): make room on its disk, correct its permissions, or close whatever "
        "else uses its gradebook; then run the same command again. What is graded is kept."
    )
