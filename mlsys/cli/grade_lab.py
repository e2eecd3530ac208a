"""What `mlsys grade LAB` does: grade a class, print the table, and say where table, feedback and CSV are."""

import argparse
import gc
import os
import sys
from pathlib import Path

from rich.console import Console

from mlsys.classroom.grade_class import Batch, Options, grade_class
from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.regrade import changes_table, changes_title
from mlsys.classroom.report import arrivals, by_question, other_versions, reasons, table, write_csv
from mlsys.classroom.store.run import Run, one_at_a_time
from mlsys.classroom.students.attempt_policy import POLICIES
from mlsys.classroom.students.roster_file import read_roster
from mlsys.cli.grade import RESUMED, remembered
from mlsys.course.nbgrader import export_gradebook
from mlsys.course.tree import CourseTree


def grade_lab(args: argparse.Namespace) -> int:
    """Grade a lab of the repository in the current folder."""
    # Into a file, rich would assume 80 columns.
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140
    root, tree, console = Path.cwd(), CourseTree(args.course), Console(width=width)
    go_on(args, tree, console)
    options = Options(
        submissions=args.submissions,
        workers=args.workers,
        student=args.student,
        accept_changes=args.yes,
        roster=read_roster(args.roster) if args.roster else None,
        policy=args.attempt or POLICIES[0],
        sample_class=args.sample_class,
        unsafe_no_sandbox=args.unsafe_no_sandbox,
        arguments=remembered(args),
    )
    gc.freeze()  # what is imported stays: else collections that walk it take a tenth of the time
    batch = grade_class(root, tree, args.lab, options, console)
    with disk_faults(tree):
        show(batch, tree, console)
    return 0


def go_on(args: argparse.Namespace, tree: CourseTree, console: Console) -> None:
    """Say that a run was interrupted, and with `--resume` take over its arguments.

    Raises:
        UserError: the last run is still at work.
    """
    last = Run.read(tree, args.lab)
    if last is None or last.finished:
        if args.resume:
            console.print(f"No run of {args.lab} was interrupted: grading what is new or changed.")
        return
    with one_at_a_time(tree):  # or it is not interrupted, but at work
        pass
    console.print(f"The run of {args.lab} that began {last.started_at} was interrupted: going on with it.")
    if args.resume and not (args.submissions or args.sample_class):
        args.sample_class = "sample_class" in last.arguments
        args.submissions = Path(last.arguments["submissions"]) if "submissions" in last.arguments else None
    if args.resume:
        args.roster = args.roster or (Path(last.arguments["roster"]) if "roster" in last.arguments else None)
        args.attempt = args.attempt or last.arguments.get("attempt")
        args.student = args.student or last.arguments.get("student", "")
        words = " ".join(f"--{name.replace('_', '-')} {getattr(args, name)}" for name in RESUMED if getattr(args, name))
        console.print(f"Its arguments: {words or 'none'}", soft_wrap=True, markup=False)


def show(batch: Batch, tree: CourseTree, console: Console) -> None:
    """Print the table of a graded class and write its CSV files."""
    lab, records = batch.lab, list(batch.records.values())
    write_csv(batch.results.values(), tree.results(lab.name))
    gradebook_csv = tree.results(lab.name).with_name(f"{lab.name}-nbgrader.csv")
    if batch.graded_now or not gradebook_csv.is_file():
        export_gradebook(tree, lab.name, gradebook_csv)
    console.print(table(f"{lab.title}: verdicts and points", records))
    console.print(reasons(records))
    console.print(arrivals(batch.collected), soft_wrap=True)  # paths in it can then be copied
    if versions := other_versions(records, lab.version):
        console.print(versions, soft_wrap=True)
    console.print(by_question(records))
    if batch.changes:
        console.print(changes_title(batch.changes))
        console.print(changes_table(batch.changes))
        kept = "They are not written: run again with --yes to accept them." if batch.withheld else "They are written."
        console.print(kept)
    waiting = sum(question.waiting for record in records for question in record.questions)
    refused = sum(bool(record.refused) for record in records)
    console.print(
        f"{len(records)} submissions ({batch.graded_now} graded now, {len(records) - batch.graded_now} unchanged), "
        f"{refused} refused; {waiting:g} points wait for a GPU or a person. It took {batch.minutes:.1f} minutes."
    )
    bare = sum(not record.sandboxed for record in records)
    if bare:
        console.print(
            f"{bare} of them were graded WITHOUT the sandbox: their code could have changed what it is graded by. "
            "Grade again where the sandbox runs.",
            style="bold red",
        )
    if batch.unreadable:
        console.print(
            f"Not in the results, as their records cannot be read: {', '.join(batch.unreadable)}. Grade again."
        )
    console.print(f"Results:   {tree.results(lab.name)}", soft_wrap=True)
    console.print(f"Feedback:  {tree.root / 'feedback'}/<student>/{lab.name}/{lab.name}.html", soft_wrap=True)
    console.print(f"Gradebook: {tree.root / 'gradebook.db'}, exported to {gradebook_csv}", soft_wrap=True)
