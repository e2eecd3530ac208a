"""nbgrader in this process: its converters with their log in a file, its configuration, and its gradebook.

The gradebook is a file of SQLite in the course's folder, or in the PostgreSQL database that nbgrader's own setting
`c.CourseDirectory.db_url` names. `mlsys store` moves a class and writes that line, together with `database.txt` in the
course's folder. Where the two do not agree, nothing is opened: a lost or shadowed line must not begin an empty class.
"""

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.orm import scoped_session, sessionmaker
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from mlsys.core.files import write_atomically
from mlsys.course.tree import CourseTree
from mlsys.errors import InvalidValue, UserError

POSTGRES = "postgresql+psycopg://"
"""How the address of a database begins: the driver is named, or SQLAlchemy would look for another one."""
PATIENCE_S = 60.0
"""Longest wait for a database that was reached before and does not answer now, in seconds: it may be restarting."""
NO_COURSE = ""
"""Course of the assignments that nbgrader's commands enter; PostgreSQL insists that it is there, SQLite does not."""


class NbgraderFailed(Exception):
    """A step of nbgrader ended with an error; `log` is what it said."""

    def __init__(self, step: str, log: str, path: Path) -> None:
        errors = [line for line in log.splitlines() if line.strip()]
        super().__init__(f"{step}: {errors[-1] if errors else 'no message'} (all of it: {path})")
        self.log = log


def generate_assignment(tree: CourseTree, lab: str) -> None:
    """Make `release/` from `source/` and enter the questions in the gradebook."""
    _find_nbgraders_programs()
    config = nbgrader_config(tree)
    config.CourseDirectory.root = str(tree.root.resolve())
    config.CourseDirectory.assignment_id = lab
    config.GenerateAssignment.force = True
    path = tree.log(f"{lab}-GenerateAssignment")
    with log_to(path):
        try:
            GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()
        except NbGraderException as error:
            raise NbgraderFailed("GenerateAssignment", path.read_text(encoding="utf-8"), path) from error


@contextmanager
def open_gradebook(tree: CourseTree) -> Iterator[Gradebook]:
    """Open the course's gradebook, and close it afterwards.

    Raises:
        UserError: configuration and course do not agree about the database.
    """
    _find_nbgraders_programs()
    url = gradebook_url(tree)
    with _in_database(url) if url.startswith(POSTGRES) else Gradebook(url) as gradebook:
        yield gradebook


def gradebook_url(tree: CourseTree) -> str:
    """Return the address of nbgrader's gradebook.

    Raises:
        UserError: as `database_url`.
    """
    return database_url(tree) or f"sqlite:///{tree.gradebook.resolve()}"


def gradebook_exists(tree: CourseTree) -> bool:
    """Return whether there is a gradebook; opening one that does not exist makes it."""
    return bool(database_url(tree)) or tree.gradebook.is_file()


def database_url(tree: CourseTree) -> str:
    """Return the address of the database in which the class is kept; nothing where files and SQLite keep it.

    Raises:
        UserError: the course's configuration names another one than that to which the class was moved.
        InvalidValue: it names something that is no database of PostgreSQL.
    """
    url = _configured_url(tree)
    moved_to = tree.database.read_text(encoding="utf-8").strip() if tree.database.is_file() else ""
    if not url and not moved_to:
        return ""
    if url and not moved_to:
        raise UserError(
            f"{tree.config} names the database {without_password(url)}, but the class is kept in files: run `mlsys "
            "store --to` with that address, which moves it, or delete the line with db_url"
        )
    if not url or without_password(url) != moved_to:
        named = f"names {without_password(url)}" if url else "names no database"
        raise UserError(
            f"the class is kept in {moved_to}, but {tree.config} {named}: correct the line that begins with "
            f"`c.CourseDirectory.db_url`. Nothing was read or written. ({tree.database} says where the class is.)"
        )
    return url


def check_database(tree: CourseTree, url: str) -> None:
    """Refuse a gradebook that nbgrader has opened where the class's own is another.

    Raises:
        UserError: another configuration has shadowed the course's.
    """
    own = database_url(tree)
    if url != own and (own or not url.startswith("sqlite")):
        raise UserError(
            f"nbgrader uses the gradebook {without_password(url)}, and the course's is "
            f"{without_password(gradebook_url(tree))}: run it in {tree.root}, without another db_url"
        )


