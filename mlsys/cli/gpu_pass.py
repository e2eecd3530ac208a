"""`mlsys gpu-pass LAB`: grade what waits for a GPU on another machine, by a file that goes there and back."""

import argparse
import os
from pathlib import Path

from rich.console import Console

from mlsys.classroom.processes import workers
from mlsys.cli import whole_number
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys gpu-pass`."""
    parser.add_argument("lab", help="name of the lab")
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--pack", type=Path, metavar="ZIP", help="here: write what waits for a GPU")
    step.add_argument("--grade", type=Path, metavar="ZIP", help="where the GPU is: grade such a file; needs --out")
    step.add_argument("--merge", type=Path, metavar="ZIP", help="here again: fill in what was found")
    parser.add_argument("--out", type=Path, metavar="ZIP", help="the file to bring back, with --grade")
    parser.add_argument(
        "--workers", type=whole_number(1), default=os.cpu_count() or 1, metavar="N", help="judge N students at a time"
    )
    parser.add_argument(
        "--unsafe-no-sandbox", action="store_true", help="as for `mlsys grade`, if the sandbox cannot run there"
    )
    parser.add_argument("--yes", action="store_true", help="go on although the gradebook lacks marks that people gave")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Do one of the three steps."""
    if (args.grade is None) != (args.out is None):
        raise UserError("--grade ZIP and --out ZIP belong together: name the file to grade and the file to bring back")
    if args.grade:
        workers.warm_up()
    from mlsys.classroom.gpu_pass import grade_pack, merge, pack
    from mlsys.classroom.grade_class import Options
    from mlsys.classroom.gradebook.marks import check_marks, read_class
    from mlsys.classroom.gradebook.nbgrader import write_tables
    from mlsys.classroom.gradebook.record_results import disk_faults
    from mlsys.classroom.report import safe
    from mlsys.classroom.store.configured import store_of
    from mlsys.core.files import write_atomically

    tree, console = CourseTree(args.course), Console(markup=False, highlight=False, soft_wrap=True)
    with disk_faults(tree):
        if args.pack:
            data, count = pack(tree, args.lab)
            write_atomically(args.pack, data)
            console.print(f"{args.pack}: {count} submissions that wait for a GPU")
            console.print("It holds hidden tests and students' work: keep it as safe as the course folder.")
            console.print(f"Where the GPU is: mlsys gpu-pass {args.lab} --grade {args.pack.name} --out done.zip")
            return 0
        if args.grade:
            options = Options(workers=args.workers, unsafe_no_sandbox=args.unsafe_no_sandbox)
            data, count = grade_pack(Path.cwd(), args.grade, options, console)
            write_atomically(args.out, data)
            console.print(
                f"{args.out}: {count} submissions; back home: mlsys gpu-pass {args.lab} --merge {args.out.name}"
            )
            return 0
        store = store_of(tree)
        check_marks(tree, store, args.lab, accept=args.yes)
        merged = merge(tree, args.lab, args.merge)
        found = read_class(tree, store, args.lab).values()
        write_tables(tree, args.lab, [record for record in found if record])
    for student, reason in merged.left:
        console.print(f"left: {safe(student)}: {safe(reason)}")
    console.print(f"{len(merged.filled)} submissions filled in, {len(merged.left)} left; `mlsys undo` takes it back")
    return 0
