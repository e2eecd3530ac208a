"""The ledger of late days: what each student has spent at which lab, and what is left.

A budget holds for all labs together and is spent in the order of due times. Groups hand in once, so one rule holds for
all members: the latest due time of any of them, the longest grace time, the lowest percentage, and as many late days as
the member has who has the fewest left. Every member spends the same number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from mlsys.classroom.students.deadlines import aware
from mlsys.classroom.students.late import Late, Rule
from mlsys.classroom.students.roster import Roster, Student


@dataclass(frozen=True)
class Entry:
    """One line of the ledger: a student at a lab.

    Attributes:
        lab: the lab.
        group: the student's group there; empty without one.
        rule: when it was due, and what holds after that.
        handed_in: when the submission came that counts; None if none does, or the time is not known.
        late: how late that was and what it costs; None if the time is not known.
        left: late days that are left after it.
    """

    lab: str
    group: str
    rule: Rule
    handed_in: datetime | None
    late: Late | None
    left: int


Counted = Callable[[str, str], datetime | None]
"""Tells when the submission was handed in that counts, for a lab and a student; None if none does."""


class Ledger:
    """The late days of a class under the rules of a roster."""

    def __init__(self, roster: Roster, counted: Counted) -> None:
        self._roster = roster
        self._counted = counted
        self._left: dict[tuple[str, str], int] = {}

    def rule(self, student: str, lab: str) -> Rule | None:
        """Return what holds for a student at a lab; None if the roster gives no due time."""
        members = self._members(student, lab)
        due = _due(members, lab)
        if due is None:
            return None
        return Rule(
            due,
            min(self.left(member.id, lab) for member in members),
            max(member.grace_minutes for member in members),
            min(member.late_percent for member in members),
        )

    def late(self, student: str, lab: str) -> Late | None:
        """Return how late the submission was that counts; None if there is none, or its time is not known."""
        rule, time = self.rule(student, lab), self._counted(lab, student)
        return rule.late(time) if rule and time else None

    def entries(self, student: str) -> list[Entry]:
        """Return a line for each lab that has a due time for a student, in the order of due times."""
        found = []
        for lab in sorted(self._roster.labs, key=lambda lab: (len(self.earlier(student, lab)), lab)):
            rule, late = self.rule(student, lab), self.late(student, lab)
            if rule is not None:
                group = self._roster.students[student].groups.get(lab, "")
                left = self.left(student, lab) - (late.spent if late else 0)
                found.append(Entry(lab, group, rule, self._counted(lab, student), late, left))
        return found

    def left(self, student: str, lab: str) -> int:
        """Return the late days that a student has left for a lab: those of labs due earlier are spent."""
        key = student, lab
        if key not in self._left:
            spent = sum(late.spent for other in self.earlier(student, lab) if (late := self.late(student, other)))
            self._left[key] = max(0, self._roster.students[student].late_days - spent)
        return self._left[key]

    def earlier(self, student: str, lab: str) -> list[str]:
        """Return the labs that are due before this one for a student, in the order of their due times."""
        order = {}
        for other in self._roster.labs:
            if due := _due(self._members(student, other), other):
                order[other] = (aware(due, "the due time"), other)
        return sorted((other for other in order if lab in order and order[other] < order[lab]), key=order.__getitem__)

    def _members(self, student: str, lab: str) -> list[Student]:
        return [self._roster.students[member] for member in self._roster.members(student, lab)]


def _due(members: list[Student], lab: str) -> datetime | None:
    times = [member.due[lab] for member in members if lab in member.due]
    return max(times, key=lambda time: aware(time, "the due time"), default=None)
