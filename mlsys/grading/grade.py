"""`mlsys grade LAB`: grade a class, print the table, and say where table, feedback and CSV are."""

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console

from mlsys.course.lab import find_lab
from mlsys.course.nbgrader_steps import export_gradebook
from mlsys.course.release import release
from mlsys.course.sample_class import hand_in
from mlsys.course.tree import COURSE, CourseTree
from mlsys.grading.class_grading import Batch, Options, grade_class
from mlsys.grading.regrade import changes_table
from mlsys.grading.report import reasons, table, write_csv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `mlsys grade`."""
    parser.add_argument("lab", help="name of the lab")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--submissions",
        type=Path,
        metavar="DIR",
        help="folder of <student>.ipynb, or an nbgrader tree (default: what is in the course tree's submitted/)",
    )
    source.add_argument("--sample-class", action="store_true", help="hand in the lab's sample class, then grade")
    parser.add_argument("--workers", type=positive, default=os.cpu_count() or 1, metavar="N", help="judge N at a time")
    parser.add_argument("--student", default="", metavar="ID", help="grade this student only")
    parser.add_argument("--yes", action="store_true", help="write scores that a regrade changes")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def positive(text: str) -> int:
    """A whole number of 1 or more, from the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Grade a lab of the repository in the current folder."""
    # Into a file, rich would assume 80 columns.
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140
    root, tree, console = Path.cwd(), CourseTree(args.course), Console(width=width)
    path = find_lab(root, args.lab)
    submissions = args.submissions
    if args.sample_class:
        release(root, tree, [args.lab])
        submissions = tree.root / "sample-class" / args.lab
        hand_in(path, submissions, tree)
    options = Options(submissions, args.workers, args.student, args.yes)
    batch = grade_class(root, tree, args.lab, options, console)
    show(batch, tree, console)
    return 0


def show(batch: Batch, tree: CourseTree, console: Console) -> None:
    """Print the table of a graded class and write its CSV files."""
    lab, records = batch.lab, list(batch.records.values())
    write_csv(records, tree.results(lab.name))
    gradebook_csv = tree.results(lab.name).with_name(f"{lab.name}-nbgrader.csv")
    if batch.graded_now or not gradebook_csv.is_file():
        export_gradebook(tree, lab.name, gradebook_csv)
    console.print(table(f"{lab.title}: verdicts and points", records))
    console.print(reasons(records))
    if batch.changes:
        console.print(f"{len(batch.changes)} scores change on submissions that are the same as before:")
        console.print(changes_table(batch.changes))
        kept = "They are not written: run again with --yes to accept them." if batch.withheld else "They are written."
        console.print(kept)
    waiting = sum(question.waiting for record in records for question in record.questions)
    refused = sum(bool(record.refused) for record in records)
    console.print(
        f"{len(records)} submissions ({batch.graded_now} graded now, {len(records) - batch.graded_now} unchanged), "
        f"{refused} refused; {waiting:g} points wait for a GPU or a person."
    )
    console.print(f"Results:   {tree.results(lab.name)}", soft_wrap=True)
    console.print(f"Feedback:  {tree.root / 'feedback'}/<student>/{lab.name}/{lab.name}.html", soft_wrap=True)
    console.print(f"Gradebook: {tree.root / 'gradebook.db'}, exported to {gradebook_csv}", soft_wrap=True)
