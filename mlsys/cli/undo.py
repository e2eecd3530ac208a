"""`mlsys undo`: bring back the class as it was before the last grading or marking."""

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from sqlalchemy.exc import DBAPIError

from mlsys.classroom.gradebook.marks import marked_records, marks_of
from mlsys.classroom.gradebook.record_results import is_damaged
from mlsys.classroom.store.backup import back_up, backups, lab_of, restore
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.store import RECORD
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UnknownName, UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys undo`."""
    parser.add_argument("--to", metavar="NAME", help="name of an older backup (default: the newest)")
    parser.add_argument("--yes", action="store_true", help="restore it; without --yes, the changes are only listed")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """List what the last backup would change; with `--yes`, bring it back."""
    tree, console = CourseTree(args.course), Console(markup=False, highlight=False, soft_wrap=True)
    kept = {path.name: path for path in backups(tree)}
    if not kept:
        raise UserError(
            f"{tree.backups} holds no backup, so there is nothing to undo: `mlsys grade` and `mlsys mark` make them"
        )
    if args.to and args.to not in kept:
        raise UnknownName.of("backup", args.to, kept)
    backup = kept[args.to or max(kept)]
    lab = lab_of(backup)
    console.print(f"The last grading, marking or undo of {lab} replaced the state in {backup}")
    try:
        lines = list(changes(tree, CourseTree(backup), lab))
    except DBAPIError as error:
        if not is_damaged(error):
            raise
        lines = ["a gradebook is damaged, so what changes cannot be listed; marks given since then are lost"]
    for line in lines:
        console.print(f"  {line}")
    if not args.yes:
        console.print("Nothing was changed: run `mlsys undo --yes` to restore that state.")
        return 3
    with store_of(tree).lock():
        saved = back_up(tree, lab)
        restore(tree, backup)
        shutil.rmtree(backup)
    console.print(f"Done. The replaced state is in {saved}: run `mlsys undo --yes` again to bring it back.")
    return 0


def changes(tree: CourseTree, backup: CourseTree, lab: str) -> Iterator[str]:
    """Yield what is another score after the backup is restored, and which marks of other labs are lost.

    Raises:
        DBAPIError: one of the two gradebooks is damaged.
    """
    before, now = scores(backup, lab), scores(tree, lab)
    for student in sorted(before.keys() | now.keys()):
        if before.get(student) != now.get(student):
            yield f"{student}: {now.get(student, 'nothing')} -> {before.get(student, 'nothing')}"
    for other in sorted({key.lab for key in store_of(tree).all_keys(kinds=(RECORD,))} - {lab}):
        then, today = marks_of(backup, other), marks_of(tree, other)
        for student in sorted(student for student, marks in today.items() if then.get(student) != marks):
            yield f"{student}: marks given in {other} since then are lost: the whole gradebook is restored"


def scores(tree: CourseTree, lab: str) -> dict[str, str]:
    """Return everybody's score, in words."""
    return {
        student: f"{record.points:g} points{' (refused)' if record.refused else ''}" if record else "unreadable"
        for student, record in marked_records(store_of(tree), lab, marks_of(tree, lab)).items()
    }
