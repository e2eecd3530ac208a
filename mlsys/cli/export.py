"""`mlsys export LAB --canvas FILE | --moodle FILE | --gradescope | --csv --out FILE`: write a lab's scores for an LMS.

Scores come from the records that `mlsys grade` leaves, with the points that a person gave in nbgrader. What is missing,
waits for a GPU or a person, or was refused stays blank. Students who are on one side only are listed.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from mlsys.classroom.gradebook.marks import check_marks, read_class
from mlsys.classroom.gradebook.nbgrader import write_tables
from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.lms import canvas, moodle
from mlsys.classroom.lms.canvas import Gradebook, read_gradebook
from mlsys.classroom.lms.csv_file import Table, formulas
from mlsys.classroom.lms.fill import (
    BLANK,
    FILLED,
    KEPT,
    NO_ROW,
    NO_SCORE,
    PARTIAL,
    Filled,
    Note,
    Score,
    fill,
    plain_table,
    score_of,
)
from mlsys.classroom.lms.gradescope_results import Graded, autograder
from mlsys.classroom.lms.moodle import Worksheet, read_worksheet
from mlsys.classroom.lms.new_roster import ListedTwice, new_roster
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.store import Store
from mlsys.classroom.students.roster import Student, read_roster
from mlsys.core.files import write_atomically
from mlsys.course.lab import find_lab
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UnknownName, UserError

_TITLES = {
    FILLED: "filled in",
    BLANK: "left blank: no score yet (--partial and --without fill in what is certain)",
    PARTIAL: "with points that still wait",
    KEPT: "unchanged",
    NO_SCORE: "in the gradebook, without a submission here",
    NO_ROW: "graded here, not in the gradebook: add their ids to the roster",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys export`."""
    parser.add_argument("lab", help="name of the lab")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--canvas", type=Path, metavar="FILE", help="fill the gradebook that Canvas exported")
    kind.add_argument("--moodle", type=Path, metavar="FILE", help="fill the grading worksheet of a Moodle assignment")
    kind.add_argument(
        "--gradescope", action="store_true", help="write the zip of an autograder that gives Gradescope the scores"
    )
    kind.add_argument("--csv", action="store_true", help="write a plain table of students and points")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--out", type=Path, metavar="FILE", help="write the scores here, for import in the LMS")
    target.add_argument(
        "--new-roster", type=Path, metavar="FILE", help="only write a roster of the students in FILE, to begin with"
    )
    parser.add_argument(
        "--roster", type=Path, metavar="FILE", help="CSV file of students, with their names and their ids in the LMS"
    )
    parser.add_argument("--assignment", metavar="NAME", help="name or id of the assignment in Canvas (the lab's name)")
    parser.add_argument("--scale", action="store_true", help="scale to the assignment's points where they differ")
    parser.add_argument(
        "--partial", action="store_true", help="write the points that are certain, although others still wait"
    )
    parser.add_argument(
        "--without", default="", metavar="QUESTIONS", help="leave out questions, such as e,challenge, and their points"
    )
    parser.add_argument("--yes", action="store_true", help="go on although the gradebook lacks marks that people gave")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Write a lab's scores for a platform, or begin a roster."""
    # Into a file, rich would assume 80 columns.
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140, markup=False)
    find_lab(Path.cwd(), args.lab)
    grades = read_gradebook(args.canvas) if args.canvas else read_worksheet(args.moodle) if args.moodle else None
    if args.new_roster:
        return _begin_roster(args, grades, console)
    if args.out.resolve() in [path.resolve() for path in (args.canvas, args.moodle) if path]:
        raise UserError(f"{args.out} is the LMS's own file, which is never overwritten: choose another name for --out")
    tree = CourseTree(args.course)
    store = store_of(tree)
    with disk_faults(tree):
        check_marks(tree, store, args.lab, accept=args.yes)
        read = read_class(tree, store, args.lab)
    if not read:
        raise UserError(f"{tree.root} has no results of {args.lab}: run `mlsys grade {args.lab}` first")
    records = [record for record in read.values() if record]
    with disk_faults(tree):
        write_tables(tree, args.lab, records)
    if (last := store.run(args.lab)) and (said := last.unfinished(args.lab)):
        console.print(said, soft_wrap=True)
    without = _without(args.without, records)
    unreadable = {student: tree.record(args.lab, student) for student, record in read.items() if not record}
    notes = [Note(BLANK, student, f"{path} cannot be read: grade again") for student, path in unreadable.items()]
    students = dict(read_roster(args.roster).students) if args.roster else _as_handed_in(store, args.lab, records)
    scores = [score_of(record, without, partial=args.partial) for record in records]
    if without:
        console.print(_weights(records[0], without), soft_wrap=True)
    if grades is None:
        absent = [name for name in students if name not in read] if args.roster else []
        most = max((score.most for score in scores), default=0)
        scores += [Score(name, None, most, "handed in nothing") for name in absent]
        notes += [Note(BLANK, score.student, score.reason) for score in scores if score.points is None]
        notes += [Note(PARTIAL, one.student, one.reason) for one in scores if one.points is not None and one.reason]
        show(Filled(Table(()), tuple(notes)), (), console)
        if args.gradescope:
            found = zip(records, scores, strict=True)
            graded = [_graded(store, record, score, students) for record, score in found if score.points is not None]
            if not graded:
                raise UserError(f"nobody has a score in {args.lab} yet; see the reasons above")
            write_atomically(args.out, autograder(graded, without))
            console.print(f"{len(graded)} students in {args.out}: {_next_in_gradescope(graded)}", soft_wrap=True)
            return 0
        write_atomically(args.out, plain_table(scores, students).encode("utf-8-sig"))
        console.print(f"{len(scores)} students in {args.out}", soft_wrap=True)
        return 0
    if isinstance(grades, Gradebook):
        assignment, where = grades.assignment(args.assignment or args.lab), "import it in Canvas"
    else:
        assignment, where = grades.assignment(), "upload it as the grading worksheet in Moodle"
    filled = fill(grades, assignment, scores, students, scale=args.scale)
    filled = replace(filled, notes=(*filled.notes, *notes))
    write_atomically(args.out, filled.table.to_bytes())
    show(filled, formulas(grades.table), console)
    console.print(f"Column {assignment.header!r} written to {args.out}: {where}", soft_wrap=True)
    return 0


