"""`mlsys late --roster FILE`: the ledger of late days, for all labs together."""

import argparse
import csv
import io
import os
import sys
from functools import partial
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mlsys.classroom.intake.collect import counted_time
from mlsys.classroom.report import safe
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.store import HISTORY, RECORD
from mlsys.classroom.students.late import how_late
from mlsys.classroom.students.ledger import Entry, Ledger
from mlsys.classroom.students.roster import Roster, read_roster
from mlsys.core.files import write_atomically
from mlsys.course.lab import find_labs
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UserError

COLUMNS = ("student", "lab", "group", "due", "handed in", "late by", "needed", "spent", "left", "off")
SHOWN = (("student",), ("lab", "group"), ("due", "handed in"), ("late by",), ("needed", "spent"), ("left", "off"))
"""What stands in each column of the printed table, one below the other, so that it fits into 80 characters."""

LEAST = {"student": 12, "group": 14}
"""Least widths, in characters, of the columns that may be narrower than what stands in them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys late`."""
    parser.add_argument("--roster", type=Path, metavar="FILE", required=True, help="CSV file with due times and rules")
    parser.add_argument("--student", default="", metavar="ID", help="show this student only")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print who was late at which lab, what it cost and what is left; write the rows of everybody as a CSV file."""
    # Into a file, rich would assume 80 columns.
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140, markup=False)
    roster, tree = read_roster(args.roster), CourseTree(args.course)
    roster.check_labs(find_labs(Path.cwd()))
    if not roster.labs:
        raise UserError(f"{args.roster} has no due times: add a column such as 'due tiling'")
    students = [roster.student(args.student).id] if args.student else list(roster.students)
    if not _has_results(roster, tree):
        raise UserError(
            f"{tree.root} has no results of anybody in {args.roster}: run `mlsys grade` first, or correct --course or "
            "the ids"
        )
    rows = ledger_rows(roster, tree)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    for names in SHOWN:
        header = "\n".join([*names, " "][:2])  # at the top, where its cells begin
        # A long id or name of a group goes on in the next line, and everything else stays whole.
        least = LEAST.get(names[-1])
        table.add_column(header, overflow="fold", no_wrap=least is None, min_width=least)
    for row in rows:
        if row["student"] in students and (args.student or row["late by"] or row["handed in"] == UNKNOWN):
            table.add_row(*(Text("\n".join(safe(row[name]) for name in names)) for names in SHOWN))
    console.print(table if table.row_count else "Nobody was late.")
    path = tree.results("late-days")
    write_atomically(path, _csv(rows).encode("utf-8-sig"))
    console.print(f"All {len(rows)} rows are in {path}", soft_wrap=True)
    return 0


def _has_results(roster: Roster, tree: CourseTree) -> bool:
    """Return whether anybody of the roster was graded in any lab, or has an attempt that waits for that."""
    return any(key.student in roster.students for key in store_of(tree).all_keys(kinds=(RECORD, HISTORY)))


UNKNOWN = "unknown"


def ledger_rows(roster: Roster, tree: CourseTree) -> list[dict[str, str]]:
    """Return a row for each student and lab that has a due time, in the order of due times."""
    store = store_of(tree)
    ledger = Ledger(roster, partial(counted_time, store))
    return [
        _row(student, entry, store.record(entry.lab, student))
        for student in roster.students
        for entry in ledger.entries(student)
    ]


def _row(student: str, entry: Entry, record: Record | None) -> dict[str, str]:
    late, time, due = entry.late, entry.handed_in, entry.rule.due
    is_late = late is not None and late.minutes > 0
    unknown = UNKNOWN if record and not record.refused else ""
    return {
        "student": student,
        "lab": entry.lab,
        "group": entry.group,
        "due": f"{due:%Y-%m-%d %H:%M %Z}",
        "handed in": f"{time.astimezone(due.tzinfo):%Y-%m-%d %H:%M}" if time else unknown,
        "late by": how_late(late.minutes) if late and is_late else "",
        "needed": str(late.needed) if late and is_late else "",
        "spent": str(late.spent) if late and is_late else "",
        "left": str(entry.left),
        "off": f"{100 * late.off:g}%" if late and late.off else "",
    }


def _csv(rows: list[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([safe(row[column]) for column in COLUMNS] for row in rows)
    return out.getvalue()
