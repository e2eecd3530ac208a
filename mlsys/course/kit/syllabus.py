"""Syllabi of several lengths, as `book/syllabi.toml` lists them: what is read, done and handed in week by week."""

import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from mlsys.course.pages.contents import book_pages
from mlsys.errors import InvalidValue, UnknownName

DATA = "book/syllabi.toml"
WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Week:
    """One week: names of the pages to read, what to do, the lab's page, and whether it is handed in at the end."""

    read: tuple[str, ...]
    do: str
    lab: str
    hand_in: bool


@dataclass(frozen=True)
class Syllabus:
    """A course of so many weeks; `hours` is the work a week beside lectures."""

    aim: str
    hours: int
    weeks: tuple[Week, ...]


def read_syllabi(root: Path) -> dict[int, Syllabus]:
    """Return the syllabi by their number of weeks.

    Args:
        root: the repository.

    Raises:
        InvalidValue: a number of weeks that is not that of the weeks listed.
        UnknownName: a page that the contents do not list.
    """
    pages = book_pages(root)
    syllabi = {}
    for length, entry in tomllib.loads((root / DATA).read_text(encoding="utf-8")).items():
        weeks = tuple(_week(week, pages) for week in entry["weeks"])
        if len(weeks) != int(length):
            raise InvalidValue(f"{DATA}: [{length}] lists {len(weeks)} weeks: list {length}, or rename it")
        syllabi[int(length)] = Syllabus(entry["aim"], entry["hours"], weeks)
    return syllabi


def _week(entry: dict[str, Any], pages: dict[str, Path]) -> Week:
    for name in (*entry["read"], *filter(None, [entry.get("lab")])):
        if name not in pages:
            raise UnknownName.of("page", name, pages)
    return Week(tuple(entry["read"]), entry["do"], entry.get("lab", ""), entry.get("hand_in", False))


def page_title(page: Path) -> str:
    """Return the title of a page of the book: its first heading."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return next(line[2:].strip() for line in lines if line.startswith("# "))


def first_days(syllabus: Syllabus, first_day: date, free: Collection[date] = ()) -> list[date]:
    """Return the first day of each week of the syllabus in a term.

    Args:
        syllabus: the course.
        first_day: the first day of the term.
        free: days without teaching; a week in which one of them lies is left out, and the rest moves on.

    Raises:
        InvalidValue: a free day before the term or after it.

    >>> course = Syllabus("", 7, (Week((), "", "", False),) * 2)
    >>> [day.isoformat() for day in first_days(course, date(2027, 2, 1), [date(2027, 2, 10)])]
    ['2027-02-01', '2027-02-15']
    """
    days: list[date] = []
    day = first_day
    while len(days) < len(syllabus.weeks):
        if not any(day <= one < day + WEEK for one in free):
            days.append(day)
        day += WEEK
    last_day = day - timedelta(days=1)
    outside = [one for one in free if not first_day <= one <= last_day]
    if outside:
        where = "before the first" if outside[0] < first_day else "after the last"
        raise InvalidValue(
            f"the free day {outside[0]} is {where} day of the term, which is from {first_day} to {last_day}: "
            "correct one of them"
        )
    return days


def dated_page(root: Path, syllabus: Syllabus, days: list[date]) -> str:
    """Return the syllabus of a term as a page of Markdown, with its dates.

    Args:
        root: the repository, for the titles of the pages.
        syllabus: the course.
        days: the first day of each of its weeks.
    """
    pages = book_pages(root)
    lines = [
        f"# A course of {len(syllabus.weeks)} weeks",
        "",
        f"The aim: {syllabus.aim}. About {syllabus.hours} hours a week beside lectures.",
        "",
        "| week | begins | read | do | hand in |",
        "|---|---|---|---|---|",
    ]
    for number, (week, day) in enumerate(zip(syllabus.weeks, days, strict=True), 1):
        read = ", ".join(page_title(pages[name]) for name in week.read)
        due = f"{page_title(pages[week.lab])}, by {day + WEEK - timedelta(days=1)}" if week.hand_in else ""
        lines.append(f"| {number} | {day} | {read} | {week.do} | {due} |")
    return "\n".join(lines) + "\n"
