"""Which of a student's attempts counts: the newest, the best, or the last one that is not late."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mlsys.classroom.students.deadlines import Lateness, aware, days_after, lateness
from mlsys.classroom.students.history import TIME_EXAMPLE, Attempt
from mlsys.classroom.students.roster import Student
from mlsys.errors import UnknownName, UserError

POLICIES = ("newest", "best", "on-time")
"""Which attempt counts: the newest, the one with the most points, or the last one that is not late."""


@dataclass(frozen=True)
class Choice:
    """The attempt that counts, or why none does; `lateness` is None while nothing says how late it is."""

    attempt: Attempt | None
    reason: str = ""
    lateness: Lateness | None = None


def candidates(
    attempts: Sequence[Attempt], policy: str, due: datetime | None = None, late_days: int = 0
) -> list[Choice]:
    """Return what has to be graded under a policy: one attempt, or every readable one for "best".

    Args:
        attempts: oldest first.
        policy: one of `POLICIES`.
        due: the student's due time; None where the lab has none.
        late_days: how many days after it still count as on time.

    Raises:
        UnknownName: no such policy.
    """
    if policy not in POLICIES:
        raise UnknownName.of("policy", policy, POLICIES)
    if policy == "best":
        readable = [attempt for attempt in attempts if not attempt.refused]
        return [_choice(attempt, due) for attempt in readable or attempts[-1:]]
    if policy == "newest":
        return [_choice(attempt, due) for attempt in attempts[-1:]]
    unsure = [attempt for attempt in attempts if _on_time(attempt, due, late_days) is None]
    if unsure:
        if due is None:
            return [Choice(None, "there is no due time for this student: enter it in the roster")]
        name = unsure[-1].name
        cure = f"name the LMS's list with --times, or enter its time in attempts.json, as {TIME_EXAMPLE}"
        return [Choice(None, f"when {name} was handed in is not known: {cure}")]
    on_time = [attempt for attempt in attempts if _on_time(attempt, due, late_days)]
    if not on_time:
        count = "the attempt" if len(attempts) == 1 else f"each of the {len(attempts)} attempts"
        until = f" {due:%Y-%m-%d %H:%M %Z}" if due else ""
        return [Choice(None, f"{count} came after the due time{until}" if attempts else "nothing was handed in")]
    return [_choice(on_time[-1], due)]


def best(choices: Sequence[Choice], points: Mapping[str, float]) -> Choice:
    """Return the choice with the most points by digest, the newest of equal ones.

    Raises:
        UserError: one of several was not graded.
    """
    if len(choices) == 1:
        return choices[0]
    for choice in choices:
        if choice.attempt is None or choice.attempt.digest not in points:
            name = choice.attempt.name if choice.attempt else choice.reason
            raise UserError(f"{name} is not graded yet: grade every attempt before the best is chosen")
    return max(reversed(choices), key=lambda choice: points[choice.attempt.digest] if choice.attempt else 0.0)


def _choice(attempt: Attempt, due: datetime | None) -> Choice:
    late = lateness(attempt.time, due) if due is not None and attempt.time is not None else None
    return Choice(attempt, attempt.refused, late)


def _on_time(attempt: Attempt, due: datetime | None, late_days: int) -> bool | None:
    """Return whether an attempt is on time; None if nothing says so."""
    if due is not None and attempt.time is not None:
        return attempt.time <= days_after(due, late_days)
    if attempt.late is not None and not (attempt.late and late_days):
        return not attempt.late
    return None


def late_days_left(student: Student, lab: str, attempts_at: Callable[[str], Sequence[Attempt]]) -> int:
    """Return the late days that a student has left for a lab: those of earlier labs are spent on what counts there.

    Args:
        student: the student.
        lab: the lab.
        attempts_at: gives the student's attempts at a lab.
    """
    left = student.late_days
    due = {name: aware(time, "the due time") for name, time in student.due.items()}
    if lab not in due:
        return left
    for earlier in sorted((name for name in due if due[name] < due[lab]), key=lambda name: due[name]):
        (choice,) = candidates(attempts_at(earlier), "on-time", student.due[earlier], left)
        left -= choice.lateness.days if choice.lateness else 0
    return left
