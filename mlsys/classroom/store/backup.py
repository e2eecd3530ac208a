"""Backups of a class, one before each run that changes it, and the way back.

A backup has the files of one lab as hard links, which take no room, because a file is replaced whole and never changed.
What is changed in place is copied: nbgrader's gradebook, and the lists of attempts, in which people enter times. Plain
nbgrader writes some pages in place: those can be made again from what is restored.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from mlsys.course.tree import ATTEMPTS, CourseTree
from mlsys.errors import UserError

KEPT = 20
"""Backups that are kept; older ones go."""
_PER_STUDENT = ("attempts", "submitted", "autograded", "feedback")


def back_up(tree: CourseTree, lab: str) -> Path:
    """Back up the gradebook and everything of a lab, and return the folder of the backup."""
    for left in tree.backups.glob("*.part"):  # by a run that was killed
        shutil.rmtree(left)
    now = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S-%f}"
    folder, draft = tree.backups / f"{now}-{lab}", tree.backups / f"{now}-{lab}.part"
    for path in _files(tree, lab):
        target = draft / path.relative_to(tree.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(path, target)
    draft.mkdir(parents=True, exist_ok=True)
    if tree.gradebook.is_file():
        _copy_gradebook(tree.gradebook, draft / tree.gradebook.name)
    draft.rename(folder)
    for old in backups(tree)[:-KEPT]:
        shutil.rmtree(old)
    return folder


def backups(tree: CourseTree) -> list[Path]:
    """Return the folders of all backups, oldest first."""
    return sorted(path for path in tree.backups.glob("*") if path.is_dir() and path.suffix != ".part")


def lab_of(backup: Path) -> str:
    """Return which lab a backup is of."""
    return backup.name.split("-", 6)[6]


def restore(tree: CourseTree, backup: Path) -> None:
    """Put back the files of a backup's lab, and the gradebook; files of the lab that came later go.

    A kill on the way leaves the backup whole: call again.

    Raises:
        UserError: the course's folder cannot be written.
    """
    lab = lab_of(backup)
    try:
        kept = {path.relative_to(backup) for path in backup.rglob("*") if path.is_file()}
        for path in list(_files(tree, lab)):
            if path.relative_to(tree.root) not in kept:
                path.unlink()
        for name in kept:
            target = tree.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f"{target.name}.part")
            draft.unlink(missing_ok=True)
            if name == Path(tree.gradebook.name):
                shutil.copy2(backup / name, draft)
            else:
                _link(backup / name, draft)
            draft.replace(target)
    except OSError as error:
        raise UserError(f"{tree.root} cannot be written ({error}): solve that and run the command again") from error


def _files(tree: CourseTree, lab: str) -> Iterator[Path]:
    """Yield the files of a lab, without the gradebook."""
    results = (tree.results(lab).with_name(f"{lab}{what}.csv") for what in ("", "-nbgrader", "-changes"))
    yield from (path for path in (tree.run(lab), tree.marks(lab), *results) if path.is_file())
    yield from tree.records(lab).glob("*.json")
    for folder in _PER_STUDENT:
        for path in (tree.root / folder).glob(f"*/{lab}/*"):
            if path.is_file() and not path.is_symlink():
                yield path


def _link(path: Path, target: Path) -> None:
    """Link a file, or copy it where people edit it, and where the disk has no hard links."""
    if path.name != ATTEMPTS:
        with suppress(OSError):
            os.link(path, target)
            return
    shutil.copy2(path, target)


def _copy_gradebook(path: Path, target: Path) -> None:
    """Copy SQLite's file as it is between two changes; one that is damaged is copied byte for byte."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)
    except sqlite3.DatabaseError:
        with suppress(FileNotFoundError):
            target.unlink()
        shutil.copy2(path, target)
