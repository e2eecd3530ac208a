"""The command `mlsys grade LAB`: its arguments."""

import argparse
import os
from pathlib import Path

from mlsys.course.tree import COURSE
from mlsys.grading import workers
from mlsys.grading.attempt_policy import POLICIES


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
    from mlsys.grading.grade_lab import grade_lab

    return grade_lab(args)