def checked_url(url: str) -> str:
    """Return an address of PostgreSQL.

    Raises:
        InvalidValue: it is none.
    """
    try:
        address = make_url(url)
    except ArgumentError:
        address = None
    if address is None or not url.startswith(POSTGRES) or not address.database:
        raise InvalidValue(
            f"{without_password(url)!r} is no address of a PostgreSQL database: such an address looks like "
            f"{POSTGRES}NAME@HOST/DATABASE"
        )
    return url


def without_password(url: str) -> str:
    """Return an address as it may be printed.

    >>> without_password("postgresql+psycopg://me:secret@db.school.edu/course")
    'postgresql+psycopg://me@db.school.edu/course'
    """
    try:
        return make_url(url)._replace(password=None).render_as_string()
    except ArgumentError:
        return url


def _configured_url(tree: CourseTree) -> str:
    if not tree.config.is_file():
        return ""
    url = str(nbgrader_config(tree).CourseDirectory.get("db_url", ""))
    if not url.startswith("sqlite"):
        return checked_url(url) if url else ""
    if Path(url.removeprefix("sqlite:///")).resolve() != tree.gradebook.resolve():
        raise InvalidValue(f"{tree.config}: db_url is {url!r}; SQLite's gradebook is {tree.gradebook}: delete the line")
    return ""


class _InDatabase(Gradebook):  # type: ignore[misc]
    """A gradebook on an engine that stays: nbgrader's own looks for each of its tables whenever it is opened."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.db = scoped_session(sessionmaker(autoflush=True, bind=engine, future=True))
        self.course_id, self.authenticator = "default_course", None

    def close(self) -> None:
        """Give the connection back."""
        self.db.remove()


_engines: dict[str, Engine] = {}


def _in_database(url: str) -> Gradebook:
    if url not in _engines:
        Gradebook(url).close()  # makes its tables where there are none
        _engines[url] = create_engine(url, pool_pre_ping=True, pool_size=1)
    _wait_for(_engines[url])
    return _InDatabase(_engines[url])


def _wait_for(engine: Engine) -> None:
    """Return when a database answers that was reached before: it may be restarting."""
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            with engine.connect():
                return
        except OperationalError:
            if time.monotonic() > give_up_s:
                raise
        time.sleep(0.25)


def forget_database(url: str) -> None:
    """Close the connections to a database whose tables go or change."""
    if engine := _engines.pop(url, None):
        engine.dispose()


def nbgrader_config(tree: CourseTree) -> Config:
    """Return what the course's `nbgrader_config.py` sets."""
    _follow_moved_modules(tree.config)
    return PyFileConfigLoader(tree.config.name, path=str(tree.root)).load_config()


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Write what nbgrader says meanwhile to a file."""
    logger = logging.getLogger("traitlets")  # what converters without an application log to
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    kept = logger.handlers[:], logger.propagate, logger.level
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers, logger.propagate = kept[0], kept[1]
        logger.setLevel(kept[2])
        handler.close()


def _find_nbgraders_programs() -> None:
    # nbgrader starts `alembic` by name, which is beside the Python that runs this.
    folder = str(Path(sys.executable).parent)
    if folder not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])


_MOVED = {"from mlsys.grading.nbgrader_plugin import": "from mlsys.classroom.gradebook.nbgrader_plugin import"}
"""Lines of `nbgrader_config.py` that `mlsys` wrote under an earlier layout of the package, with what they are now."""


def _follow_moved_modules(config: Path) -> None:
    """Rewrite the line by which an older course's configuration imports the course's steps; the rest stays."""
    if not config.is_file():
        return
    text = moved = config.read_text(encoding="utf-8")
    for old, new in _MOVED.items():
        moved = moved.replace(old, new)
    if moved != text:
        write_atomically(config, moved.encode())
        print(f"{config}: its import of the course's steps is brought up to date; nothing else in it changed")
