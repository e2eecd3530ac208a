"""How each student of a class stands: the attempt that counts and why, the history of scores, the late days."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from mlsys.classroom.intake.collect import counted_time
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.score_history import Score
from mlsys.classroom.store.store import Store
from mlsys.classroom.students.history import Attempt
from mlsys.classroom.students.ledger import Ledger
from mlsys.classroom.students.roster import Roster, Student

WHY = {"newest": "the newest", "best": "the best", "on-time": "the last on time"}
"""Why an attempt counts, by the policy of the last run."""


@dataclass(frozen=True)
class Handed:
    """One attempt: when it came, which file it was, and whether it counts."""

    when: str
    name: str
    counts: bool
    note: str = ""


@dataclass(frozen=True)
class LateDays:
    """One line of a ledger: a lab, when it was due and handed in, the late days used, and what is taken off.

    `used` is None if it is not known.
    """

    lab: str
    due: str
    handed_in: str
    used: int | None
    left: int
    off: str = ""


@dataclass(frozen=True)
class Standing:
    """How one student stands at a lab.

    Attributes:
        student: the id.
        name: the name in the roster, if there is one.
        section: the section in the roster.
        record: how the submission was graded, with the points that people gave; None if nothing is recorded.
        counted: which attempt counts and why, in words.
        attempts: all attempts, oldest first.
        scores: the history of scores, oldest first.
        ledger: the late days lab by lab; empty without a roster that has late days or due times.
    """

    student: str
    name: str = ""
    section: str = ""
    record: Record | None = None
    counted: str = ""
    attempts: Sequence[Handed] = ()
    scores: Sequence[Score] = ()
    ledger: Sequence[LateDays] = ()


def standings(
    store: Store, lab: str, records: Mapping[str, Record | None], roster: Roster | None, policy: str
) -> list[Standing]:
    """Return how everybody stands who handed in or is in the roster, in alphabetical order.

    Args:
        store: where attempts and histories are kept.
        lab: the lab.
        records: with the points that people gave.
        roster: gives names, sections, due times and late days.
        policy: by which the last run chose attempts.
    """
    known: Mapping[str, Student] = roster.students if roster else {}
    ledger = Ledger(roster, partial(counted_time, store)) if roster else None
    found = []

    def place(student: str) -> tuple[str, str]:
        name = known[student].name if student in known else ""
        return unicodedata.normalize("NFKD", name or student).casefold(), student

    for student in sorted(records.keys() | known.keys(), key=place):
        record, about = records.get(student), known.get(student, Student(student))
        attempts = store.history(lab, student).attempts
        zone = about.due[lab].tzinfo if lab in about.due else None
        found.append(
            Standing(
                student,
                about.name,
                about.section,
                record,
                _counted(record, attempts, policy),
                [_handed(one, record, zone) for one in attempts],
                store.scores(lab, student).scores,
                _ledger(store, ledger, student) if ledger and student in known else (),
            )
        )
    return found


def _counted(record: Record | None, attempts: Sequence[Attempt], policy: str) -> str:
    if record is None:
        return "Handed in nothing" if not attempts else "The record cannot be read: grade again"
    digests = [attempt.digest for attempt in attempts]
    if record.submission not in digests:
        return "none" if record.refused else "not among the attempts that are kept"
    place = len(digests) - digests[::-1].index(record.submission)
    if len(digests) == 1:
        return "the only attempt"
    if policy == "newest" and place < len(digests):
        return f"attempt {place} of {len(digests)}: a newer one would lower a score and waits for a yes"
    return f"attempt {place} of {len(digests)}: {WHY.get(policy, policy)}"


def _handed(attempt: Attempt, record: Record | None, zone: object) -> Handed:
    counts = record is not None and bool(attempt.digest) and attempt.digest == record.submission
    note = attempt.refused or ("marked late by Canvas" if attempt.late and attempt.time is None else "")
    return Handed(_when(attempt.time, zone), attempt.name, counts, note)


def _ledger(store: Store, ledger: Ledger, student: str) -> list[LateDays]:
    """Return the late days of a student, as they are counted when a class is graded."""
    lines = []
    for entry in ledger.entries(student):
        due, late, record = entry.rule.due, entry.late, store.record(entry.lab, student)
        counts = record is not None and not record.refused
        handed_in = _when(entry.handed_in, due.tzinfo) if counts or entry.handed_in else "nothing"
        used = late.spent if late else None if counts else 0
        off = f"{100 * late.off:g}%" if late and late.off else ""
        lines.append(LateDays(entry.lab, f"{due:%Y-%m-%d %H:%M}", handed_in, used, entry.left, off))
    return lines


def _when(time: datetime | None, zone: object) -> str:
    if time is None:
        return "time not known"
    local = time.astimezone(zone) if zone else time  # type: ignore[arg-type]
    return f"{local:%Y-%m-%d %H:%M %Z}"
