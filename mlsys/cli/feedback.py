"""`mlsys feedback LAB --canvas | --moodle | --mail`: bundle the feedback pages for the platform that hands them out."""

import argparse
from pathlib import Path

from rich.console import Console

from mlsys.classroom.gradebook.marks import check_marks, read_class
from mlsys.classroom.gradebook.nbgrader import write_tables
from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.lms.bundles import KINDS, MAIL, Page, bundle
from mlsys.classroom.report import safe
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.students.roster import Student, read_roster
from mlsys.core.files import write_atomically
from mlsys.course.lab import find_lab
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UserError

NEXT = {
    "canvas": "In Canvas: Gradebook, the assignment's menu, Upload submissions",
    "moodle": "In Moodle: View all submissions, Upload multiple feedback files in a zip",
    "mail": "mail.csv in it lists addresses and pages for a mail merge",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys feedback`."""
    parser.add_argument("lab", help="name of the lab")
    kind = parser.add_mutually_exclusive_group(required=True)
    for name in KINDS:
        kind.add_argument(f"--{name}", dest="kind", action="store_const", const=name, help=NEXT[name])
    parser.add_argument(
        "--roster",
        type=Path,
        metavar="FILE",
        help="roster with the students' names and addresses (default: that of the last run, if it is still there)",
    )
    parser.add_argument("--out", type=Path, metavar="ZIP", help="the zip (default: in results/ of the course)")
    parser.add_argument("--yes", action="store_true", help="go on although the gradebook lacks marks that people gave")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Write the pages, with the marks and comments of people, into a zip."""
    tree, console = CourseTree(args.course), Console(markup=False, highlight=False, soft_wrap=True)
    find_lab(Path.cwd(), args.lab)
    store, lab = store_of(tree), args.lab
    with disk_faults(tree):
        check_marks(tree, store, lab, accept=args.yes)
        records = read_class(tree, store, lab)
        if not records:
            raise UserError(f"{tree.root} has no results of {lab}: run `mlsys grade {lab}` first")
        write_tables(tree, lab, filter(None, records.values()))
    last = store.run(lab)
    if last and (said := last.unfinished(lab)):
        console.print(said)
    of_last_run = Path(last.arguments["roster"]) if last and "roster" in last.arguments else None
    roster = args.roster or (of_last_run if of_last_run and of_last_run.is_file() else None)
    students = read_roster(roster).students if roster else {}
    pages, missing, waiting = [], [], 0
    for student, record in records.items():
        path = tree.feedback(lab, student)
        if record is None or not path.is_file():
            missing.append((student, "there is no page: grade again"))
            continue
        waiting += any(question.waiting for question in record.questions)
        about = students.get(student, Student(student, student))
        address = next((text for text in (about.sis_login_id, about.id) if "@" in text), "")
        attempts = store.history(lab, student).attempts
        name, page = about.name or student, path.read_bytes()
        pages.append(Page(student, name, address, record.submission, attempts, page, about.canvas_id))
    made = bundle(pages, lab, args.kind)
    left_out = [*missing, *made.left_out]
    for student, reason in left_out:
        console.print(f"left out: {safe(student)}: {reason}")
    if not made.count:
        raise UserError("no page can be handed out in this way; see the reasons above")
    out = args.out or tree.results(lab).with_name(f"{lab}-feedback-{args.kind}.zip")
    with disk_faults(tree):
        write_atomically(out, made.data)
    open_ones = f"; on {waiting} of all pages some points still wait" if waiting else ""
    console.print(f"{out}: {made.count} pages, {len(left_out)} left out{open_ones}")
    console.print(NEXT[args.kind] + (". Addresses are those of the roster" if args.kind == MAIL else ""))
    return 0
