"""The command `mlsys grade LAB`: its arguments."""

import argparse
import os
import shlex
from pathlib import Path

from mlsys.classroom.batch import workers
from mlsys.classroom.store.run import Run
from mlsys.classroom.students.attempt_policy import POLICIES
from mlsys.course.tree import COURSE, CourseTree

RESUMED = ("submissions", "roster", "attempt", "student", "sample_class")
"""Arguments that `--resume` takes from the interrupted run where they are not given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `mlsys grade`."""
    parser.add_argument("lab", help="name of the lab")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--submissions",
        type=Path,
        metavar="DIR|ZIP",
        help="folder of <student>.ipynb, nbgrader tree, or an LMS's download as a folder or zip "
        "(default: what is in the course tree's submitted/)",
    )
    source.add_argument("--sample-class", action="store_true", help="hand in the lab's sample class, then grade")
    parser.add_argument(
        "--roster",
        type=Path,
        metavar="FILE",
        help="CSV file of students, with their ids in the LMS, due times, late days",
    )
    parser.add_argument(
        "--attempt", choices=POLICIES, help="which of a student's attempts counts (newest); on-time needs due times"
    )
    parser.add_argument("--workers", type=positive, default=os.cpu_count() or 1, metavar="N", help="judge N at a time")
    parser.add_argument("--student", default="", metavar="ID", help="grade this student only")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the run that was interrupted, with its --submissions, --roster, --attempt and --student where "
        "they are not given; a run that was interrupted goes on in any case, and what is graded is not graded again",
    )
    parser.add_argument("--yes", action="store_true", help="write scores that a regrade changes")
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="where the sandbox cannot run, go on without it: student code can then read and change what you can; "
        "every record says so, and a later grading in the sandbox does them again",
    )
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def positive(text: str) -> int:
    """A whole number of 1 or more, from the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Grade a lab of the repository in the current folder."""
    workers.warm_up()  # they import torch while this process imports nbgrader
    from mlsys.cli.grade_lab import grade_lab

    return grade_lab(args)


def remembered(args: argparse.Namespace) -> dict[str, str]:
    """The arguments that a run keeps for a later `--resume`."""
    given = {name: getattr(args, name) for name in RESUMED}
    return {name: str(value.resolve() if isinstance(value, Path) else value) for name, value in given.items() if value}


def interrupted(args: argparse.Namespace) -> str:
    """What Ctrl-C left behind, and the command that goes on."""
    last = Run.read(CourseTree(args.course), args.lab)
    if last is None or last.finished or last.arguments != remembered(args):
        # It was stopped before the first submission or after the last; an older run's arguments may be others.
        return "Interrupted: what was graded is kept. Run the same command again."
    words = ["mlsys", "grade", args.lab, "--resume"]
    words += ["--course", str(args.course)] if args.course != Path(COURSE) else []
    words += ["--yes"] if args.yes else []
    words += ["--unsafe-no-sandbox"] if args.unsafe_no_sandbox else []
    return f"Interrupted: what was graded is kept. Go on with `{shlex.join(words)}`"
