"""The roster: one CSV file of students, their names in the LMS, due times, extensions and late days.

It is made to be edited in a spreadsheet: one row per student, and rows with the id `*` for what holds for a section or
for everybody. An empty cell takes the value of the section's row, then of everybody's:

    id,   name,         section, canvas id, sis user id, sis login id, time zone,        late days, due tiling
    *,    ,             ,        ,          ,            ,             Europe/Berlin,    3,         2026-11-20 23:59
    *,    ,             B,       ,          ,            ,             ,                 ,          2026-11-22 23:59
    ann,  "Baker, Ann", A,       12345,     S101,        ab1@uni.edu,  ,                 ,
    bob,  Bob Carter,   B,       12346,     S102,        bc2@uni.edu,  America/New_York, 5,         2026-11-27 18:00

- `id` is the name that the course uses: of files, records and feedback. `id` and `name` are required columns.
- `canvas id`, `sis user id` and `sis login id` are Canvas's columns ID, SIS User ID and SIS Login ID.
- `due LAB` is the due time of that lab; in a student's row it is an extension. The time is on the clock of the row's
  time zone (an IANA name), or exact with an offset: `2026-11-20 23:59+01:00`.
- `late days` is how many days late a student may be in all labs together; every day begun costs one.
- `notes` is for people. Any other column is an error, so that no misspelt one is overlooked.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from mlsys.errors import InvalidValue, UnknownName

MAX_ID_BYTES = 200
"""Bytes of a student's id in UTF-8: file systems allow 255 for a name, and names such as `ID.json.part` are made."""
MAX_ID = 100
"""Characters of a student's id."""
_ID = re.compile(r"\w[\w.@+ -]*")


class BadRoster(InvalidValue):
    """A roster that cannot be read; the message names the line, what is wrong there, and what to do."""


def id_fault(text: str) -> str:
    """What keeps `text` from being a student's id, which names files and folders; empty where nothing does.

    >>> id_fault("ab1@uni.edu"), id_fault("../ann")
    ('', 'use letters, digits, spaces and . @ + - _ only, the first a letter or digit')
    """
    if not _ID.fullmatch(text):
        return "use letters, digits, spaces and . @ + - _ only, the first a letter or digit"
    if len(text) > MAX_ID:
        return f"it has {len(text)} characters, the limit is {MAX_ID}: shorten it"
    size = len(text.encode())
    return f"it takes {size} bytes, the limit is {MAX_ID_BYTES}: shorten it" if size > MAX_ID_BYTES else ""


def as_a_disk_sees(text: str) -> str:
    """An id with what some file systems cannot tell apart made equal: capitals, accents, spaces and dots at the end.

    >>> as_a_disk_sees("Ann") == as_a_disk_sees("ann ")
    True
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).rstrip(" .")


@dataclass(frozen=True)
class Student:
    """One student: the course's id, the names that an LMS knows, due times by lab, and late days for all labs."""

    id: str
    name: str = ""
    section: str = ""
    canvas_id: str = ""
    sis_user_id: str = ""
    sis_login_id: str = ""
    late_days: int = 0
    due: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class Roster:
    """The students by id, and the labs that have a column of due times."""

    students: Mapping[str, Student]
    labs: tuple[str, ...] = ()

    def check_labs(self, known: Collection[str]) -> None:
        """Make sure that every column of due times is that of a lab of the course.

        Raises:
            BadRoster: one is not; its due times would hold for nothing.
        """
        for lab in self.labs:
            if lab not in known:
                raise BadRoster(f"the roster's column 'due {lab}': {UnknownName.of('lab', lab, known)}")

    def student(self, student: str) -> Student:
        """The student with this id.

        Raises:
            UnknownName: nobody has it.
        """
        if student not in self.students:
            raise UnknownName.of("student", student, self.students)
        return self.students[student]

    def due(self, student: str, lab: str) -> datetime:
        """When `lab` is due for `student`, extension included, in the time zone of the row that says so.

        Raises:
            UnknownName: unknown student, or a lab without column.
            BadRoster: no row gives this student a due time.
        """
        if lab not in self.labs:
            raise UnknownName.of("lab in the roster", lab, self.labs)
        due = self.student(student).due.get(lab)
        if due is None:
            raise BadRoster(f"{student} has no due time for {lab}: fill the column 'due {lab}' in the row '*'")
        return due
