"""File names in an LMS's download, and every way in which one can be taken apart.

    bakerann_LATE_12345_67890_tiling-1.ipynb               Canvas: name, late?, user, file, its title
    bakerann_12345_text.html                               Canvas: a text or a link in place of a file
    LATE_anon_Ab3dE_67890_tiling.ipynb                     Canvas, anonymous
    Ann Baker_4711_assignsubmission_file_tiling.ipynb      Moodle: name, number in this assignment, kind, title
    Tiling_ab1_attempt_2026-11-20-22-58-03_tiling.ipynb    Blackboard: assignment, login, time, title
    12-345 - Ann Baker - Nov 20, 2026 1058 PM/             Brightspace: numbers, name, time

Canvas writes the name in lower case and leaves only letters, digits and underscores of it; the title stays nearly as it
is (`lib/content_zipper.rb` of https://github.com/instructure/canvas-lms). Students choose both, so either may hold
numbers between underscores that look like the ids of somebody else. Only a person or the roster can then say which
reading is right. Times in names are on a clock of the platform, whose zone they do not tell.
"""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from mlsys.classroom.students.identity import Person, find, is_surely, words_of
from mlsys.classroom.students.roster import Student

MAX_CHARACTERS = 600
"""Longest name that is taken apart: a person's, two ids and a title, of which each may have 255 characters."""
MAX_READINGS = 20
"""Readings of one name that are compared with the roster; an honest name has one or two."""

_NUMBER = re.compile(r"[0-9]{1,20}")
_MOODLE = re.compile(r"_([0-9]{1,20})_assignsubmission_(file|onlinetext)(_|$)")
_BLACKBOARD = re.compile(r"_attempt_(\d{4}(?:-\d\d){5})(?:_(.+)|\.txt)$")
_BRIGHTSPACE = re.compile(r"(\d+)-\d+ - (?=.)")
_BRIGHTSPACE_TIME = re.compile(r" - ([A-Za-z]{3,9} \d{1,2},? \d{4} \d{1,2}:?\d\d [AP]M)(?= - |$)")
_BRIGHTSPACE_FORMS = ("%b %d %Y %I%M %p", "%B %d %Y %I%M %p")
LINK = "link.html"
"""What Canvas calls an address that was entered in place of a file."""
_NO_FILE = ("text.html", LINK)
"""What Canvas calls a text or an address that was entered in place of a file."""


@dataclass(frozen=True)
class Reading:
    """One way to take a name apart: who handed in, a key for that person, and what the LMS says about the file."""

    person: Person
    key: str
    title: str
    number: int | None = None
    late: bool | None = None
    is_text: bool = False
    clock: datetime | None = None
    """When it was handed in, on the platform's clock, without a time zone."""

    def __str__(self) -> str:
        user = f" (user {self.person.canvas_id})" if self.person.canvas_id else ""
        return f"{self.title!r} of {self.person.name or self.key!r}{user}"


def canvas_readings(name: str) -> list[Reading]:
    """Return every way in which Canvas can have made `name`; none for a name that is not Canvas's.

    >>> [(reading.person.canvas_id, reading.late) for reading in canvas_readings("bakerann_LATE_101_900_tiling.ipynb")]
    [('101', True)]
    """
    words = name.split("_") if len(name) <= MAX_CHARACTERS else [name]
    found = _anonymous(words)
    for index in range(1, len(words) - 1):
        rest = _file_and_title(words[index + 1 :])
        if rest is None or not _NUMBER.fullmatch(words[index]):
            continue
        late = words[index - 1] in ("LATE", "late") and index > 1
        who, user = "_".join(words[: index - late]), words[index]
        if all(_stays_in_a_name(character) for character in who):
            number, title = rest
            found.append(Reading(Person(name=who, canvas_id=user), f"{who}_{user}", title, number, late))
    # What Canvas writes in capitals is its own mark or part of the title.
    return [reading for reading in found if not re.search("[A-Z]", reading.person.name)] or found


