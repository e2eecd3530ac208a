"""Canvas's gradebook as it exports it, filled in one assignment's column and otherwise left byte for byte as it was.

Such a file contains a row of column names; perhaps a row that says "Manual Posting" (or "Muted") for assignments
with hidden grades; a row "Points Possible", with "(read only)" in computed columns; one row per student, the last one
perhaps Canvas's own "Student, Test". Cells may hold "EX" (excused) and "N/A" (not assigned to this student).
Source: `lib/gradebook_exporter.rb` and `lib/gradebook_importer.rb` of https://github.com/instructure/canvas-lms.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from mlsys.classroom.lms.csv_file import Row, Table, read_table
from mlsys.classroom.lms.fill import TEST_STUDENT, Assignment
from mlsys.classroom.students.identity import Person
from mlsys.errors import InvalidValue, UnknownName

NOT_OURS = ("EX", "N/A")
"""What Canvas writes for a student who is excused, or to whom the assignment is not assigned."""

_NAMES = ("Student", "LastName", "FirstName")
_ABOUT_STUDENTS = (*_NAMES, "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section")
_COMPUTED = re.compile(r"\b(Current|Final|Override) (Score|Points|Grade|Status)\b")
_TITLE_AND_ID = re.compile(r"(?P<title>.*?) ?\((?P<id>\d+)\)", re.S)


class BadGradebook(InvalidValue):
    """A file that is not what Canvas exports; the message says how to get one."""


@dataclass(frozen=True)
class Gradebook:
    """A gradebook: the table, and the numbers of its rows with students."""

    table: Table
    student_rows: tuple[int, ...]

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        return self.table.rows[0].values()

    def person(self, row: int) -> Person:
        """Return the student of a row."""
        cells = self.table.rows[row]
        about = {name: cells[self.header.index(name)].strip() for name in _ABOUT_STUDENTS if name in self.header}
        name = about.get("Student") or f"{about.get('LastName', '')}, {about.get('FirstName', '')}".strip(", ")
        return Person(name, about["ID"], about.get("SIS User ID", ""), about.get("SIS Login ID", ""))

    def kept(self, row: int, column: int) -> str:
        """Return why a cell is not ours to fill; empty if it is."""
        value = self.table.rows[row][column].strip()
        return f"Canvas says {value}" if value.upper() in NOT_OURS else ""

    def assignments(self) -> list[Assignment]:
        """Return the columns that can be filled, from left to right."""
        header = self.header
        first = 1 + max(header.index(name) for name in _ABOUT_STUDENTS if name in header)
        possible = next((row for row in self.table.rows[1:] if _says_points(row)), None)
        columns = []
        for index, name in enumerate(header[first:], first):
            points = possible[index].strip() if possible else ""
            # The words in brackets are translated, the brackets are not.
            match = _TITLE_AND_ID.fullmatch(name.strip())
            # A column of notes has neither an id nor points.
            ours = match is not None or possible is None or points != ""
            if ours and name.strip() and not _COMPUTED.search(name) and not points.startswith("("):
                title, number = (match["title"], match["id"]) if match else (name.strip(), "")
                columns.append(Assignment(index, name, title, number, _points(points)))
        return columns

    def assignment(self, *names: str) -> Assignment:
        """Return the one assignment whose column, title or id is one of `names`; capital letters do not matter.

        Raises:
            UnknownName: none is.
            BadGradebook: several are.
        """
        wanted = {name.strip().casefold() for name in names} - {""}
        every = self.assignments()
        exact = [column for column in every if column.header.strip().casefold() in wanted]
        found = exact or [column for column in every if wanted & {column.title.casefold(), column.id}]
        if len(found) > 1:
            several = ", ".join(repr(column.header) for column in found)
            raise BadGradebook(f"several columns are called {names[0]!r}: say which with --assignment: {several}")
        if found:
            return found[0]
        raise UnknownName.of("assignment of the gradebook", names[0], [column.header for column in every])


def read_gradebook(path: Path) -> Gradebook:
    """Return the gradebook in a file that Canvas exported.

    Raises:
        UserError: it cannot be read, or is something else.
    """
    try:
        return gradebook_of(read_table(path))
    except BadGradebook as error:
        raise BadGradebook(f"{path}: {error}") from error


def gradebook_of(table: Table) -> Gradebook:
    """Return the gradebook in a table.

    Raises:
        BadGradebook: its first row is not that of a gradebook.
    """
    header = table.rows[0].values() if table.rows else []
    if "ID" not in header or not ("Student" in header or {"LastName", "FirstName"} <= set(header)):
        raise BadGradebook(
            f"the first line begins {', '.join(header[:3])!r}, a Canvas gradebook begins 'Student, ID': "
            "take the file as Canvas's Gradebook exports it (Export, Export Entire Gradebook)"
        )
    for name in ("ID", "Student"):
        if header.count(name) > 1:
            raise BadGradebook(f"two columns are called {name!r}: export the gradebook again")
    rows = (index for index, row in enumerate(table.rows) if index and not _says_points(row) and not _empty(row))
    return Gradebook(table, tuple(rows))


def roster_rows(gradebook: Gradebook) -> dict[int, list[str]]:
    """Return the gradebook's students as rows of a roster, by their lines: id, name, section, the three Canvas ids."""
    lines = {}
    section = gradebook.header.index("Section") if "Section" in gradebook.header else None
    for index in gradebook.student_rows:
        person, row = gradebook.person(index), gradebook.table.rows[index]
        if person.name == TEST_STUDENT:
            continue
        ids = [person.canvas_id, person.sis_user_id, person.sis_login_id]
        first = person.sis_login_id or person.sis_user_id or person.canvas_id
        lines[row.line] = [first, person.name, "" if section is None else row[section], *ids]
    return lines


def _says_points(row: Row) -> bool:
    return "Points Possible" in row[0]


def _empty(row: Row) -> bool:
    return all(re.fullmatch(r"\s*(muted|manual posting.*)?\s*", value, re.I) for value in row.values())


def _points(text: str) -> float | None:
    """Return the points in a cell; in some languages they have a decimal comma."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None
