"""nbgrader's converters, run in this process with the course's configuration and their log kept in a file."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from mlsys.core.files import write_atomically
from mlsys.course.tree import CourseTree


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
    """Open the course's gradebook, and close it afterwards."""
    _find_nbgraders_programs()
    with Gradebook(tree.gradebook_url) as gradebook:
        yield gradebook


def nbgrader_config(tree: CourseTree) -> Config:
    """Return what the course's `nbgrader_config.py` sets."""
    _follow_moved_modules(tree.config)
    return PyFileConfigLoader(tree.config.name, path=str(tree.root)).load_config()


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Write what nbgrader says meanwhile to a file."""
    logger = logging.getLogger("traitlets")  # what converters without an application log to
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
