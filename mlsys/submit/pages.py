"""The pages of the queue: login, labs, one lab, one hand-in, the race board, and the page of those who teach."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from zoneinfo import ZoneInfo

import jinja2

from mlsys.classroom.gradebook.feedback import code_spans
from mlsys.classroom.marking.pages import style as marking_style
from mlsys.classroom.students.deadlines import Lateness
from mlsys.classroom.templates import page_file, page_templates
from mlsys.course.lab import Lab
from mlsys.submit.board import Race
from mlsys.submit.queue import DONE, JUDGING, REPLACED, WAITING, Given, HandIn
from mlsys.submit.tokens import STUDENT

_PACKAGE = "mlsys.submit"
STATES = {WAITING: "in the queue", JUDGING: "being judged", DONE: "judged", REPLACED: "replaced by a newer one"}
"""States of a hand-in, in words."""


@dataclass(frozen=True)
class Visitor:
    """Who looks at a page: the name, the role, and the time zone in which times are shown."""

    name: str = ""
    role: str = STUDENT
    zone: ZoneInfo | None = None


@dataclass(frozen=True)
class LabView:
    """What a student sees of a lab: when it is due, and the student's hand-ins, newest first."""

    name: str
    title: str
    due: datetime | None = None
    hand_ins: Sequence[HandIn] = ()
    feedback: bool = False
    board: bool = False


@dataclass(frozen=True)
class Marked:
    """An answer to which several people gave marks: all of them, oldest first; the last one holds."""

    question: str
    answer: str
    given: Sequence[Given]

    @property
    def differ(self) -> bool:
        """Whether the last marks of two people differ in points."""
        return len({one.points for one in {one.marker: one for one in self.given}.values()}) > 1


def marked_by_several(given: Sequence[Given]) -> list[Marked]:
    """Return the answers to which several people gave marks, by question."""
    found: dict[tuple[str, str], list[Given]] = {}
    for one in given:
        found.setdefault((one.question, one.answer), []).append(one)
    several = [Marked(*key, marks) for key, marks in sorted(found.items()) if len({one.marker for one in marks}) > 1]
    return sorted(several, key=lambda one: (one.question, not one.differ))


def login_page(oidc: str, fault: str = "") -> str:
    """Return the page on which people log in; `oidc` is the host of the institution's login, if there is one."""
    return _render("login", Visitor(), oidc=oidc, fault=fault)


def home_page(visitor: Visitor, labs: Sequence[LabView]) -> str:
    """Return a student's first page: the labs."""
    return _render("home", visitor, labs=labs)


def lab_page(visitor: Visitor, lab: LabView, *, most_bytes: int, hidden_a_day: int, fault: str = "") -> str:
    """Return the page of a lab: the form for handing in, and what was handed in."""
    return _render("lab", visitor, lab=lab, most_bytes=most_bytes, hidden_a_day=hidden_a_day, fault=fault)


def hand_in_page(
    visitor: Visitor, hand_in: HandIn, lab: Lab, *, place: int, late: Lateness | None, notes: Sequence[str], key: str
) -> str:
    """Return the page of one hand-in: its receipt, and its verdicts once there are any."""
    found = {one.question: one for one in hand_in.found.questions} if hand_in.found else {}
    rows = [(question, found.get(question.name)) for question in lab.questions]
    return _render("hand_in", visitor, one=hand_in, lab=lab, rows=rows, place=place, late=late, notes=notes, key=key)


def board_page(visitor: Visitor, title: str, lab: str, races: Sequence[Race], own: str) -> str:
    """Return the race board of a lab; `own` is the visitor's pseudonym."""
    return _render("board", visitor, title=title, lab=lab, races=races, own=own)


def staff_page(
    visitor: Visitor, counts: Mapping[str, Mapping[str, int]], newest: Sequence[HandIn], several: Mapping[str, int]
) -> str:
    """Return the page of those who teach: the queue, and the labs to mark."""
    return _render("staff", visitor, counts=counts, newest=newest, several=several)


def marks_page(visitor: Visitor, lab: str, several: Sequence[Marked]) -> str:
    """Return the list of answers to which several people gave marks."""
    return _render("marks", visitor, lab=lab, several=several)


def fault_page(visitor: Visitor, fault: str) -> str:
    """Return a page that only says what is wrong."""
    return _render("fault", visitor, fault=fault)


@cache
def style() -> str:
    """Return the style sheet: that of the marking pages, and what these add."""
    return marking_style() + page_file(_PACKAGE, "queue.css")


@cache
def script() -> str:
    """Return the script: the size of a file before it is sent, and verdicts as they come."""
    return page_file(_PACKAGE, "queue.js")


def _render(name: str, visitor: Visitor, **values: object) -> str:
    def shown(time: datetime) -> str:
        local = time.astimezone(visitor.zone) if visitor.zone else time
        return f"{local:%a %Y-%m-%d %H:%M:%S} {local:%Z}"

    template = _templates().get_template(f"{name}.html.j2")
    return template.render(visitor=visitor, states=STATES, shown=shown, **values) + "\n"


@cache
def _templates() -> jinja2.Environment:
    return page_templates(_PACKAGE, code_spans=code_spans)
