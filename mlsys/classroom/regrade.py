"""Changes of scores that need a yes: by new tests, a refusal, another policy or rule, or of marks that lapse."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.table import Table
from rich.text import Text

from mlsys.classroom.batch.task import Judged
from mlsys.classroom.report import first_line, safe
from mlsys.classroom.store.record import LATE, HandedIn, Record

MARK_LAPSES = "the answer has changed since a person marked it"


@dataclass(frozen=True)
class Change:
    """One question whose points change although the student handed in nothing newer that can be graded, and why."""

    student: str
    question: str
    before: str
    after: str
    why: str


def changes_of(old: Record | None, new: Judged, *, newer: bool = True) -> list[Change]:
    """Return the questions whose points differ from the record, where that is not the doing of a newer attempt.

    A first grading and points that waited for a GPU or a person change nothing in this sense. A submission that had a
    score and is refused now, or that the judge failed on, changes as a whole, also where the refused file is newer.

    Args:
        old: the record.
        new: what was found now.
        newer: whether another submission than the record's was handed in after it.
    """
    if old is None or old.refused:
        return []
    if new.refused:
        return [Change(new.student, "all", f"{old.points:g} points", "refused", first_line(new.refused))]
    if newer and new.submission != old.submission:
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


def lapsed_marks(
    old: Record, new: Judged, points: Mapping[str, float], is_same: Callable[[str], bool]
) -> dict[str, Change]:
    """Return the marks of people that a new submission outdates, by grade_id.

    Args:
        old: the record of the submission that was marked.
        new: what was found now.
        points: what people gave the student, by grade_id.
        is_same: tells for a question whether its answer is the same in both submissions.
    """
    found = {}
    after = {question.question: question for question in new.questions}
    for was in old.questions:
        if was.grade_id in points and not is_same(was.question):
            now = after.get(was.question)
            said = "refused" if new.refused or now is None else now.verdict
            said += f" {now.points:g}" if now and not now.waiting and not new.refused else ""
            marked = f"marked {points[was.grade_id]:g}"
            why = first_line(new.refused) if new.refused else MARK_LAPSES
            found[was.grade_id] = Change(new.student, was.question, marked, said, why)
    return found


def late_change(old: Record, new: HandedIn) -> Change | None:
    """Return what another rule, due time or time of handing in does to a score; None if it does nothing.

    Args:
        old: the record, with the points that people gave.
        new: how the same submission was handed in, as it is known now.
    """
    before, after = old.points, replace(old, handed_in=new).points
    if old.refused or math.isclose(before, after, abs_tol=1e-4):
        return None
    return Change(old.student, LATE, f"{before:g} points", f"{after:g} points", new.cost)


def with_gpu_results(old: Record, new: Judged) -> Judged:
    """Return what a pass on a GPU adds to an up-to-date record: only the points that waited for one."""
    if new.refused or not old.waits_for_gpu:
        return new
    found = {question.question: question for question in new.questions}
    return replace(
        new,
        questions=tuple(found.get(was.question, was) if was.verdict == "needs gpu" else was for was in old.questions),
    )


def changes_title(changes: Sequence[Change]) -> str:
    """Say how many scores change, for how many students."""
    students = len({change.student for change in changes})
    scores = "1 score or mark changes" if len(changes) == 1 else f"{len(changes)} scores or marks change"
    return f"{scores} for {students} student{'s' if students > 1 else ''}:"


def changes_csv(changes: Iterable[Change]) -> str:
    """Return the changes as a CSV file, which spreadsheets take for text only."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("student", "question", "before", "after", "why"))
    for change in changes:
        writer.writerow(map(safe, (change.student, change.question, change.before, change.after, change.why)))
    return file.getvalue()


def changes_table(changes: Iterable[Change]) -> Table:
    """Return a table with a row per change."""
    table = Table("student", "question", "before", "after", "why", box=None, header_style="bold")
    for change in changes:
        cells = (change.student, change.question, change.before, change.after, change.why)
        table.add_row(*(Text(cell) for cell in cells))
    return table
