"""`mlsys release`: build the labs that students get."""

import argparse
from pathlib import Path

from mlsys.course.release import release
from mlsys.course.tree import COURSE, CourseTree


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys release`."""
    parser.add_argument("lab", nargs="*", help="labs to release (all of them if none is named)")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Release labs from the repository in the current folder."""
    for line in release(Path.cwd(), CourseTree(args.course), args.lab or None):
        print(line)
    return 0