def _graded(store: Store, record: Record, score: Score, students: Mapping[str, Student]) -> Graded:
    """Return what Gradescope is told of a student with a score."""
    about = students.get(record.student, Student(record.student, record.student))
    addresses = [text for text in (about.sis_login_id, about.id) if "@" in text]
    attempts = store.history(record.lab, record.student).attempts
    return Graded(record, score, [one.digest for one in attempts], addresses)


def _next_in_gradescope(graded: Sequence[Graded]) -> str:
    """Say what to do with the autograder's zip."""
    return (
        f"in Gradescope give the assignment {graded[0].score.most:g} autograder points, upload the zip as its "
        "autograder, and have it run again on all submissions"
    )


def _begin_roster(args: argparse.Namespace, grades: Gradebook | Worksheet | None, console: Console) -> int:
    if grades is None:
        raise UserError("--new-roster needs the students of an LMS: name its file with --canvas or --moodle")
    if args.new_roster.exists():
        raise UserError(f"{args.new_roster} exists and may hold extensions: choose another name")
    rows = canvas.roster_rows(grades) if isinstance(grades, Gradebook) else moodle.roster_rows(grades)
    try:
        text = new_roster(rows, [args.lab])
    except ListedTwice as error:
        raise ListedTwice(f"{args.canvas or args.moodle}: {error}") from error
    write_atomically(args.new_roster, text.encode())
    console.print(f"{args.new_roster}: fill in the time zone and the due times", soft_wrap=True)
    return 0


def _without(text: str, records: Iterable[Record]) -> tuple[str, ...]:
    """Return the questions in the argument `--without`.

    Raises:
        UnknownName: one is not a question of the lab.
        UserError: no question is left.
    """
    known = list(dict.fromkeys(question.question for record in records for question in record.questions))
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise UnknownName.of("question", name, known)
    if known and set(names) == set(known):
        raise UserError(f"--without {text} leaves no question: name fewer")
    return names


def _weights(record: Record, without: Sequence[str]) -> str:
    """Say what the questions that are left weigh."""
    left = {one.question: one.max_points for one in record.questions if one.question not in without}
    total, most = sum(left.values()), sum(question.max_points for question in record.questions)
    shares = ", ".join(f"{name} {points:g} ({points / total:.0%})" for name, points in left.items() if total)
    return f"Without {', '.join(without)}: scores are out of {total:g} of the lab's {most:g} points: {shares}"


def _as_handed_in(store: Store, lab: str, records: Iterable[Record]) -> dict[str, Student]:
    """Return, without a roster, the students by their names, with the Canvas ids of the files that they handed in."""
    students = {}
    for record in records:
        ids = [attempt.canvas_id for attempt in store.history(lab, record.student).attempts]
        students[record.student] = Student(record.student, record.student, canvas_id=ids[-1] if ids else "")
    return students


def show(filled: Filled, risky: Iterable[tuple[int, str]], console: Console) -> None:
    """Print what happened to every student's score, and cells that a spreadsheet would take for a formula."""
    for kind, title in _TITLES.items():
        notes = filled.of(kind)
        if notes:
            console.print(f"{len(notes)} {title}", style="bold", soft_wrap=True)
        for note in [] if kind == FILLED else notes:
            console.print(_shown(f"  {note.who}: {note.text}"), soft_wrap=True)
    for note in filled.of(FILLED):
        if "->" in note.text:
            console.print(_shown(f"  changed: {note.who}: {note.text}"), soft_wrap=True)
    for line, value in risky:
        console.print(_shown(f"  Careful with spreadsheets: line {line} holds {value[:60]!r}, as it was exported"))


def _shown(text: str) -> str:
    # Names come from students and may hold what a terminal obeys.
    return "".join(character if character.isprintable() else "?" for character in text)
