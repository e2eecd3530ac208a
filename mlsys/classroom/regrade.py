"""What a regrade would change: scores of submissions that are the same as before, under new tests or a new package."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.table import Table
from rich.text import Text

from mlsys.classroom.batch.task import Judged
from mlsys.classroom.report import first_line
from mlsys.classroom.store.record import Record


@dataclass(frozen=True)
class Change:
    """One question whose points change although the submission did not, and why: the new message."""

    student: str
    question: str
    before: str
    after: str
    why: str


def changes_of(old: Record | None, new: Judged) -> list[Change]:
    """Return the questions of an unchanged submission whose points differ from its record.

    A first grading, a new submission and points that waited for a GPU or a person change nothing in this sense. A
    submission that had a score and is refused now, or that the judge failed on, changes as a whole.
    """
    if old is None or old.refused or new.submission != old.submission:
        return []
    if new.refused:
        return [Change(new.student, "all", f"{old.points:g} points", "refused", first_line(new.refused))]
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


def with_gpu_results(old: Record, new: Judged) -> Judged:
    """Return what a pass on a GPU adds to an up-to-date record: only the points that waited for one."""
    before = {question.question: question for question in old.questions}
    if new.refused or not old.waits_for_gpu:
        return new
    kept = (before.get(question.question, question) for question in new.questions)
    return replace(
        new,
        questions=tuple(
            question if was.verdict == "needs gpu" else was for was, question in zip(kept, new.questions, strict=True)
        ),
    )


def changes_title(changes: Sequence[Change]) -> str:
    """Say how many scores change, for how many students."""
    students = len({change.student for change in changes})
    scores = "1 score changes" if len(changes) == 1 else f"{len(changes)} scores change"
    return f"{scores} for {students} student{'s' if students > 1 else ''} whose submission is the same as before:"


def changes_table(changes: Iterable[Change]) -> Table:
    """Return a table with a row per change."""
    table = Table("student", "question", "before", "after", "why", box=None, header_style="bold")
    for change in changes:
        cells = (change.student, change.question, change.before, change.after, change.why)
        table.add_row(*(Text(cell) for cell in cells))
    return table
