"""Move a class from files to a database and back, with nothing lost.

Everything is copied, read again and compared before the course's configuration changes. What was moved is set aside
where it was, under another name.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from typing import Any

from nbgrader.api import Base
from sqlalchemy import create_engine, select, text
from sqlalchemy.exc import IntegrityError

from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.postgres import PostgresStore, set_aside_tables
from mlsys.classroom.store.store import KINDS, DocumentStore, FileStore
from mlsys.core.files import write_atomically
from mlsys.course.nbgrader import (
    NO_COURSE,
    checked_url,
    database_url,
    forget_database,
    gradebook_url,
    open_gradebook,
    without_password,
)
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

_MOVED = ("records", "attempts", "runs", "marks", "scores", "gradebook.db")
"""Folders and files of a course that a database takes over."""
_LINE = "c.CourseDirectory.db_url = "


@dataclass(frozen=True)
class Moved:
    """How much was moved, and where what was moved is set aside."""

    documents: int
    rows: int
    set_aside: str


def move_to_database(tree: CourseTree, url: str) -> Moved:
    """Move a class from files and SQLite into an empty database.

    Raises:
        UserError: it is in a database already, or this one holds a class, cannot be reached, or came out different.
    """
    checked_url(url)
    if moved_to := database_url(tree):
        raise UserError(f"the class is in {without_password(moved_to)} already: `mlsys store --to files` moves it back")
    files, database = FileStore(tree), PostgresStore(tree, url)
    with files.lock(), database.lock():
        if database.all_keys():
            raise UserError(f"{without_password(url)} holds a class already: name an empty database")
        documents = copy_documents(files, database)
        with open_gradebook(tree):  # makes one where there is none
            pass
        rows = copy_gradebook(gradebook_url(tree), url)
        # The address goes first: a kill from here on leaves a class that says where it is.
        write_atomically(tree.database, f"{without_password(url)}\n".encode())
        _configure(tree, url)
        aside = _set_aside_files(tree)
    return Moved(documents, rows, aside)


def move_to_files(tree: CourseTree) -> Moved:
    """Move a class from its database into files and SQLite.

    Raises:
        UserError: it is in files already, the database cannot be reached, or something came out different.
    """
    url = database_url(tree)
    if not url:
        raise UserError(f"the class is in the files of {tree.root} already")
    database, files = PostgresStore(tree, url), FileStore(tree)
    with files.lock(), database.lock():
        _set_aside_files(tree)  # what an interrupted move has left
        documents = copy_documents(database, files)
        rows = copy_gradebook(url, f"sqlite:///{tree.gradebook.resolve()}")
        _configure(tree, "")
        tree.database.unlink()
        forget_database(url)
        aside = set_aside_tables(database, f"moved_{_now()}")
    return Moved(documents, rows, f"schema {aside} of {without_password(url)}")


def copy_documents(source: DocumentStore, target: DocumentStore, lab: str = "*", kinds: Sequence[str] = KINDS) -> int:
    """Copy documents from one store to another, compare them, and return how many there are.

    Raises:
        UserError: one came out different.
    """
    keys = source.all_keys(lab, tuple(kinds))
    for key in keys:
        data = source.read(key)
        if data is not None:
            target.write(key, data)
    for key in keys:
        if source.read(key) != target.read(key):
            raise UserError(f"{source.place(key)} and {target.place(key)} differ: run the same command again")
    if isinstance(target, PostgresStore):
        for name in sorted({key.lab for key in keys if key.kind == "record"}):
            for record in source.records(name).values():
                if record:
                    target.save_grades(record)
    return len(keys)


def copy_gradebook(source_url: str, target_url: str) -> int:
    """Replace what is in one gradebook of nbgrader by what is in another; return how many rows there are.

    Raises:
        UserError: a table came out different.
    """
    for url in (source_url, target_url):
        forget_database(url)
    rows = 0
    with ExitStack() as stack:
        engines = [create_engine(url) for url in (source_url, target_url)]
        for engine in engines:
            stack.callback(engine.dispose)
        source, target = (stack.enter_context(engine.begin()) for engine in engines)
        for connection in (source, target):  # as nbgrader does when it opens one
            Base.metadata.create_all(connection)
            connection.execute(text("CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL)"))
        for table in reversed(Base.metadata.sorted_tables):
            target.execute(table.delete())
        for table in Base.metadata.sorted_tables:
            found = [dict(row) for row in source.execute(select(table)).mappings()]
            if table.name == "course" and NO_COURSE not in {row["id"] for row in found}:
                source.execute(table.insert(), [{"id": NO_COURSE}])
                found = [dict(row) for row in source.execute(select(table)).mappings()]
            try:
                if found:
                    target.execute(table.insert(), found)
            except IntegrityError as error:
                raise UserError(
                    f"table {table.name} of the gradebook has a row that refers to nothing ({error.orig}): correct it "
                    "there first. Nothing was moved"
                ) from error
            if _sorted(source, table) != _sorted(target, table):
                raise UserError(f"table {table.name} of the gradebook came out different: run the same command again")
            rows += len(found)
        versions = source.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
        target.execute(text("DELETE FROM alembic_version"))
        for version in versions:
            target.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": version})
    return rows


def _set_aside_files(tree: CourseTree) -> str:
    """Move the files that a database takes over into a folder of their own, and return its path."""
    found = [name for name in _MOVED if (tree.root / name).exists()]
    moved = f"moved-{_now()}"
    # Two moves may fall into one second.
    names = chain([moved], (f"{moved}-{number}" for number in count(2)))
    aside = next(tree.root / name for name in names if not (tree.root / name).exists())
    for name in found:
        aside.mkdir(exist_ok=True)
        (tree.root / name).rename(aside / name)
    return str(aside) if found else "nothing"


def _sorted(connection: Any, table: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in connection.execute(select(table)))


def _configure(tree: CourseTree, url: str) -> None:
    """Write the line with the database's address into the course's configuration, or take it away."""
    lines = tree.config.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if not line.startswith(_LINE)]
    lines += [f"{_LINE}{url!r}  # written by `mlsys store`"] if url else []
    write_atomically(tree.config, ("\n".join(lines) + "\n").encode())
    tree.config.chmod(0o600)  # the address may hold a password


def where(tree: CourseTree) -> str:
    """Say where a class is kept and what there is of it."""
    store = store_of(tree)
    counts = {kind: len(store.all_keys(kinds=(kind,))) for kind in ("record", "attempts", "content")}
    return (
        f"{without_password(gradebook_url(tree))}: {counts['record']} records, {counts['attempts']} lists of attempts, "
        f"{counts['content']} files that were handed in"
    )


def _now() -> str:
    return f"{datetime.now(UTC):%Y%m%d_%H%M%S}"
