"""`mlsys publish DIR`: write the public tree that students get."""

import argparse
from pathlib import Path

from mlsys.course.publish import publish
from mlsys.course.tree import COURSE, CourseTree


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys publish`."""
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="folder for the student tree, empty or published before"
    )
    parser.add_argument(
        "--labs",
        nargs="+",
        default=(),
        metavar="LAB",
        help="labs that come out now, beside those published before (default: those published before; the first time "
        "all released labs)",
    )
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Publish the repository in the current folder."""
    edition = publish(Path.cwd(), CourseTree(args.course), args.folder, args.labs)
    site = "" if (args.folder / "index.html").is_file() else " (without the site, which is not built: run `make book`)"
    print(f"{args.folder}: {edition.files} files{site}; labs: {', '.join(edition.labs)}")
    if edition.held_back:
        print(f"Held back: {', '.join(edition.held_back)}; name a lab with --labs when it comes out")
    return 0
