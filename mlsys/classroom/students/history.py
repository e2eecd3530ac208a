"""All attempts of a student at a lab, with what is known of their times, in the order in which they were handed in."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

TIME_EXAMPLE = '"2026-11-20T18:00+01:00"'
"""How a time is written into the list by hand: between quotes, with its distance from UTC."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at a lab: a submitted notebook.

    Attributes:
        digest: of its content, which names the kept file; empty when there is no content to keep.
        name: the file's name where it came from.
        origin: the kind of that place: nbgrader, flat, canvas, moodle, or submitted.
        time: when it was handed in, or None if nothing says so.
        number: the LMS's number of the upload, which grows.
        late: whether the LMS says that it is late; None if it says nothing.
        canvas_id: the Canvas user, if the name says it.
        refused: why it cannot be graded.
        term: name of the term in which it came in, whose lab it is graded with.
    """

    digest: str
    name: str
    origin: str
    time: datetime | None = None
    number: int | None = None
    late: bool | None = None
    canvas_id: str = ""
    refused: str = ""
    term: str = ""


@dataclass(frozen=True)
class History:
    """The attempts of one student at one lab, oldest first."""

    attempts: tuple[Attempt, ...] = ()

    def with_attempt(self, attempt: Attempt) -> "History":
        """Return the history with one attempt more; one that is known already gets its time where it had none."""
        if self.knows(attempt):
            return self._timed(attempt)
        return replace(self, attempts=tuple(_in_order([*self.attempts, attempt])))

    def _timed(self, known: Attempt) -> "History":
        """Return the history with the time of an attempt that was known without it."""
        same = [
            index
            for index, one in enumerate(self.attempts)
            if one.time is None and _content(one) == _content(known) and one.number == known.number
        ]
        if known.time is None or not same:
            return self
        attempts = list(self.attempts)
        attempts[same[-1]] = replace(attempts[same[-1]], time=known.time)
        return replace(self, attempts=tuple(_in_order(attempts)))

    def knows(self, attempt: Attempt) -> bool:
        """Return whether this is one of the attempts, met again: the newest's content, or the same upload.

        Of a new term it is another attempt if the upload is another one, as far as anything says so.
        """
        newest = self.attempts[-1] if self.attempts else None
        if newest and _content(newest) == _content(attempt):
            again = _differs(newest.number, attempt.number) or _differs(newest.time, attempt.time)
            return newest.term == attempt.term or not again
        return any(
            _content(one) == _content(attempt) and (_same(one.number, attempt.number) or _same(one.time, attempt.time))
            for one in self.attempts
        )


def shared(before: Collection[History], now: Collection[History]) -> History:
    """Return the attempts of a group: what any of its members has handed in.

    Where several members hand in different files without time or number, each file is an attempt once.

    Args:
        before: what each member had before.
        now: what each member who handed in now has, in the order in which later ones count.
    """
    merged: list[Attempt] = []
    for history in sorted(before, key=lambda history: -len(history.attempts)):
        known = {(_content(one), one.number, one.time) for one in merged}
        merged += [one for one in history.attempts if (_content(one), one.number, one.time) not in known]
    result = History(tuple(_in_order(merged)))
    seen = Counter((_content(one), one.number) for one in merged)
    several = len({_content(history.attempts[-1]) for history in now if history.attempts}) > 1
    for history in now:
        left = seen.copy()
        for attempt in history.attempts:
            key = _content(attempt), attempt.number
            if left[key] > 0:
                left[key] -= 1
            elif not (several and seen[key] and attempt.number is None and attempt.time is None):
                result = result.with_attempt(attempt)
        for attempt in history.attempts:
            result = result._timed(attempt)
    return result


def _same(one: object, other: object) -> bool:
    return one is not None and one == other


def _differs(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def of_newest_term(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts of the term of the newest one: earlier ones answer another variant of the lab."""
    return [attempt for attempt in attempts if attempt.term == attempts[-1].term]


def _content(attempt: Attempt) -> str:
    return attempt.digest or f"{attempt.name}: {attempt.refused}"


def _in_order(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Sort by time if all have one, by the LMS's number if all have one; else as they came in."""
    times = [attempt.time for attempt in attempts]
    numbers = [attempt.number for attempt in attempts]
    order = list(range(len(attempts)))
    if all(time is not None for time in times):
        order.sort(key=lambda index: times[index])  # type: ignore[arg-type, return-value]
    elif all(number is not None for number in numbers):
        order.sort(key=lambda index: numbers[index])  # type: ignore[arg-type, return-value]
    return [attempts[index] for index in order]
