"""Scores into a platform's table of grades: who gets which cell, and why everybody else gets none."""

import csv
import io
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mlsys.classroom.lms.csv_file import Table, guarded
from mlsys.classroom.store.record import MARKED, Record
from mlsys.classroom.students.identity import Person, find
from mlsys.classroom.students.roster import Student
from mlsys.errors import InvalidValue

FILLED, PARTIAL, BLANK, KEPT = "filled", "partial", "left blank", "kept"
NO_SCORE, NO_ROW = "no submission", "not in the gradebook"


TEST_STUDENT = "Student, Test"
"""Canvas's own student."""


@dataclass(frozen=True)
class Assignment:
    """One assignment's column: where it is, its name there, the title and id in it, and the points possible."""

    index: int
    header: str
    title: str
    id: str
    points: float | None


class Grades(Protocol):
    """A platform's table of grades, with a row for each student."""

    @property
    def table(self) -> Table:
        """The table."""

    @property
    def student_rows(self) -> tuple[int, ...]:
        """The numbers of the rows with students."""

    def person(self, row: int) -> Person:
        """Return the student of a row."""

    def kept(self, row: int, column: int) -> str:
        """Return why a cell is not ours to fill; empty if it is."""


class PointsDiffer(InvalidValue):
    """The lab's points are not those of the assignment."""


@dataclass(frozen=True)
class Score:
    """What a student has in a lab; `points` is None while there is no score. `reason` says why, or what waits."""

    student: str
    points: float | None
    most: float
    reason: str = ""


@dataclass(frozen=True)
class Note:
    """What became of one student: a kind such as `FILLED`, who, and what there is to say."""

    kind: str
    who: str
    text: str


@dataclass(frozen=True)
class Filled:
    """A filled gradebook with a note on every student of either side."""

    table: Table
    notes: tuple[Note, ...]

    def of(self, kind: str) -> list[Note]:
        """Return the notes of one kind."""
        return [note for note in self.notes if note.kind == kind]


def score_of(record: Record, without: Collection[str] = (), *, partial: bool = False) -> Score:
    """Return the score in a record; none as long as points wait, or when it was refused and no person gave points.

    Args:
        record: of a student, with the points that people gave.
        without: questions that do not count: neither their points nor the points possible.
        partial: count what is certain already; the reason then says what waits.
    """
    questions = [question for question in record.questions if question.question not in without]
    most = sum(question.max_points for question in questions)
    if record.refused and not any(question.verdict == MARKED for question in questions):
        return Score(record.student, None, most, f"refused: {record.refused}")
    waiting = {question.verdict: question.question for question in questions if question.waiting}
    reason = (
        f"{sum(question.waiting for question in questions):g} points wait ({', '.join(waiting)})" if waiting else ""
    )
    if waiting and not partial:
        return Score(record.student, None, most, reason)
    given = sum(question.points for question in questions)
    whole = sum(question.points for question in record.questions)
    # What lateness takes off is a part of the points, so of these questions' points the same part.
    return Score(record.student, given - (record.penalty * given / whole if whole else 0.0), most, reason)


def fill(
    gradebook: Grades,
    assignment: Assignment,
    scores: Iterable[Score],
    students: Mapping[str, Student],
    *,
    scale: bool = False,
) -> Filled:
    """Write the scores into the column of `assignment`.

    A cell that is not ours, such as one with EX or N/A, and that of a student without submission, stays as it is. A
    student with a submission and no score yet gets an empty cell, never 0 and never the score of an earlier attempt.

    Args:
        gradebook: as the platform exported it.
        assignment: the column.
        scores: of the students who handed in.
        students: the roster's students by id; whoever is missing there is known by the course's id alone.
        scale: write a score out of the lab's points as one out of the points possible.

    Raises:
        PointsDiffer: the lab's points are not the points possible, and `scale` is not set.
    """
    by_student = {score.student: score for score in scores}
    known = {**{student: Student(student, student) for student in by_student}, **students}
    rows, notes = _rows_of(gradebook, list(known.values()))
    table = gradebook.table
    for student, row in rows.items():
        who, old = _who(gradebook, row), table.rows[row][assignment.index].strip()
        score = by_student.get(student)
        if score is None:
            notes.append(Note(NO_SCORE, f"{student} ({who})", f"its cell stays {old or 'empty'}"))
        elif reason := gradebook.kept(row, assignment.index):
            notes.append(Note(KEPT, f"{student} ({who})", reason))
        elif score.points is None:
            table = table.with_cell(row, assignment.index, "") if old else table
            was = f"; it was {old}" if old else ""
            notes.append(Note(BLANK, f"{student} ({who})", f"{score.reason}{was}"))
        else:
            new = _number(_scaled(score, assignment, scale))
            table = table.with_cell(row, assignment.index, new)
            text = f"{old} -> {new}" if old not in ("", new) else new
            notes.append(Note(FILLED, f"{student} ({who})", text))
            notes += [Note(PARTIAL, f"{student} ({who})", f"{new}; {score.reason}")] if score.reason else []
    for student, score in by_student.items():
        if student not in rows:
            text = score.reason if score.points is None else f"has {_number(score.points)} of {_number(score.most)}"
            notes.append(Note(NO_ROW, student, text))
    return Filled(table, tuple(notes))


def _rows_of(gradebook: Grades, students: Sequence[Student]) -> tuple[dict[str, int], list[Note]]:
    """Return the row of each student who has exactly one, and a note on every other row."""
    claims: dict[str, list[int]] = {}
    notes = []
    for row in gradebook.student_rows:
        match = find(gradebook.person(row), students)
        if match.student is not None:
            claims.setdefault(match.student.id, []).append(row)
        elif gradebook.person(row).name != TEST_STUDENT:
            notes.append(Note(NO_SCORE, _who(gradebook, row), match.reason))
    for student, claimed in claims.items():
        if len(claimed) > 1:
            lines = " and ".join(str(gradebook.table.rows[row].line) for row in claimed)
            text = f"lines {lines} both fit {student}: give the roster their ids in the LMS"
            notes += [Note(NO_SCORE, _who(gradebook, row), text) for row in claimed]
    return {student: claimed[0] for student, claimed in claims.items() if len(claimed) == 1}, notes


def _who(gradebook: Grades, row: int) -> str:
    return f"{gradebook.person(row).name}, line {gradebook.table.rows[row].line}"


def _scaled(score: Score, assignment: Assignment, scale: bool) -> float:
    assert score.points is not None
    if assignment.points is None or math.isclose(assignment.points, score.most):
        return score.points
    if not scale:
        raise PointsDiffer(
            f"{score.student} has {_number(score.points)} of {_number(score.most)} points, the column "
            f"{assignment.header!r} has {_number(assignment.points)} points possible: change them there, or add "
            "--scale to write the same part of them"
        )
    return score.points * assignment.points / score.most if score.most else 0.0


def _number(value: float) -> str:
    if not math.isfinite(value) or value < 0:
        raise InvalidValue(f"{value} is no score: grade the lab again")
    return f"{value:.4f}".rstrip("0").rstrip(".")


def plain_table(scores: Iterable[Score], students: Mapping[str, Student]) -> str:
    """Return the scores as a CSV file of its own: student, name, points, points possible, and what there is to say."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("student", "name", "points", "max_points", "reason"))
    for score in scores:
        name = students[score.student].name if score.student in students else ""
        points = "" if score.points is None else _number(score.points)
        writer.writerow((*map(guarded, (score.student, name)), points, _number(score.most), guarded(score.reason)))
    return out.getvalue()
