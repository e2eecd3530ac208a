"""`mlsys release`: build the labs that students get."""

import argparse
from pathlib import Path

from mlsys.classroom.processes import workers
from mlsys.course.release import release
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys release`."""
    parser.add_argument("lab", nargs="*", help="labs to release (all of them if none is named)")
    parser.add_argument(
        "--mend",
        type=Path,
        metavar="FILE",
        help="instead, replace the tests of an older version of one lab by those in FILE, a copy of its lab.py",
    )
    parser.add_argument(
        "--term",
        nargs="?",
        const="",
        metavar="NAME",
        help="begin a term of this name, such as 2027a: numbers, shapes and faults of the labs are drawn anew, and "
        "submissions of earlier terms go on being graded as before; without it nothing is drawn",
    )
    parser.add_argument("--yes", action="store_true", help="write what --mend changes; without --yes it is only listed")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Release labs from the repository in the current folder, begin a term, or mend an older version."""
    if args.mend and args.term is not None:
        raise UserError("--mend corrects the present term, and --term begins a new one: use one of them")
    if args.mend:
        return _mend(args)
    for line in release(Path.cwd(), CourseTree(args.course), args.lab or None, term=args.term):
        print(line)
    return 0


def _mend(args: argparse.Namespace) -> int:
    if len(args.lab) != 1:
        raise UserError("--mend is for one lab: name it, as in `mlsys release tiling --mend lab-1.py`")
    workers.warm_up()
    from mlsys.classroom.mend import mend

    (name,) = args.lab
    mended = mend(Path.cwd(), CourseTree(args.course), name, args.mend, accept=args.yes)
    print(mended.diff, end="")
    holders = f"{len(mended.holders)} graded submissions are of version {mended.version}"
    print(f"Tests of version {mended.version} for {', '.join(mended.questions)}; its own answers pass them. {holders}.")
    if mended.path is None:
        print("Nothing was written: add --yes to replace them.")
        return 3
    print(f"Replaced; the difference is in {mended.path}. The next `mlsys grade {name}` lists scores that change.")
    return 0
