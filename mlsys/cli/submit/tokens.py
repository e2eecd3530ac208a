"""`mlsys tokens`: make the tokens by which people log in to the submit queue."""

import argparse
import csv
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

from rich.console import Console

from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.lms.csv_file import guarded
from mlsys.classroom.students.roster import read_roster
from mlsys.cli import whole_number
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UnknownName, UserError
from mlsys.submit.queue import Queue
from mlsys.submit.settings import read_queue_settings
from mlsys.submit.tokens import ROLES, SESSION, STUDENT, TOKEN, new_token, without_token


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys tokens`."""
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument(
        "--roster", type=Path, metavar="FILE", help="make a token for each student of the roster who has none"
    )
    who.add_argument("--staff", metavar="NAME", help="make a token for somebody who teaches; see --role")
    who.add_argument("--revoke", metavar="ID", help="end all tokens and sessions of a person")
    parser.add_argument("--again", nargs="+", default=[], metavar="ID", help="end these students' tokens, make new")
    parser.add_argument("--role", choices=ROLES[1:], default=ROLES[1], help="what --staff allows (%(default)s)")
    parser.add_argument(
        "--days", type=whole_number(1), default=200, metavar="N", help="how long new tokens are valid (%(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("tokens.csv"), metavar="FILE", help="where students' go (%(default)s)"
    )
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Make or end tokens."""
    tree, console = CourseTree(args.course), Console(markup=False, highlight=False, soft_wrap=True)
    now = datetime.now(UTC)
    expires = now + timedelta(days=args.days)
    with disk_faults(tree):
        tree.create()
        queue = Queue(tree.queue, read_queue_settings(tree.queue).database)
        if args.revoke is not None:
            count = queue.forget(person=args.revoke)
            if not count:
                known = {login.person for kind in (TOKEN, SESSION) for login in queue.logins(kind)}
                raise UnknownName.of("person with a token or session", args.revoke, known)
            console.print(f"Ended {count} tokens and sessions of {args.revoke}.")
        elif args.staff is not None:
            if not 0 < len(args.staff) <= 100 or not args.staff.isprintable():
                raise UserError(f"{args.staff[:100]!r} cannot be a name: write 1 to 100 characters")
            token = new_token(queue, args.staff, args.role, expires)
            console.print(f"{args.staff}, {args.role}, valid until {expires:%Y-%m-%d}: {token}")
        else:
            _for_roster(args, queue, console, now, expires)
    return 0


def _for_roster(args: argparse.Namespace, queue: Queue, console: Console, now: datetime, expires: datetime) -> None:
    roster = read_roster(args.roster)
    for student in args.again:
        if student not in roster.students:
            raise UnknownName.of("student", student, roster.students)
    # Before any token ends: without the file nobody would learn the new ones.
    with _new_file(args.out) as file:
        for student in args.again:
            queue.forget(person=student)
        people = without_token(queue, list(roster.students), now)
        text = io.StringIO(newline="")
        table = csv.writer(text)
        table.writerow(["id", "name", "token", "valid until"])
        for student in people:
            token = new_token(queue, student, STUDENT, expires)
            about = roster.students[student]
            table.writerow([guarded(about.id), guarded(about.name), token, f"{expires:%Y-%m-%d}"])
        if people:
            file.write(text.getvalue())
    if not people:
        console.print("Every student has a token. A new one for somebody who lost it: --again ID")
        return
    console.print(f"{len(people)} tokens are in {args.out}, which only you can read. They are nowhere else.")
    console.print("Send everybody their own, then delete the file.")


@contextmanager
def _new_file(path: Path) -> Iterator[TextIO]:
    """Open a new file that only its owner can read; one that stays empty is removed again."""
    try:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8")
    except FileExistsError as error:
        raise UserError(
            f"{path} is there already: name another file with --out, for tokens are shown only once"
        ) from error
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}): name another file with --out. No token was changed"
        ) from error
    try:
        with file:
            yield file
    finally:
        if not path.stat().st_size:
            path.unlink()
