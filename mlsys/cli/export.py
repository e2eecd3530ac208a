"""`mlsys export LAB --canvas FILE --out FILE`: write a lab's scores into the gradebook that Canvas exported.

Scores come from the records that `mlsys grade` leaves, with the points that a person gave in nbgrader. What is missing,
waits for a GPU or a person, or was refused stays blank. Students who are on one side only are listed.
"""

import argparse
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from mlsys.classroom.canvas.fill import BLANK, FILLED, KEPT, NO_ROW, NO_SCORE, Filled, Note, fill, score_of
from mlsys.classroom.canvas.gradebook import Gradebook, new_roster, read_gradebook
from mlsys.classroom.gradebook.marks import marked_records, refresh_pages
from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.store import FileStore, Store
from mlsys.classroom.students.roster import Student, read_roster
from mlsys.core.files import write_atomically
from mlsys.course.lab import find_lab
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UserError

_TITLES = {
    FILLED: "filled in",
    BLANK: "left blank: no score yet",
    KEPT: "unchanged from Canvas",
    NO_SCORE: "in the gradebook, without a submission here",
    NO_ROW: "graded here, not in the gradebook: add their ids to the roster",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys export`."""
    parser.add_argument("lab", help="name of the lab")
    parser.add_argument("--canvas", type=Path, required=True, metavar="FILE", help="gradebook as Canvas exports it")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument(
        "--out", type=Path, metavar="FILE", help="write the filled gradebook here, for import in Canvas"
    )
    target.add_argument(
        "--new-roster", type=Path, metavar="FILE", help="only write a roster of the gradebook's students, to begin with"
    )
    parser.add_argument(
        "--roster", type=Path, metavar="FILE", help="roster with the students' names and ids (columns: docs)"
    )
    parser.add_argument("--assignment", metavar="NAME", help="name or id of the assignment (default: the lab's name)")
    parser.add_argument("--scale", action="store_true", help="scale to the assignment's points where they differ")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Fill a gradebook with a lab's scores, or begin a roster."""
    # Into a file, rich would assume 80 columns.
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140, markup=False)
    gradebook = read_gradebook(args.canvas)
    if args.new_roster:
        if args.new_roster.exists():
            raise UserError(f"{args.new_roster} exists and may hold extensions: choose another name")
        find_lab(Path.cwd(), args.lab)
        write_atomically(args.new_roster, new_roster(gradebook, [args.lab]).encode())
        console.print(f"{args.new_roster}: fill in the time zone and the due times", soft_wrap=True)
        return 0
    if args.out.resolve() == args.canvas.resolve():
        raise UserError(f"{args.out} is Canvas's own file, which is never overwritten: choose another name for --out")
    tree = CourseTree(args.course)
    store = FileStore(tree)
    with disk_faults(tree):
        read = marked_records(store, args.lab, refresh_pages(tree, store, args.lab))
    if not read:
        raise UserError(f"{tree.root} has no results of {args.lab}: run `mlsys grade {args.lab}` first")
    records = [record for record in read.values() if record]
    unreadable = {student: tree.record(args.lab, student) for student, record in read.items() if not record}
    notes = [Note(BLANK, student, f"{path} cannot be read: grade again") for student, path in unreadable.items()]
    students = dict(read_roster(args.roster).students) if args.roster else _as_handed_in(store, args.lab, records)
    assignment = gradebook.assignment(args.assignment or args.lab)
    filled = fill(gradebook, assignment, map(score_of, records), students, scale=args.scale)
    filled = replace(filled, notes=(*filled.notes, *notes))
    write_atomically(args.out, filled.table.to_bytes())
    show(filled, gradebook, console)
    console.print(f"Column {assignment.header!r} written to {args.out}: import it in Canvas", soft_wrap=True)
    return 0


def _as_handed_in(store: Store, lab: str, records: Iterable[Record]) -> dict[str, Student]:
    """Return, without a roster, the students by their names, with the Canvas ids of the files that they handed in."""
    students = {}
    for record in records:
        ids = [attempt.canvas_id for attempt in store.history(lab, record.student).attempts]
        students[record.student] = Student(record.student, record.student, canvas_id=ids[-1] if ids else "")
    return students


def show(filled: Filled, gradebook: Gradebook, console: Console) -> None:
    """Print what happened to every student's score."""
    for kind, title in _TITLES.items():
        notes = filled.of(kind)
        if notes:
            console.print(f"{len(notes)} {title}", style="bold", soft_wrap=True)
        for note in [] if kind == FILLED else notes:
            console.print(_shown(f"  {note.who}: {note.text}"), soft_wrap=True)
    for note in filled.of(FILLED):
        if "->" in note.text:
            console.print(_shown(f"  changed: {note.who}: {note.text}"), soft_wrap=True)
    for line, value in gradebook.formulas():
        console.print(_shown(f"  Careful with spreadsheets: line {line} holds {value[:60]!r}, as Canvas exported it"))


def _shown(text: str) -> str:
    # Names come from students and may hold what a terminal obeys.
    return "".join(character if character.isprintable() else "?" for character in text)
