"""When students handed in, as their LMS says it: the times of files are those of a download or a copy.

Three kinds of file are read:

- Canvas: the answer of its API to `/api/v1/courses/COURSE/assignments/ASSIGNMENT/submissions`, JSON
  (https://canvas.instructure.com/doc/api/submissions.html)
- Moodle: the grading worksheet of the assignment, CSV in English (`mod/assign/gradingtable.php` of
  https://github.com/moodle/moodle): times to the minute, on the clock of the person who exported it
- any other: CSV with the columns `student` and `time`
"""

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from mlsys.classroom.students.deadlines import BadTime, parse_time, rewritten_by_spreadsheet
from mlsys.classroom.students.identity import Person, find, same_name
from mlsys.classroom.students.roster import Student
from mlsys.errors import InvalidValue, UserError

PARTICIPANT, SUBMITTED_AT = "Identifier", "Last modified (submission)"
"""Columns of Moodle's grading worksheet: `Participant 4711`, and the time."""

_NOT_JSON = "while(1);"
"""What Canvas puts before JSON that a browser asks for."""
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_MOODLE_TIME = re.compile(
    r"(?:[a-z]+, )?(?:(?P<day>\d{1,2}) (?P<month>[a-z]+)|(?P<us_month>[a-z]+) (?P<us_day>\d{1,2})),? (?P<year>\d{4}), "
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d) ?(?P<half>[ap]m)?"
)


class BadHandIns(InvalidValue):
    """A file that is none of the three kinds; the message says what is wrong and what to do."""


@dataclass(frozen=True)
class HandIn:
    """One hand-in: by whom, when, and the LMS's number of the uploaded file if it says one."""

    person: Person
    time: datetime | None
    number: int | None = None


@dataclass(frozen=True)
class HandIns:
    """All that an LMS says about the hand-ins of an assignment."""

    entries: tuple[HandIn, ...] = ()

    def identified(self, person: Person) -> Person:
        """Return the person with what Moodle says of the one with this number in the assignment.

        Raises:
            BadHandIns: the worksheet is another assignment's, in which others have these numbers.
        """
        known = next((one.person for one in self.entries if one.person.moodle_id == person.moodle_id != ""), None)
        if known is None:
            return person
        # With blind marking, nobody has a name.
        if known.name and not person.name.endswith(person.moodle_id) and not same_name(known.name, person.name):
            raise BadHandIns(
                f"participant {person.moodle_id} is {known.name!r} in the grading worksheet and {person.name!r} in the "
                "submissions: name the worksheet of this assignment"
            )
        return replace(person, student=known.student, sis_user_id=known.sis_user_id)

    def by_student(self, students: Collection[Student]) -> dict[str, list[HandIn]]:
        """Return the hand-ins of each student."""
        result: dict[str, list[HandIn]] = {}
        for one in self.entries:
            match = find(one.person, students)
            result.setdefault(match.student.id if match.student else one.person.student, []).append(one)
        return result

    def time(self, person: Person, number: int | None, own: Iterable[HandIn]) -> datetime | None:
        """Return when a file was handed in, or None if that is not said.

        Args:
            person: whose it is.
            number: the LMS's number of the upload, if its name says it.
            own: the hand-ins of that student; used if they have no numbers of files, and only if there is one.
        """
        own = list(own)
        times = {one.time for one in self.entries if number is not None and one.number == number}
        if times or any(one.number is not None for one in own):
            pass  # Canvas's list has the numbers of all files
        elif person.moodle_id:
            times = {one.time for one in self.entries if one.person.moodle_id == person.moodle_id}
        else:
            times = {one.time for one in own}
        return times.pop() if len(times) == 1 else None


def read_hand_ins(paths: Iterable[Path], zone: ZoneInfo | None) -> HandIns:
    """Return what some files say together.

    Args:
        paths: the files; Canvas answers with at most a hundred students, so that it may take several.
        zone: of times that name none.

    Raises:
        UserError: a file cannot be read, or is none of the three kinds; the message names what is wrong.
    """
    entries: list[HandIn] = []
    for path in paths:
        try:
            text = path.read_bytes().decode("utf-8-sig")
            entries += parse_hand_ins(text, zone)
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error.strerror}): name what the LMS exported") from error
        except UnicodeDecodeError as error:
            raise BadHandIns(f"{path} is not UTF-8 text: take the file as it was exported") from error
        except (BadHandIns, BadTime) as error:
            raise BadHandIns(f"{path}: {error}") from error
    return HandIns(tuple(entries))


