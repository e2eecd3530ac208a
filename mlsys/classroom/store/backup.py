"""Backups of a class, one before each run that changes it, and the way back.

A backup has the files of one lab as hard links, which take no room, because a file is replaced whole and never changed.
What is changed in place is copied: nbgrader's gradebook, and the lists of attempts, in which people enter times. Plain
nbgrader writes some pages in place: those can be made again from what is restored.

A backup is the same in files, wherever the class is kept: what a database holds is written into it, and goes back.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.store import ATTEMPT_RECORD, HISTORY, MARKS, RECORD, RUN, FileStore
from mlsys.course.nbgrader import database_url, gradebook_url
from mlsys.course.tree import ATTEMPTS, CourseTree
from mlsys.errors import UserError

KEPT = 20
"""Backups that are kept; older ones go."""
_BACKED_UP = (RECORD, ATTEMPT_RECORD, RUN, MARKS, HISTORY)
"""Documents of a database that a backup has; what was handed in never changes, and histories of scores stay."""
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
    if url := database_url(tree):
        from mlsys.classroom.store.move import copy_documents, copy_gradebook

        copy_documents(store_of(tree), FileStore(CourseTree(draft)), lab, _BACKED_UP)
        copy_gradebook(url, gradebook_url(CourseTree(draft)))
    elif tree.gradebook.is_file():
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
        if database_url(tree):
            _into_database(tree, backup, lab)
            of_database = FileStore(CourseTree(backup))
            kept -= {of_database.path(key).relative_to(backup) for key in of_database.all_keys()}
            kept.discard(Path(tree.gradebook.name))
        for path in list(_files(tree, lab)):
            if path.relative_to(tree.root) not in kept:
                path.unlink()
                _leave_no_empty_folder(path, tree.root)
        for name in kept:
            target = tree.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_file() and target.samefile(backup / name):
                continue  # a link to what is kept; renaming a second one over it would do nothing, and leave that
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
    results = [tree.results(lab).with_name(f"{lab}{what}.csv") for what in ("", "-nbgrader", "-changes")]
    yield from (path for path in (*results, tree.class_page(lab)) if path.is_file())
    if not database_url(tree):
        yield from (path for path in (tree.run(lab), tree.marks(lab)) if path.is_file())
        yield from tree.records(lab).glob("*.json")
    per_student = _PER_STUDENT[1:] if database_url(tree) else _PER_STUDENT
    for folder in per_student:
        for path in (tree.root / folder).glob(f"*/{lab}/*"):
            if path.is_file() and not path.is_symlink():
                yield path


def _leave_no_empty_folder(path: Path, root: Path) -> None:
    """Remove the folders of a student's file that has gone, if nothing else is in them: an empty one is a hand-in."""
    if path.relative_to(root).parts[0] in _PER_STUDENT:
        with suppress(OSError):  # not empty
            path.parent.rmdir()
            path.parent.parent.rmdir()


def _into_database(tree: CourseTree, backup: Path, lab: str) -> None:
    """Put back what a database holds of a lab, and the gradebook."""
    from mlsys.classroom.store.move import copy_documents, copy_gradebook
    from mlsys.classroom.store.postgres import PostgresStore

    files, database = FileStore(CourseTree(backup)), store_of(tree)
    assert isinstance(database, PostgresStore)
    kept = set(files.all_keys(lab, _BACKED_UP))
    database.remove([key for key in database.all_keys(lab, _BACKED_UP) if key not in kept])
    copy_documents(files, database, lab, _BACKED_UP)
    copy_gradebook(gradebook_url(CourseTree(backup)), gradebook_url(tree))


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
