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
    moodle_id: str = ""
    """Moodle's number of a student in one assignment."""
    student: str = ""
    """What a file or folder is called: the course's own id, or any other word for the student."""


@dataclass(frozen=True)
class Match:
    """The student that a person is, or why that cannot be said."""

    student: Student | None
    reason: str = ""
    several: tuple[str, ...] = ()
    """The students whom it fits, if it fits more than one."""


def find(person: Person, students: Iterable[Student]) -> Match:
    """Return the one student who is `person`: by ids first, by name only where no id speaks against it.

    A login is the same in any case. What a file is called may also be a login without its domain.

    >>> ann, bob = Student("ann", "Baker, Ann", canvas_id="1"), Student("bob", "Ann Baker", canvas_id="2")
    >>> find(Person("Ann Baker", canvas_id="2"), [ann, bob]).student.id
    'bob'
    >>> find(Person("Ann Baker"), [ann, bob]).reason
    'the name fits several students: ann, bob'
    """
    students = list(students)
    # Exact ids before those in other capitals or without a domain.
    for same in (_same_id, _same_login):
        found = [student for student in students if same(person, student)]
        if len(found) == 1:
            return Match(found[0])
        if found:
            return _several("its ids belong to several students", found)
    by_name = [student for student in students if same_name(person.name, student.name)]
    possible = [student for student in by_name if not _contradict(person, student)]
    if len(possible) == 1:
        return Match(possible[0])
    if possible:
        return _several("the name fits several students", possible)
    if by_name:
        return Match(None, f"the name is that of {by_name[0].id}, whose ids are others")
    return Match(None, "nobody has one of its ids or its name")


def same_name(one: str, other: str) -> bool:
    """Return whether two names have the same words, whichever is first and whatever is between them."""
    return bool(_spellings(one) & _spellings(other))


def is_surely(person: Person, student: Student) -> bool:
    """Return whether both the Canvas id and the name of `person` are those of `student`."""
    return bool(person.canvas_id) and person.canvas_id == student.canvas_id and same_name(person.name, student.name)


def _same_id(person: Person, student: Student) -> bool:
    own = {person.student, person.sis_login_id, person.sis_user_id} - {""}
    called = person.student != "" and person.student in {getattr(student, key) for key in _IDS}
    return (
        student.id in own
        or called
        or any(getattr(person, key) and getattr(person, key) == getattr(student, key) for key in _IDS)
    )


def _same_login(person: Person, student: Student) -> bool:
    logins = {text.casefold() for text in (student.id, student.sis_login_id) if text}
    if person.sis_login_id.casefold() in logins:
        return True
    word = person.student.casefold()
    return word != "" and (
        word in {student.sis_user_id.casefold(), student.canvas_id} or any(_is_login(word, login) for login in logins)
    )


def _is_login(word: str, login: str) -> bool:
    """Return whether a word is a login, or one without its domain.

    Not the other way round: anybody can have the address ann@example.org.
    """
    return word == login or ("@" not in word and word == login.partition("@")[0])


def _several(what: str, students: Iterable[Student]) -> Match:
    ids = tuple(student.id for student in students)
    return Match(None, f"{what}: {', '.join(ids)}", ids)


def _contradict(person: Person, student: Student) -> bool:
    pairs = ((getattr(person, key).casefold(), getattr(student, key).casefold()) for key in _IDS)
    return any(one and other and one != other for one, other in pairs)


@lru_cache(maxsize=10_000)
def _spellings(name: str) -> frozenset[str]:
    """Return the letters of a name with each word first in turn: LMSs write "Baker, Ann", "Ann Baker" or "bakerann"."""
    words = words_of(unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold()))
    return frozenset("".join(words[start:] + words[:start]) for start in range(len(words)))


def words_of(name: str) -> list[str]:
    """Return the words of a name; vowel signs and accents that are characters of their own belong to the word."""
    return "".join(letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in name).split()