def parse_hand_ins(text: str, zone: ZoneInfo | None = None) -> list[HandIn]:
    """Return the hand-ins in the text of a file.

    Raises:
        BadHandIns: it is none of the three kinds.
        BadTime: a time in it cannot be read.
    """
    text = text.strip()
    if text.removeprefix(_NOT_JSON)[:1] in ("[", "{"):
        return list(_canvas(text.removeprefix(_NOT_JSON)))
    first = text.split("\n", 1)[0]
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    columns = {name.strip(): name for name in rows.fieldnames or () if name}
    if {PARTICIPANT, SUBMITTED_AT} <= columns.keys():
        return list(_moodle(rows, columns, zone))
    if {"student", "time"} <= columns.keys():
        return list(_plain(rows, columns, zone))
    raise BadHandIns(
        f"its first line begins {first[:60]!r}. Times come from Moodle's grading worksheet (exported with English as "
        "Moodle's language), Canvas's list of submissions as JSON, or a CSV file with the columns student and time"
    )


def _canvas(text: str) -> Iterator[HandIn]:
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadHandIns(f"it is no JSON ({error}): save Canvas's answer again") from error
    for entry in found if isinstance(found, list) else [found]:
        if not isinstance(entry, dict) or not isinstance(entry.get("user_id"), int):
            raise BadHandIns("it has entries without user_id: save the list of an assignment's submissions from Canvas")
        person = Person(canvas_id=str(entry["user_id"]))
        versions = [one for one in entry.get("submission_history") or [] if isinstance(one, dict)]
        for version in [*versions, entry]:
            if not version.get("submitted_at"):
                continue
            time = parse_time(str(version["submitted_at"]))
            files = [one.get("id") for one in version.get("attachments") or [] if isinstance(one, dict)]
            yield from (HandIn(person, time, number) for number in files if isinstance(number, int))
            if not files:
                yield HandIn(person, time)


def _plain(rows: "csv.DictReader[str]", columns: Mapping[str, str], zone: ZoneInfo | None) -> Iterator[HandIn]:
    for row in rows:
        student, time = ((row[columns[name]] or "").strip() for name in ("student", "time"))
        if time:
            yield HandIn(Person(student, student=student), _time(time, zone, rows))


def _moodle(rows: Iterable[dict[str, Any]], columns: Mapping[str, str], zone: ZoneInfo | None) -> Iterator[HandIn]:
    for line, row in enumerate(rows, 2):

        def cell(name: str, row: Mapping[str, Any] = row) -> str:
            return (row.get(columns.get(name, "")) or "").strip()

        number = re.search(r"\d+$", cell(PARTICIPANT))
        if number is None:
            raise BadHandIns(f"line {line}: {cell(PARTICIPANT)!r} is no participant's number: export it again")
        word = cell("Email address") or cell("Username") or cell("ID number")
        person = Person(cell("Full name"), sis_user_id=cell("ID number"), student=word, moodle_id=number[0])
        said = cell(SUBMITTED_AT)
        yield HandIn(person, None if said in ("", "-") else _moodle_time(said, zone, line))


def _moodle_time(text: str, zone: ZoneInfo | None, line: int) -> datetime:
    match = _MOODLE_TIME.fullmatch(" ".join(text.split()).casefold())
    month = (match["month"] or match["us_month"]) if match else ""
    if match is None and rewritten_by_spreadsheet(text):
        raise BadHandIns(
            f"line {line}: {text!r} is how a spreadsheet writes a time: name the worksheet as Moodle exported it, and "
            "not as a spreadsheet saved it"
        )
    if match is None or month not in _MONTHS:
        raise BadHandIns(
            f"line {line}: {text!r} is no time as Moodle writes it in English (Friday, 20 November 2026, 11:58 PM): "
            "choose English in Moodle and export the worksheet again"
        )
    if zone is None:
        raise BadHandIns("Moodle's times name no time zone: enter it in the roster, in the row '*'")
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + 12 * (match["half"] == "pm")
    day = int(match["day"] or match["us_day"])
    try:
        # Of an hour that the clock showed twice the first counts, in the student's favor.
        return datetime(int(match["year"]), 1 + _MONTHS.index(month), day, hour, int(match["minute"]), tzinfo=zone)
    except ValueError as error:
        raise BadHandIns(f"line {line}: {text!r} is no time ({error}): export the worksheet again") from error


def _time(text: str, zone: ZoneInfo | None, rows: "csv.DictReader[str]") -> datetime:
    try:
        return parse_time(text, zone)
    except BadTime as error:
        raise BadTime(f"line {rows.line_num}: {error}") from error
