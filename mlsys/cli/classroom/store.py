"""`mlsys store`: say where a class is kept, or move it between files and a PostgreSQL database."""

import argparse
from pathlib import Path

from rich.console import Console

from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UserError

FILES = "files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys store`."""
    parser.add_argument(
        "--to",
        metavar="URL|files",
        help="move the class into an empty database (postgresql+psycopg://NAME@HOST/DATABASE), or back into files",
    )
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Say where a class is kept; with `--to`, move it."""
    from mlsys.classroom.gradebook.record_results import disk_faults

    tree, console = CourseTree(args.course), Console(markup=False, highlight=False, soft_wrap=True)
    if not tree.config.is_file():
        raise UserError(f"{tree.root} is no course: name its folder with --course, or release a lab first")
    with disk_faults(tree):
        from mlsys.classroom.store.move import move_to_database, move_to_files, where

        if args.to:
            moved = move_to_files(tree) if args.to == FILES else move_to_database(tree, args.to)
            console.print(
                f"Moved and compared: {moved.documents} documents and {moved.rows} rows of the gradebook. "
                f"What was there before is set aside: {moved.set_aside}"
            )
        console.print(where(tree))
    return 0
