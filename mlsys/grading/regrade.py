"""What a regrade would change: scores of submissions that are the same as before, under new tests or a new package."""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from mlsys.grading.pool import Judged
from mlsys.grading.records import Record
from mlsys.grading.report import first_line


@dataclass(frozen=True)
class Change:
    """One question whose points change although the submission did not, and why: the new message."""

    student: str
    question: str
    before: str
    after: str
    why: str


def changes_of(old: Record | None, new: Judged) -> list[Change]:
    """The questions of an unchanged submission whose points differ from its record.

    A first grading, a new submission and points that waited for a GPU or a person change nothing in this sense.
    """
    if old is None or old.submission != new.submission or old.refused or new.refused:
        return []
    before = {question.question: question for question in old.questions}
    found = []
    for question in new.questions:
        was = before.get(question.question)
        if was is None or was.waiting or was.points == question.points:
            continue
        before_it, after_it = (f"{which.verdict} {which.points:g}" for which in (was, question))
        why = first_line(question.message or question.taught)
        found.append(Change(new.student, question.question, before_it, after_it, why))
    return found


def changes_table(changes: Iterable[Change]) -> Table:
    """A table with a row per change."""
    table = Table("student", "question", "before", "after", "why", box=None, header_style="bold")
    for change in changes:
        cells = (change.student, change.question, change.before, change.after, change.why)
        table.add_row(*(Text(cell) for cell in cells))
    return table
