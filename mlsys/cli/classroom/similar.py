"""`mlsys similar LAB`: list similar kernels of a class, and of earlier terms, for a person to read."""

import argparse
import csv
import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.intake.reading import LabReader
from mlsys.classroom.processes.limited import helper_ends
from mlsys.classroom.report import safe
from mlsys.classroom.similarity.compare import Pair, similar_pairs, too_short
from mlsys.classroom.similarity.page import in_words, similar_page
from mlsys.classroom.similarity.works import starter_of, students_with_attempts, works_of
from mlsys.cli import whole_number
from mlsys.core.files import write_atomically
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UserError

NO_VERDICT = "This list is for you to read; it decides nothing. Code for one task is alike by nature."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys similar`."""
    parser.add_argument("lab", help="name of the lab")
    parser.add_argument(
        "--earlier", type=Path, nargs="+", default=[], metavar="DIR", help="course folders of earlier terms"
    )
    parser.add_argument(
        "--least",
        type=whole_number(1, 100),
        default=50,
        metavar="P",
        help="list pairs with P percent in common (%(default)s)",
    )
    parser.add_argument(
        "--most", type=whole_number(1), default=50, metavar="N", help="list at most N pairs (%(default)s)"
    )
    parser.add_argument("--sample-class", action="store_true", help="compare the lab's sample class instead")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print the list, and write it as a CSV file and as a page that shows each pair side by side."""
    # Into a file, rich would assume 80 columns.
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140, markup=False)
    tree, lab = CourseTree(args.course), args.lab
    tree = tree.sample_course if args.sample_class else tree
    _check_folders(tree, lab, args.earlier)
    with helper_ends():
        works, left_out = works_of(tree, lab, LabReader(tree, lab))
        starter = starter_of(tree, lab)
        for folder in args.earlier:
            old = CourseTree(folder)
            # A folder in which the attempts alone are left is read as if they were handed in here.
            released = old if old.release(lab).is_file() else tree
            more, without = works_of(old, lab, LabReader(released, lab), folder.resolve().name)
            works, left_out, starter = works + more, left_out + without, starter + starter_of(released, lab)
    pairs, further = similar_pairs(works, starter, args.least / 100, args.most)
    notes = [f"Not compared: {safe(reason)}" for reason in left_out]
    notes += [
        f"Not compared: {work.left_out} cells of {safe(work.who)} that are too long: look at them yourself"
        for work in works
        if work.left_out
    ]
    if short := too_short(works, starter):
        notes.append(f"Too short to be compared: {', '.join(map(safe, short))}")
    if further:
        notes.append(f"{further} more pairs have as much in common: list them with --most {args.most + further}")
    page = tree.results(lab).with_name(f"{lab}-similar.html")
    with disk_faults(tree):
        title = released_lab(tree, lab).title
        write_atomically(page, similar_page(title, pairs, notes).encode(errors="replace"))
        write_atomically(page.with_suffix(".csv"), _csv(pairs).encode("utf-8-sig", errors="replace"))
    if pairs:
        console.print(_table(pairs))
    for note in notes:
        console.print(note, soft_wrap=True)
    console.print(
        f"{len(works)} students compared, {len(pairs)} pairs with {args.least}% or more in common. {NO_VERDICT}",
        soft_wrap=True,
    )
    console.print(f"Side by side: {page}", soft_wrap=True)
    return 0


def _check_folders(tree: CourseTree, lab: str, earlier: Iterable[Path]) -> None:
    """Make sure that there is something to compare.

    Raises:
        UserError: the lab is not released here, nobody handed in, or an earlier folder has nothing of the lab.
    """
    if not tree.release(lab).is_file():
        raise UserError(f"{tree.root} holds no lab {lab!r}: run `mlsys grade {lab}` first, or correct the name")
    if not students_with_attempts(tree, lab):
        raise UserError(f"{tree.root} holds no submissions to {lab}: run `mlsys grade {lab} --submissions ...` first")
    names: dict[str, Path] = {}
    for folder in earlier:
        if not students_with_attempts(CourseTree(folder), lab):
            raise UserError(
                f"{folder} holds no attempts at {lab}: name the course folder of an earlier term, whose folder "
                "`attempts` has been kept"
            )
        name = folder.resolve().name
        if name in names:
            raise UserError(
                f"{names[name]} and {folder} have the same name, which stands for the term: rename one, as in 2025"
            )
        names[name] = folder


def _table(pairs: Iterable[Pair]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold")
    for column in ("one", "other"):
        table.add_column(column)
    table.add_column("in common", justify="right")
    table.add_column("the longest passages")
    for pair in pairs:
        longest = sorted(pair.passages, key=lambda passage: passage.left[1] - passage.left[2])[:2]
        lines = "; ".join(" = ".join(in_words(pair, passage)) for passage in longest)
        table.add_row(Text(safe(pair.left.who)), Text(safe(pair.right.who)), f"{pair.share:.0%}", Text(safe(lines)))
    return table


def _csv(pairs: Iterable[Pair]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("one", "other", "percent", "lines of one", "lines of the other"))
    for pair in pairs:
        for passage in pair.passages:
            left, right = in_words(pair, passage)
            who = safe(pair.left.who), safe(pair.right.who)
            writer.writerow((*who, f"{100 * pair.share:.0f}", safe(left), safe(right)))
    return out.getvalue()
