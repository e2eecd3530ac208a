"""`mlsys class LAB`: write the page about a class again, with the marks that people gave since."""

import argparse
from pathlib import Path

from rich.console import Console

from mlsys.classroom.gradebook.marks import check_marks
from mlsys.classroom.gradebook.nbgrader import write_tables
from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.overview.class_page import write_class_page
from mlsys.classroom.processes.limited import helper_ends
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.students.roster import read_roster
from mlsys.course.lab import find_lab
from mlsys.course.tree import COURSE, CourseTree


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys class`."""
    parser.add_argument("lab", help="name of the lab")
    parser.add_argument("--roster", type=Path, metavar="FILE", help="roster (default: that of the last run, if any)")
    parser.add_argument("--yes", action="store_true", help="go on although the gradebook lacks marks that people gave")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    tree, console = CourseTree(args.course), Console(markup=False, highlight=False, soft_wrap=True)
    find_lab(Path.cwd(), args.lab)
    store = store_of(tree)
    last = store.run(args.lab)
    path = args.roster or (Path(last.arguments["roster"]) if last and "roster" in last.arguments else None)
    roster = read_roster(path) if path else None
    with disk_faults(tree), helper_ends():
        check_marks(tree, store, args.lab, accept=args.yes)
        write_tables(tree, args.lab, write_class_page(tree, store, args.lab, roster))
    console.print(f"Class:     {tree.class_page(args.lab)}")
    return 0
