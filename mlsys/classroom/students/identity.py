"""Who is who: the students of a course in the words of an LMS."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from mlsys.classroom.students.roster import Student

_IDS = ("canvas_id", "sis_user_id", "sis_login_id")


@dataclass(frozen=True)
class Person:
    """How an LMS names somebody, in one file or row; what it does not say is empty."""

    name: str = ""
    canvas_id: str = ""
    sis_user_id: str = ""
    sis_login_id: str = ""
    student: str = ""
    """The course's own id, where a file is named by it."""


@dataclass(frozen=True)
class Match:
    """The student that a person is, or why that cannot be said."""

    student: Student | None
    reason: str = ""


def find(person: Person, students: Iterable[Student]) -> Match:
    """Return the one student who is `person`: by ids first, by name only where no id speaks against it.

    >>> ann, bob = Student("ann", "Baker, Ann", canvas_id="1"), Student("bob", "Ann Baker", canvas_id="2")
    >>> find(Person("Ann Baker", canvas_id="2"), [ann, bob]).student.id
    'bob'
    >>> find(Person("Ann Baker"), [ann, bob]).reason
    'the name fits several students: ann, bob'
    """
    students = list(students)
    by_id = [student for student in students if _same_id(person, student)]
    if len(by_id) == 1:
        return Match(by_id[0])
    if by_id:
        return Match(None, f"its ids belong to several students: {', '.join(student.id for student in by_id)}")
    by_name = [student for student in students if _same_name(person.name, student.name)]
    possible = [student for student in by_name if not _contradict(person, student)]
    if len(possible) == 1:
        return Match(possible[0])
    if possible:
        return Match(None, f"the name fits several students: {', '.join(student.id for student in possible)}")
    if by_name:
        return Match(None, f"the name is that of {by_name[0].id}, whose ids are others")
    return Match(None, "nobody has one of its ids or its name")


def is_surely(person: Person, student: Student) -> bool:
    """Return whether both the Canvas id and the name of `person` are those of `student`."""
    return bool(person.canvas_id) and person.canvas_id == student.canvas_id and _same_name(person.name, student.name)


def _same_id(person: Person, student: Student) -> bool:
    own = {person.student, person.sis_login_id, person.sis_user_id} - {""}
    return student.id in own or any(
        getattr(person, key) and getattr(person, key) == getattr(student, key) for key in _IDS
    )


def _contradict(person: Person, student: Student) -> bool:
    pairs = ((getattr(person, key), getattr(student, key)) for key in _IDS)
    return any(one and other and one != other for one, other in pairs)


def _same_name(one: str, other: str) -> bool:
    return bool(_spellings(one) & _spellings(other))


@lru_cache(maxsize=10_000)
def _spellings(name: str) -> frozenset[str]:
    """Return the letters of a name with each word first in turn: LMSs write "Baker, Ann", "Ann Baker" or "bakerann"."""
    letters = unicodedata.normalize("NFC", name).casefold()
    # Vowel signs and accents that are characters of their own belong to the word.
    words = "".join(letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in letters).split()
    return frozenset("".join(words[start:] + words[:start]) for start in range(len(words)))
