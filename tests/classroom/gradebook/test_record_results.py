"""Entering scores: what stops a run is the machine's fault and told by its code, not by the words of a message."""

import errno
import sqlite3
from pathlib import Path

import pytest
from nbgrader.api import InvalidEntry
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from mlsys.classroom.gradebook.record_results import disk_faults, fault_of_machine
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


def said_of(error: Exception, tree: CourseTree) -> str:
    """The message that an error ends in, wherever in a run it is raised."""
    with pytest.raises(Exception) as found, disk_faults(tree):  # noqa: PT011  any may come out
        raise error
    return str(found.value) if isinstance(found.value, UserError) else ""


def sqlite_error(folder: Path, statement: str) -> OperationalError:
    """What SQLAlchemy makes of an error that SQLite really raises in a database of one page."""
    engine = create_engine(f"sqlite:///{folder / 'a.db'}", connect_args={"timeout": 0})

    def ask() -> None:
        with engine.connect() as connection:
            connection.execute(text("PRAGMA max_page_count = 1"))
            connection.execute(text(statement))

    with pytest.raises(OperationalError) as found:
        ask()
    return found.value


@pytest.mark.parametrize(
    ("folder", "statement"), [(".", "CREATE TABLE full (x)"), ("not there", "SELECT 1")], ids=["full", "no folder"]
)
def test_what_sqlite_says_of_the_folder_is_the_machines_fault(tmp_path: Path, folder: str, statement: str) -> None:
    error = sqlite_error(tmp_path / folder, statement)
    assert error.orig is not None
    error.orig.args = ("une erreur",)
    assert "cannot be written (une erreur)" in said_of(error, CourseTree(tmp_path))


def test_a_database_that_another_process_holds_is_the_machines_fault(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "locked" in said_of(sqlite_error(tmp_path, "CREATE TABLE x (x)"), CourseTree(tmp_path))


def test_the_cause_of_nbgraders_own_error_is_found() -> None:
    error = InvalidEntry("it failed")
    error.__context__ = OSError(errno.ENOSPC, "plein", "gradebook.db")
    assert fault_of_machine(error) == "gradebook.db: plein"


@pytest.mark.parametrize("words", ["disk is full", "database is locked", "no space left", "permission denied"])
def test_the_same_words_in_another_error_blame_nobody(tmp_path: Path, words: str) -> None:
    for error in (
        sqlite_error(tmp_path, f'SELECT 1 FROM "{words}"'),
        OSError(errno.ENAMETOOLONG, words),
        ValueError(words),
    ):
        assert words in str(error)
        assert said_of(error, CourseTree(tmp_path)) == ""