def _anonymous(words: list[str]) -> list[Reading]:
    late = words[0] == "LATE"
    anonymous, who, *rest = [*words[late:], "", ""]
    split = _file_and_title(rest[:-2]) if anonymous == "anon" and who.isalnum() else None
    return [Reading(Person(), f"anon_{who}", split[1], split[0], late)] if split else []


def _file_and_title(words: list[str]) -> tuple[int | None, str] | None:
    """Return the number of the upload and the title in what follows the user."""
    if len(words) == 1 and words[0] in _NO_FILE:
        return None, words[0]
    title = "_".join(words[1:])
    return (int(words[0]), title) if title and _NUMBER.fullmatch(words[0]) else None


def _stays_in_a_name(character: str) -> bool:
    # Ruby's [[:word:]], which counts accents and vowel signs; Python's \w leaves them out.
    return character.isalnum() or unicodedata.category(character) in ("Mn", "Mc", "Me", "Pc")


def moodle_readings(name: str) -> list[Reading]:
    """Return every way in which Moodle can have made the name of a folder or file; none if the name is not Moodle's."""
    found = []
    for match in _MOODLE.finditer(name if len(name) <= MAX_CHARACTERS else ""):
        who = name[: match.start()].replace("_", " ").strip()
        key = "-".join(words_of(who)) + f"_{match[1]}"
        if who:
            found.append(
                Reading(
                    Person(name=who, moodle_id=match[1]), key, name[match.end() :], is_text=match[2] == "onlinetext"
                )
            )
    return found


def blackboard_readings(name: str) -> list[Reading]:
    """Return every way in which Blackboard can have made `name`; none for a name that is not Blackboard's.

    The first one takes the login for a single word. The text that Blackboard adds to each attempt has no title.
    """
    match = _BLACKBOARD.search(name) if len(name) <= MAX_CHARACTERS else None
    if match is None:
        return []
    try:
        clock = datetime.strptime(match[1], "%Y-%m-%d-%H-%M-%S")
    except ValueError:
        return []
    words = name[: match.start()].split("_")
    logins = ("_".join(words[start:]) for start in range(len(words) - 1, max(0, len(words) - MAX_READINGS), -1))
    number, title = int(match[1].replace("-", "")), match[2] or "text of the submission"
    return [Reading(Person(student=login), login, title, number, clock=clock) for login in logins if login]


def brightspace_readings(name: str) -> list[Reading]:
    """Return every way in which Brightspace can have made the name of a folder or file; none if it cannot.

    There are several where the name or the title, which students choose, holds what looks like a time.
    """
    begin = _BRIGHTSPACE.match(name) if len(name) <= MAX_CHARACTERS else None
    if begin is None:
        return []
    found = []
    for match in _BRIGHTSPACE_TIME.finditer(name, begin.end()):
        time = match[1].replace(",", "").replace(":", "")
        clock = next((clock for form in _BRIGHTSPACE_FORMS if (clock := _clock(time, form))), None)
        number = int(f"{clock:%Y%m%d%H%M}") if clock else None
        who = name[begin.end() : match.start()]
        if who:
            key, title = "-".join(words_of(who)) + f"_{begin[1]}", name[match.end() :].removeprefix(" - ")
            found.append(Reading(Person(name=who), key, title, number, clock=clock))
    return found


def _clock(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def the_one(readings: list[Reading], students: Collection[Student]) -> Reading | None:
    """Return the reading that is certainly right, or None.

    That is the only one; or, of several, one that fits a student by id and name, while no other fits anybody.
    """
    if len(readings) == 1:
        return readings[0]
    if len(readings) > MAX_READINGS:
        return None
    matches = [(reading, find(reading.person, students).student) for reading in readings]
    fitting = [(reading, student) for reading, student in matches if student]
    if len(fitting) != 1:
        return None
    reading, student = fitting[0]
    return reading if is_surely(reading.person, student) else None
