"""Moodle's grading worksheet of an assignment, filled in its column of grades and otherwise left byte for byte.

It is what *View all submissions, Download grading worksheet* gives in English: one row for each participant, with the
columns Identifier ("Participant 4711"), Full name, Email address, Status, Grade, Maximum grade, Grade can be changed,
Last modified (submission), Last modified (grade) and perhaps others. *Upload grading worksheet* compares the times in
it with its own, so they must stay as they are.
Source: `mod/assign/feedback/offline/importgradeslib.php` of https://github.com/moodle/moodle.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from mlsys.classroom.lms.csv_file import Table, read_table
from mlsys.classroom.lms.fill import Assignment
from mlsys.classroom.lms.hand_ins import PARTICIPANT
from mlsys.classroom.students.identity import Person
from mlsys.errors import InvalidValue

GRADE, MAXIMUM, CHANGEABLE = "Grade", "Maximum grade", "Grade can be changed"


class BadWorksheet(InvalidValue):
    """A file that is no grading worksheet; the message says how to get one."""


@dataclass(frozen=True)
class Worksheet:
    """A grading worksheet: the table, and the numbers of its rows with participants."""

    table: Table
    student_rows: tuple[int, ...]

    def cell(self, row: int, *names: str) -> str:
        """Return what a row has in the first of some columns that there is; empty if there is none."""
        header = [name.casefold() for name in self.table.rows[0].values()]
        place = next((header.index(name.casefold()) for name in names if name.casefold() in header), None)
        return "" if place is None else self.table.rows[row][place].strip()

    def person(self, row: int) -> Person:
        """Return the participant of a row."""
        number = re.search(r"\d+$", self.cell(row, PARTICIPANT))
        word = self.cell(row, "Email address", "Username")
        return Person(
            self.cell(row, "Full name"),
            sis_user_id=self.cell(row, "ID number"),
            moodle_id=number[0] if number else "",
            student=word,
        )

    def kept(self, row: int, column: int) -> str:
        """Return why the grade of a row is not ours to fill; empty if it is."""
        return "Moodle says that it cannot be changed" if self.cell(row, CHANGEABLE).casefold() == "no" else ""

    def assignment(self) -> Assignment:
        """Return the column of grades, with the points possible.

        Raises:
            BadWorksheet: the participants have different maximum grades.
        """
        most = {self.cell(row, MAXIMUM) for row in self.student_rows} - {""}
        if len(most) > 1:
            raise BadWorksheet(
                f"the column {MAXIMUM!r} has several values ({', '.join(sorted(most))}): export it again"
            )
        index = self.table.rows[0].values().index(GRADE)
        points = most.pop() if most else ""
        try:
            return Assignment(index, GRADE, GRADE, "", float(points.replace(",", ".")) if points else None)
        except ValueError as error:
            raise BadWorksheet(
                f"{points!r} is no number of points: set the assignment's grade type to points"
            ) from error


def read_worksheet(path: Path) -> Worksheet:
    """Return the grading worksheet in a file.

    Raises:
        UserError: it cannot be read, or is something else.
    """
    table = read_table(path)
    header = table.rows[0].values() if table.rows else []
    missing = [name for name in (PARTICIPANT, GRADE) if name not in header]
    if missing:
        raise BadWorksheet(
            f"{path}: the first line has no column {missing[0]!r}: in Moodle choose English as your language, then "
            "Download grading worksheet among the actions of the assignment's submissions"
        )
    rows = tuple(index for index, row in enumerate(table.rows) if index and any(map(str.strip, row.values())))
    return Worksheet(table, rows)


def roster_rows(worksheet: Worksheet) -> dict[int, list[str]]:
    """Return the participants as rows of a roster, by their lines: id, name, and the ids that have columns there."""
    rows = {}
    for index in worksheet.student_rows:
        person = worksheet.person(index)
        first = person.student or person.sis_user_id or person.moodle_id
        line = worksheet.table.rows[index].line
        rows[line] = [first, person.name, "", "", person.sis_user_id, person.student]
    return rows
