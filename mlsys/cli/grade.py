"""`mlsys grade LAB`: grade a class of submissions."""

import argparse
import gc
import os
import shlex
import sys
from pathlib import Path

from rich.console import Console

from mlsys.classroom.processes import workers
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.attempt_policy import POLICIES
from mlsys.course.tree import COURSE, CourseTree

RESUMED = ("submissions", "roster", "attempt", "times", "student")
"""Arguments that `--resume` takes from the interrupted run where they are not given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys grade`."""
    parser.add_argument("lab", help="name of the lab")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--submissions",
        type=Path,
        metavar="DIR|ZIP",
        help="folder of <student>.ipynb, nbgrader tree, or an LMS's download as a folder or zip "
        "(default: what is in the course tree's submitted/)",
    )
    source.add_argument(
        "--sample-class",
        action="store_true",
        help="grade the lab's sample class, in a tree of its own: sample-class/ in the folder of the course",
    )
    parser.add_argument(
        "--roster",
        type=Path,
        metavar="FILE",
        help="CSV file of students, with their ids in the LMS, due times, late days",
    )
    parser.add_argument(
        "--attempt", choices=POLICIES, help="which of a student's attempts counts (newest); on-time needs due times"
    )
    parser.add_argument(
        "--times",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="when they were handed in: Moodle's grading worksheet, Canvas's list of submissions (JSON), or a CSV file "
        "with the columns student and time",
    )
    parser.add_argument(
        "--workers", type=positive, default=os.cpu_count() or 1, metavar="N", help="judge N students at a time"
    )
    parser.add_argument("--student", default="", metavar="ID", help="grade this student only")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the interrupted run with its --submissions, --roster, --attempt and --student, unless you give "
        "others; an interrupted run is continued in any case, and no submission is graded twice",
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="write changes that lower, blank or replace scores or marks; without --yes they are only listed, and the "
        "exit status is 3",
    )
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="if the sandbox cannot run, grade without it: student code can then read and change what you can; "
        "every record says so, and a later run with the sandbox grades these submissions again",
    )
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def positive(text: str) -> int:
    """Return a whole number of 1 or more from the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Grade a lab of the repository in the current folder."""
    workers.warm_up()  # they import torch while this process imports nbgrader
    from mlsys.classroom.grade_class import Options, grade_class
    from mlsys.classroom.gradebook.record_results import disk_faults
    from mlsys.classroom.lms.hand_ins import read_hand_ins
    from mlsys.classroom.students.roster import read_roster
    from mlsys.cli.grade_output import show

    # Into a file, rich would assume 80 columns.
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140
    root, tree, console = Path.cwd(), CourseTree(args.course), Console(width=width)
    _go_on(args, _kept_in(args), console)
    roster = read_roster(args.roster) if args.roster else None
    options = Options(
        submissions=args.submissions,
        workers=args.workers,
        student=args.student,
        accept_changes=args.yes,
        roster=roster,
        hand_ins=read_hand_ins(args.times or (), roster.zone if roster else None),
        policy=args.attempt or POLICIES[0],
        sample_class=args.sample_class,
        unsafe_no_sandbox=args.unsafe_no_sandbox,
        arguments=remembered(args),
    )
    gc.freeze()  # what is imported stays: else collections that walk it take a tenth of the time
    batch = grade_class(root, tree, args.lab, options, console)
    with disk_faults(tree):
        show(batch, console)
    return 3 if batch.withheld else 0


def _kept_in(args: argparse.Namespace) -> CourseTree:
    """Return the tree that a run works in."""
    tree = CourseTree(args.course)
    return tree.sample_course if args.sample_class else tree


def remembered(args: argparse.Namespace) -> dict[str, str]:
    """Return the arguments that a run keeps for a later `--resume`."""
    given = {name: getattr(args, name) for name in RESUMED}
    given["times"] = "\n".join(str(path.resolve()) for path in args.times or ())
    return {name: str(value.resolve() if isinstance(value, Path) else value) for name, value in given.items() if value}


def interrupted(args: argparse.Namespace) -> str:
    """Say what Ctrl-C left behind, and which command continues."""
    last = FileStore(_kept_in(args)).run(args.lab)
    if last is None or last.finished or last.arguments != remembered(args):
        # It was stopped before the first submission or after the last; an older run's arguments may be others.
        return "Interrupted: what was graded is kept. Run the same command again."
    words = ["mlsys", "grade", args.lab, "--resume"]
    words += ["--sample-class"] if args.sample_class else []
    words += ["--course", str(args.course)] if args.course != Path(COURSE) else []
    words += ["--yes"] if args.yes else []
    words += ["--unsafe-no-sandbox"] if args.unsafe_no_sandbox else []
    return f"Interrupted: what was graded is kept. Continue with `{shlex.join(words)}`"


def _go_on(args: argparse.Namespace, tree: CourseTree, console: Console) -> None:
    """Say that a run was interrupted, and with `--resume` take over its arguments.

    Raises:
        UserError: the last run is still at work.
    """
    store = FileStore(tree)
    last = store.run(args.lab)
    if last is None or last.finished:
        if args.resume:
            console.print(f"No run of {args.lab} was interrupted: grading what is new or changed.")
        return
    with store.lock():  # or it is not interrupted, but at work
        pass
    console.print(f"The run of {args.lab} that began {last.started_at} was interrupted: continuing it.")
    if args.resume and not (args.submissions or args.sample_class):
        args.submissions = Path(last.arguments["submissions"]) if "submissions" in last.arguments else None
    if args.resume:
        args.roster = args.roster or (Path(last.arguments["roster"]) if "roster" in last.arguments else None)
        args.attempt = args.attempt or last.arguments.get("attempt")
        args.student = args.student or last.arguments.get("student", "")
        args.times = args.times or [Path(name) for name in last.arguments.get("times", "").splitlines()]
        words = " ".join(
            f"--{name.replace('_', '-')} {_shown(getattr(args, name))}" for name in RESUMED if getattr(args, name)
        )
        console.print(f"Its arguments: {words or 'none'}", soft_wrap=True, markup=False)


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
