"""`mlsys kit`: the whole book as a file, and what an instructor needs for a term, made from the built site."""

import argparse
from collections.abc import Callable
from datetime import date
from pathlib import Path

from mlsys.core.files import writing_to
from mlsys.errors import InvalidValue, UnknownName, UserError

FOLDER = Path("_build/kit")
"""Where the files go if no folder is named."""
LARGEST_FILE = 25_000_000
"""Largest size of the book as a file, in bytes: mail and learning platforms take that much."""
EDITIONS = ("students", "instructors")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys kit`."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind, help_text in (
        ("pdf", "the whole book as a PDF, and a count of what is in it"),
        ("epub", "the whole book as an EPUB, and a count of what is in it"),
        ("syllabus", "a syllabus with the dates of a term, and its calendar file"),
        ("slides", "slides with notes, a deck per chapter"),
        ("questions", "the self-checks as a question bank for Canvas (QTI 2.1) and Moodle"),
    ):
        one = kinds.add_parser(kind, help=help_text, description=help_text[0].upper() + help_text[1:] + ".")
        one.add_argument("--to", type=Path, default=FOLDER, metavar="DIR", help="folder for the files (%(default)s)")
        if kind in ("pdf", "epub"):
            one.add_argument(
                "--edition",
                choices=EDITIONS,
                help="only the instructors' edition has the solutions of exercises (default: both)",
            )
        if kind == "syllabus":
            one.add_argument("weeks", type=int, help="length of the course in weeks, as book/syllabi.toml lists them")
            one.add_argument("--first-day", required=True, metavar="DATE", help="such as 2027-02-01")
            one.add_argument(
                "--free",
                nargs="+",
                default=(),
                metavar="DATE",
                help="the weeks with these days are left out",
            )
        if kind == "slides":
            one.add_argument("chapter", nargs="*", help="chapters, such as tiling (default: all)")


def run(args: argparse.Namespace) -> int:
    """Make the files from the repository in the current folder."""
    makers: dict[str, Callable[[argparse.Namespace], list[Path]]] = {
        "pdf": _book,
        "epub": _book,
        "syllabus": _syllabus,
        "slides": _slides,
        "questions": _questions,
    }
    for path in makers[args.kind](args):
        print(path)
    return 0


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InvalidValue(f"{text!r} is no date: write it as 2027-02-01") from error


def _book(args: argparse.Namespace) -> list[Path]:
    from mlsys.course.whole_book.census import count_epub, count_pdf, count_site
    from mlsys.course.whole_book.epub import write_epub
    from mlsys.course.whole_book.pages import read_book
    from mlsys.course.whole_book.pdf import print_pdf

    make, count = (print_pdf, count_pdf) if args.kind == "pdf" else (write_epub, count_epub)
    written = []
    for edition in [args.edition] if args.edition else EDITIONS:
        target = args.to / f"book-{edition}.{args.kind}"
        book = read_book(Path.cwd(), edition)
        with writing_to(args.to, "--to"):
            make(book, target)
        expected, found = count_site(Path.cwd(), edition), count(target)
        size = target.stat().st_size
        print(f"{target.name}: {size / 1e6:.1f} MB")
        for kind, missing in expected.missing(found).items():
            name = kind.replace("_", "-")
            print(f"  {name:17} {getattr(found, kind):5} of {getattr(expected, kind):5}, {max(missing, 0)} missing")
        if any(expected.missing(found).values()):
            raise UserError(f"{target} does not hold what the site holds: see the lines above")
        if size > LARGEST_FILE:
            raise UserError(f"{target} has {size / 1e6:.1f} MB, and mail takes {LARGEST_FILE / 1e6:.0f}")
        written.append(target)
    return written


def _syllabus(args: argparse.Namespace) -> list[Path]:
    from mlsys.course.kit.calendar_file import calendar_file
    from mlsys.course.kit.syllabus import dated_page, first_days, read_syllabi

    syllabi = read_syllabi(Path.cwd())
    if args.weeks not in syllabi:
        raise UnknownName.of("length in weeks", str(args.weeks), [str(length) for length in syllabi])
    syllabus = syllabi[args.weeks]
    days = first_days(syllabus, _day(args.first_day), [_day(day) for day in args.free])
    page, calendar = (args.to / f"syllabus-{args.weeks}-weeks.{ending}" for ending in ("md", "ics"))
    text, dates = dated_page(Path.cwd(), syllabus, days), calendar_file(Path.cwd(), syllabus, days)
    with writing_to(args.to, "--to"):
        args.to.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        calendar.write_bytes(dates)
    return [page, calendar]


def _slides(args: argparse.Namespace) -> list[Path]:
    from mlsys.course.kit.deck import write_decks

    with writing_to(args.to, "--to"):
        return write_decks(Path.cwd(), args.to / "slides", args.chapter)


def _questions(args: argparse.Namespace) -> list[Path]:
    from mlsys.course.kit.moodle import write_moodle
    from mlsys.course.kit.qti import write_qti
    from mlsys.course.kit.questions import read_questions
    from mlsys.course.settings import book_title

    chapters = read_questions(Path.cwd())
    count = sum(len(chapter.questions) for chapter in chapters)
    print(f"{count} questions of {len(chapters)} chapters")
    title = book_title(Path.cwd())
    with writing_to(args.to, "--to"):
        return [
            write_qti(chapters, args.to / "questions-canvas.zip"),
            write_moodle(chapters, title, args.to / "questions-moodle.xml"),
        ]
