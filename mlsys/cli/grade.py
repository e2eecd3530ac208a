"""`mlsys grade LAB`: grade a class of submissions."""

import argparse
import gc
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from mlsys.classroom.processes import workers
from mlsys.classroom.students.attempt_policy import POLICIES
from mlsys.cli import whole_number
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UserError

if TYPE_CHECKING:
    from mlsys.classroom.batch.pool import JudgePool
    from mlsys.classroom.store.store import Store

RESUMED = ("submissions", "roster", "attempt", "times", "student", "cluster")
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
        "(default: what came in at the submit queue, and what is in the course tree's submitted/)",
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
        "--workers", type=whole_number(1), default=os.cpu_count() or 1, metavar="N", help="judge N students at a time"
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="judge on the workers of a dask cluster, such as tcp://head:8786, in place of this machine; each is "
        "started with `mlsys worker ADDRESS`",
    )
    parser.add_argument("--student", default="", metavar="ID", help="grade this student only")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the interrupted run with its --submissions, --roster, --attempt, --times, --student and "
        "--cluster, unless you give others; an interrupted run is continued in any case, and no submission is graded "
        "twice",
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="write changes that lower, blank or replace scores or marks; without --yes they are only listed, and the "
        "exit status is 3 (a newer attempt that can be graded counts without it)",
    )
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="if the sandbox cannot run, grade without it: student code can then read and change what you can; "
        "every record says so, and a later run with the sandbox grades these submissions again",
    )
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Grade a lab of the repository in the current folder."""
    if args.cluster and args.unsafe_no_sandbox:
        raise UserError("--cluster takes no --unsafe-no-sandbox: every worker of a cluster needs its sandbox")
    workers.warm_up()  # they import torch while this process imports nbgrader, as the store does
    from mlsys.classroom.grade_class import Options, grade_class
    from mlsys.classroom.gradebook.record_results import disk_faults
    from mlsys.classroom.lms.hand_ins import read_hand_ins
    from mlsys.classroom.overview.class_page import write_class_page
    from mlsys.classroom.store.configured import store_of
    from mlsys.classroom.students.roster import read_roster
    from mlsys.cli.grade_output import show

    # Into a file, rich would assume 80 columns.
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140
    root, tree, console = Path.cwd(), CourseTree(args.course), Console(width=width)
    _go_on(args, store_of(_kept_in(args)), console)
    if args.times and args.submissions is None:
        raise UserError(
            "--times says when the files of --submissions were handed in: name that download as well, the same one "
            "again if it was graded before; attempts that are kept then get their times"
        )
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
        open_pool=_fleet(args.cluster, console) if args.cluster else None,
    )
    if args.submissions is None and not args.sample_class:
        _take_in_queue(tree, args.lab, console)
    gc.freeze()  # what is imported stays: else collections that walk it take a tenth of the time
    batch = grade_class(root, tree, args.lab, options, console)
    with disk_faults(tree):
        show(batch, console)
        write_class_page(batch.tree, store_of(batch.tree), args.lab, roster)
        console.print(f"Class:     {batch.tree.class_page(args.lab)}", soft_wrap=True, markup=False)
    return 3 if batch.withheld else 0


def _fleet(address: str, console: Console) -> "Callable[[CourseTree, str], JudgePool]":
    """Return what makes the pool of a cluster's workers."""
    from mlsys.fleet.pool import FleetPool

    return lambda tree, lab: FleetPool(tree, lab, address, console)


def _take_in_queue(tree: CourseTree, lab: str, console: Console) -> None:
    """Make what was handed in at the submit queue attempts, if the course has a queue."""
    if not tree.queue.is_dir():
        return
    from mlsys.classroom.gradebook.record_results import disk_faults
    from mlsys.classroom.processes.limited import helper_ends
    from mlsys.classroom.store.configured import store_of
    from mlsys.submit.queue import Queue
    from mlsys.submit.settings import read_queue_settings
    from mlsys.submit.take_in import take_in

    store = store_of(tree)
    with disk_faults(tree), helper_ends(), store.lock():
        queue = Queue(tree.queue, read_queue_settings(tree.queue).database)
        found = take_in(queue, tree, store, lab)
        queue.close()
    if found.hand_ins:
        console.print(f"Queue: {found.hand_ins} hand-ins of {found.students} students, {found.new} of them new.")


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
    from mlsys.classroom.store.configured import store_of

    last = store_of(_kept_in(args)).run(args.lab)
    if last is None or last.finished or last.arguments != remembered(args):
        # It was stopped before the first submission or after the last; an older run's arguments may be others.
        return "Interrupted: what was graded is kept. Run the same command again."
    words = ["mlsys", "grade", args.lab, "--resume"]
    words += ["--sample-class"] if args.sample_class else []
    words += ["--course", str(args.course)] if args.course != Path(COURSE) else []
    words += ["--yes"] if args.yes else []
    words += ["--unsafe-no-sandbox"] if args.unsafe_no_sandbox else []
    return f"Interrupted: what was graded is kept. Continue with `{shlex.join(words)}`"


def _go_on(args: argparse.Namespace, store: "Store", console: Console) -> None:
    """Say that a run was interrupted, and with `--resume` take over its arguments.

    Raises:
        UserError: the last run is still at work.
    """
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
        args.cluster = args.cluster or last.arguments.get("cluster")
        args.times = args.times or [Path(name) for name in last.arguments.get("times", "").splitlines()]
        words = " ".join(
            f"--{name.replace('_', '-')} {_shown(getattr(args, name))}" for name in RESUMED if getattr(args, name)
        )
        console.print(f"Its arguments: {words or 'none'}", soft_wrap=True, markup=False)


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
