"""Which of a student's attempts counts: the newest, the best, or the last one that is not late."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlsys.classroom.students.history import TIME_EXAMPLE, Attempt, of_newest_term
from mlsys.classroom.students.late import Late, Rule, days, how_late
from mlsys.errors import UnknownName, UserError

POLICIES = ("newest", "best", "on-time")
"""Which attempt counts: the newest, the one with the most points, or the last one that is not late."""


@dataclass(frozen=True)
class Choice:
    """The attempt that counts, or why none does; `late` is None while nothing says how late it is."""

    attempt: Attempt | None
    reason: str = ""
    late: Late | None = None


def candidates(attempts: Sequence[Attempt], policy: str, rule: Rule | None = None) -> list[Choice]:
    """Return what has to be graded under a policy: one attempt, or every readable one for "best".

    Attempts of earlier terms than that of the newest one do not count.

    Args:
        attempts: oldest first.
        policy: one of `POLICIES`.
        rule: the student's due time and what holds after it; None where the lab has none.

    Raises:
        UnknownName: no such policy.
    """
    if policy not in POLICIES:
        raise UnknownName.of("policy", policy, POLICIES)
    attempts = of_newest_term(attempts)
    if policy == "best":
        readable = [attempt for attempt in attempts if not attempt.refused]
        return [_choice(attempt, rule) for attempt in readable or attempts[-1:]]
    if policy == "newest":
        return [_choice(attempt, rule) for attempt in attempts[-1:]]
    unsure = [attempt for attempt in attempts if _on_time(attempt, rule) is None]
    if unsure:
        if rule is None:
            return [Choice(None, "there is no due time for this student: enter it in the roster")]
        name = unsure[-1].name
        cure = f"name the LMS's list with --times, or enter its time in attempts.json, as {TIME_EXAMPLE}"
        return [Choice(None, f"when {name} was handed in is not known: {cure}")]
    on_time = [attempt for attempt in attempts if _on_time(attempt, rule)]
    if not on_time:
        return [Choice(None, _too_late(attempts, rule) if attempts else "nothing was handed in")]
    return [_choice(on_time[-1], rule)]


def best(choices: Sequence[Choice], points: Mapping[str, float]) -> Choice:
    """Return the choice with the most points by digest, what lateness takes off included; the newest of equal ones.

    Raises:
        UserError: one of several was not graded.
    """
    if len(choices) == 1:
        return choices[0]
    for choice in choices:
        if choice.attempt is None or choice.attempt.digest not in points:
            name = choice.attempt.name if choice.attempt else choice.reason
            raise UserError(f"{name} is not graded yet: grade every attempt before the best is chosen")
    return max(reversed(choices), key=lambda choice: _points(choice, points))


def _points(choice: Choice, points: Mapping[str, float]) -> float:
    given = points[choice.attempt.digest] if choice.attempt else 0.0
    return given * (1 - choice.late.off) if choice.late and given > 0 else given  # a refused one has less than none


def _choice(attempt: Attempt, rule: Rule | None) -> Choice:
    return Choice(attempt, attempt.refused, rule.late(attempt.time) if rule and attempt.time else None)


def _on_time(attempt: Attempt, rule: Rule | None) -> bool | None:
    """Return whether an attempt is on time; None if nothing says so."""
    if rule is not None and attempt.time is not None:
        return not rule.late(attempt.time).uncovered
    may_be_late = rule is not None and (rule.late_days or rule.grace_minutes)
    if attempt.late is not None and not (attempt.late and may_be_late):
        return not attempt.late
    return None


def _too_late(attempts: Sequence[Attempt], rule: Rule | None) -> str:
    """Say that no attempt is on time: what the first needs, and what is left."""
    text = "the attempt" if len(attempts) == 1 else f"each of the {len(attempts)} attempts"
    text += " came after the due time"
    times = [attempt.time for attempt in attempts if attempt.time]
    if rule is None:
        return text
    text += f" {rule.due:%Y-%m-%d %H:%M %Z}"
    if not times:
        return text
    late = rule.late(min(times))
    first = "" if len(attempts) == 1 else "the first "
    return f"{text}: {first}{how_late(late.minutes)} late, which needs {days(late.needed)}; left: {late.left}"
