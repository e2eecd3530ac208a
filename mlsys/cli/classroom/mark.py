"""`mlsys mark LAB`: mark the written answers of a lab in a browser, question by question."""

import argparse
from pathlib import Path

from rich.console import Console

from mlsys.classroom.gradebook.marks import check_marks, read_class
from mlsys.classroom.gradebook.nbgrader import write_tables
from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.marking.answers import Marking
from mlsys.classroom.marking.server import MarkingServer, Site
from mlsys.classroom.processes.limited import helper_ends
from mlsys.classroom.store.configured import store_of
from mlsys.cli import port_number
from mlsys.course.lab import find_lab
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys mark`."""
    parser.add_argument("lab", help="name of the lab")
    parser.add_argument("--names", action="store_true", help="show whose answers they are; without it, nobody's name")
    parser.add_argument(
        "--port", type=port_number, default=0, metavar="N", help="port on this machine (default: a free one)"
    )
    parser.add_argument("--yes", action="store_true", help="go on although the gradebook lacks marks that people gave")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Serve the pages until Ctrl-C."""
    root, tree, console = Path.cwd(), CourseTree(args.course), Console(markup=False, highlight=False, soft_wrap=True)
    find_lab(root, args.lab)
    store = store_of(tree)
    marking = Marking(tree, store, args.lab)
    with disk_faults(tree), helper_ends():
        check_marks(tree, store, args.lab, accept=args.yes)
        marking.check()
        read_class(tree, store, args.lab)
        try:
            server = MarkingServer(Site(marking, root, args.names), args.port)
        except OSError as error:
            raise UserError(
                f"port {args.port} cannot be used ({error}): name another one, or leave --port out"
            ) from error
        with server:
            console.print(f"Open {server.address}")
            console.print("The address is secret: who knows it and can reach this machine's ports sees the answers.")
            console.print("Every mark is saved at once. End with Ctrl-C.")
            try:
                server.serve_forever()
            finally:
                write_tables(tree, args.lab, filter(None, read_class(tree, store, args.lab).values()))
    return 0


def interrupted(_: argparse.Namespace) -> str:
    """Say what Ctrl-C left behind."""
    return "Ended: every mark that was saved is in the gradebook."
