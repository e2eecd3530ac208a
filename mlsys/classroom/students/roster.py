"""The roster: one CSV file of students, their names in the LMS, due times, extensions, rules on late work, and groups.

It is made to be edited in a spreadsheet: one row per student, and rows with the id `*` for what holds for a section or
for everybody. An empty cell takes the value of the section's row, then of everybody's:

    id,   name,         section, canvas id, sis user id, sis login id, time zone,        late days, due tiling
    *,    ,             ,        ,          ,            ,             Europe/Berlin,    3,         2026-11-20 23:59
    *,    ,             B,       ,          ,            ,             ,                 ,          2026-11-22 23:59
    ann,  "Baker, Ann", A,       12345,     S101,        ab1@uni.edu,  ,                 ,
    bob,  Bob Carter,   B,       12346,     S102,        bc2@uni.edu,  America/New_York, 5,         2026-11-27 18:00

- `id` is the name that the course uses: of files, records and feedback. `id` and `name` are required columns.
- `canvas id`, `sis user id` and `sis login id` are Canvas's columns ID, SIS User ID and SIS Login ID.
- `github login` names the student's repositories in GitHub Classroom.
- `due LAB` is the due time of that lab; in a student's row it is an extension. The time is on the clock of the row's
  time zone (an IANA name), or exact with an offset: `2026-11-20 23:59+01:00`.
- `late days` is how many days late a student may be in all labs together; every day begun costs one.
- `grace minutes` is how long after the due time a submission still counts as in time.
- `late percent` is the part of the points that each day takes off which no late day covers, such as `10`.
- `group LAB` is the name of a student's group at that lab: students of one name hand in once.
- `notes` is for people. Any other column is an error, so that no misspelt one is overlooked.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from mlsys.classroom.students.deadlines import BadTime, aware, parse_time, time_zone
from mlsys.errors import InvalidValue, UnknownName, UserError

MAX_ID_BYTES = 200
"""Bytes of a student's id in UTF-8: file systems allow 255 for a name, and names such as `ID.json.part` are made."""
MAX_ID = 100
"""Characters of a student's id."""
_ALSO_IN_IDS = " .@+-_"
_EXACT = re.compile(r"(Z|[+-]\d\d:\d\d)$")


class BadRoster(InvalidValue):
    """A roster that cannot be read; the message names the line, what is wrong there, and what to do."""


def id_fault(text: str) -> str:
    """Return what keeps `text` from being a student's id, which names files and folders; empty where nothing does.

    >>> id_fault("ab1@uni.edu"), id_fault("../ann")
    ('', 'use letters, digits, spaces and . @ + - _ only, the first a letter or digit')
    """
    # The letters of many scripts have accents and vowel signs that are characters of their own.
    kinds = [unicodedata.category(letter)[0] for letter in text]
    fine = all(kind in "LMN" or letter in _ALSO_IN_IDS for kind, letter in zip(kinds, text, strict=True))
    if not fine or not text or not (kinds[0] in "LN" or text[0] == "_"):
        return "use letters, digits, spaces and . @ + - _ only, the first a letter or digit"
    if len(text) > MAX_ID:
        return f"it has {len(text)} characters, the limit is {MAX_ID}: shorten it"
    size = len(text.encode())
    return f"it takes {size} bytes, the limit is {MAX_ID_BYTES}: shorten it" if size > MAX_ID_BYTES else ""


def as_a_disk_sees(text: str) -> str:
    """Return an id without what some file systems cannot tell apart: capitals, accents, spaces and dots at the end.

    >>> as_a_disk_sees("Ann") == as_a_disk_sees("ann ")
    True
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).rstrip(" .")


@dataclass(frozen=True)
class Student:
    """One student: the course's id, the names that an LMS knows, due times by lab, and late days for all labs."""

    id: str
    name: str = ""
    section: str = ""
    canvas_id: str = ""
    sis_user_id: str = ""
    sis_login_id: str = ""
    late_days: int = 0
    due: Mapping[str, datetime] = field(default_factory=dict)
    github_login: str = ""
    grace_minutes: int = 0
    late_percent: float = 0.0
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Roster:
    """The students by id, the labs with a column of due times or of groups, and the time zone of everybody's row.

    `path` is the file that it was read from, if any.
    """

    students: Mapping[str, Student]
    labs: tuple[str, ...] = ()
    zone: ZoneInfo | None = None
    labs_of_groups: tuple[str, ...] = ()
    path: Path | None = None

    def check_labs(self, known: Collection[str]) -> None:
        """Make sure that every column of due times or groups is that of a lab of the course.

        Raises:
            BadRoster: one is not; what it says would hold for nothing.
        """
        where = f"{self.path}: column" if self.path else "the roster's column"
        for kind, labs in ((_DUE, self.labs), (_GROUP, self.labs_of_groups)):
            for lab in labs:
                if lab not in known:
                    raise BadRoster(f"{where} '{kind}{lab}': {UnknownName.of('lab', lab, known)}")

    def members(self, student: str, lab: str) -> tuple[str, ...]:
        """Return the students of a student's group at a lab, in the order of the roster; only the student without one.

        Raises:
            UnknownName: unknown student.
        """
        group = self.student(student).groups.get(lab)
        if group is None:
            return (student,)
        return tuple(one.id for one in self.students.values() if one.groups.get(lab) == group)

    def student(self, student: str) -> Student:
        """Return the student with this id.

        Raises:
            UnknownName: nobody has it.
        """
        if student not in self.students:
            raise UnknownName.of("student", student, self.students)
        return self.students[student]

    def due(self, student: str, lab: str) -> datetime:
        """Return when `lab` is due for `student`, extension included, in the time zone of the row that says so.

        Raises:
            UnknownName: unknown student, or a lab without column.
            BadRoster: no row gives this student a due time.
        """
        if lab not in self.labs:
            raise UnknownName.of("lab in the roster", lab, self.labs)
        due = self.student(student).due.get(lab)
        if due is None:
            raise BadRoster(f"{student} has no due time for {lab}: fill the column 'due {lab}' in the row '*'")
        return due


EVERYBODY = "*"
LMS_IDS = ("canvas id", "sis user id", "sis login id", "github login")
COLUMNS = ("id", "name", "section", *LMS_IDS, "time zone", "late days", "grace minutes", "late percent", "notes")

_DUE, _GROUP = "due ", "group "
MAX_TERM = timedelta(days=250)
"""How far a due time may lie from the middle one of the roster."""


def read_roster(path: Path) -> Roster:
    """Return the roster in `path`.

    Raises:
        UserError: the file cannot be read, or something in it is wrong; the message names file, line, value and cure.
        UnknownName: a column that no roster has.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name the roster's CSV file") from error
    except UnicodeDecodeError as error:
        raise BadRoster(f"{path} is not UTF-8 text: save it from the spreadsheet as 'CSV UTF-8'") from error
    try:
        return replace(parse_roster(text), path=path)
    except UnknownName as error:
        raise UnknownName(f"{path}: {error}") from error
    except (BadRoster, BadTime) as error:
        raise BadRoster(f"{path}: {error}") from error


def parse_roster(text: str) -> Roster:
    """Return the roster in the text of a CSV file, its cells separated by commas, semicolons or tabs.

    Raises:
        BadRoster: something in it is wrong.
        UnknownName: a column that no roster has.
    """
    first = text.split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True, skipinitialspace=True)
    rows: list[_Row] = []
    try:
        header = [_column(cell) for cell in next(reader, [])]
        _check_header(header)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(_Row.of(header, cells, reader.line_num))
    except csv.Error as error:
        raise BadRoster(f"line {reader.line_num}: {error}; check the quotes of that line") from error
    labs, of_groups = (
        tuple(name.removeprefix(kind) for name in header if name.startswith(kind)) for kind in (_DUE, _GROUP)
    )
    general: dict[str, _Row] = {}
    students: dict[str, _Row] = {}
    for row in rows:
        key = row["section"] if row["id"] == EVERYBODY else row["id"]
        known = general if row["id"] == EVERYBODY else students
        if key in known:
            raise row.wrong("id", f"is in line {known[key].line} already: keep one of the two")
        if known is students and (fault := id_fault(key)):
            raise row.wrong("id", f"is no id: {fault}")
        known[key] = row
    _check_folders(students)
    sections = {row["section"] for row in students.values()} | {""}
    for row in general.values():
        if row["section"] not in sections:
            raise row.wrong("section", f"is the section of no student; there are: {', '.join(sorted(sections - {''}))}")
        for lab in of_groups:
            if row[_GROUP + lab]:
                raise row.wrong(_GROUP + lab, "is a group for everybody: enter groups in the rows of students")
    _check_lms_ids(students.values())
    _check_term([*general.values(), *students.values()], general, labs)
    by_id = {key: _student(row, general, labs, of_groups) for key, row in students.items()}
    everybody = general.get("")
    return Roster(by_id, labs, _zone(everybody) if everybody and everybody["time zone"] else None, of_groups)


@dataclass(frozen=True, eq=False)
class _Row:
    cells: Mapping[str, str]
    line: int

    @classmethod
    def of(cls, header: list[str], cells: list[str], line: int) -> "_Row":
        if any(_plain(cell) for cell in cells[len(header) :]):
            raise BadRoster(
                f"line {line} has {len(cells)} cells, the first line names {len(header)} columns: put quotes around a "
                'cell with a comma in it, as in "Baker, Ann"'
            )
        return cls(dict(zip(header, map(_plain, cells), strict=False)), line)

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")

    def wrong(self, column: str, what: str) -> BadRoster:
        return BadRoster(f"line {self.line}, column '{column}': {self[column]!r} {what}")


def _plain(cell: str) -> str:
    # The same name may come from a file system that splits letters and accents.
    return unicodedata.normalize("NFC", " ".join(cell.split()))


def _column(cell: str) -> str:
    name = _plain(cell)
    for kind in (_DUE, _GROUP):
        if name.lower().startswith(kind):
            return kind + name[len(kind) :]
    return name.lower().replace("_", " ")


def _check_header(header: list[str]) -> None:
    for column in header:
        if column and column not in COLUMNS and not column.startswith((_DUE, _GROUP)):
            raise UnknownName.of("column of the roster", column, [*COLUMNS, f"{_DUE}LAB", f"{_GROUP}LAB"])
        if column and header.count(column) > 1:
            raise BadRoster(f"line 1: two columns are called '{column}': keep one of both")
    for column in ("id", "name"):
        if column not in header:
            raise BadRoster(f"line 1: there is no column '{column}': the first line names columns; needed: id, name")


def _check_folders(students: Mapping[str, _Row]) -> None:
    """Refuse ids that one disk tells apart and another does not, such as `Ann` and `ann`, for they name folders."""
    seen: dict[str, _Row] = {}
    for key, row in students.items():
        other = seen.setdefault(as_a_disk_sees(key), row)
        if other is not row:
            raise row.wrong("id", f"and {other['id']!r} in line {other.line} are one folder on some disks: change one")


def _check_lms_ids(rows: Collection[_Row]) -> None:
    for column in LMS_IDS:
        seen: dict[str, int] = {}
        for row in rows:
            value = row[column]
            if re.fullmatch(r"\d([.,]\d+)?E\+\d+", value):
                raise row.wrong(
                    column, "was shortened by a spreadsheet: format the column as text, enter the ids again"
                )
            if value and seen.setdefault(value, row.line) != row.line:
                raise row.wrong(column, f"is in line {seen[value]} already: two students cannot share it")


def _check_term(rows: Iterable[_Row], general: Mapping[str, _Row], labs: tuple[str, ...]) -> None:
    """Refuse a due time that is far from all others, as one is whose day and month a spreadsheet has exchanged.

    A time with an offset stays: no spreadsheet writes one.
    """
    times = {(row, lab): time for row in rows for lab in labs if (time := _due(row, _above(row, general), _DUE + lab))}
    if len(times) < 2:
        return
    middle = sorted(aware(time, "due") for time in times.values())[(len(times) - 1) // 2]
    for (row, lab), time in times.items():
        if abs(aware(time, "due") - middle) <= MAX_TERM or _EXACT.search(row[_DUE + lab]):
            continue
        turned = f", such as {time.replace(month=time.day, day=time.month):%Y-%m-%d %H:%M}" if time.day <= 12 else ""
        raise row.wrong(
            _DUE + lab,
            f"is {abs(aware(time, 'due') - middle).days} days from {middle:%Y-%m-%d}, the middle of all due times: "
            f"were day and month exchanged by a spreadsheet? Correct it{turned}; if it is right, add the distance from "
            f"UTC: {time:%Y-%m-%d %H:%M}{time.isoformat()[-6:]}",
        )


def _above(row: _Row, general: Mapping[str, _Row]) -> list[_Row]:
    """Return a row and those that it takes values from, from the most particular to the most general."""
    keys = ("",) if row["id"] == EVERYBODY else dict.fromkeys((row["section"], ""))
    return [row, *(general[key] for key in keys if key in general and general[key] is not row)]


def _student(row: _Row, general: Mapping[str, _Row], labs: tuple[str, ...], of_groups: tuple[str, ...]) -> Student:
    rows = _above(row, general)
    due = {}
    for lab in labs:
        times = [(source, time) for source in rows if (time := _due(source, rows, _DUE + lab))]
        if times:
            due[lab] = times[0][1]
        if len(times) > 1 and times[0][0] is row and aware(times[0][1], "due") < aware(times[1][1], "due"):
            raise row.wrong(
                _DUE + lab,
                f"is earlier than {times[1][1]:%Y-%m-%d %H:%M %Z} in line {times[1][0].line}: an extension is later",
            )
    canvas_id, sis_user_id, sis_login_id, github = (row[column] for column in LMS_IDS)
    ids = (row["id"], row["name"], row["section"], canvas_id, sis_user_id, sis_login_id)
    return Student(
        *ids,
        late_days=_count(rows, "late days", "days"),
        due=due,
        github_login=github,
        grace_minutes=_count(rows, "grace minutes", "minutes"),
        late_percent=_percent(rows),
        groups={lab: row[_GROUP + lab] for lab in of_groups if row[_GROUP + lab]},
    )


def _said(rows: list[_Row], column: str) -> tuple[_Row, str]:
    """Return the row that says something in a column, and what; the first row and nothing if none does."""
    return next(((source, source[column]) for source in rows if source[column]), (rows[0], ""))


def _count(rows: list[_Row], column: str, what: str) -> int:
    source, text = _said(rows, column)
    if not re.fullmatch(r"\d{0,4}", text, re.ASCII):
        raise source.wrong(column, f"is no number of {what}: write 0, 1, 2, ...")
    return int(text or 0)


def _percent(rows: list[_Row]) -> float:
    source, text = _said(rows, "late percent")
    if not re.fullmatch(r"(\d{1,3}([.,]\d{1,2})?)? ?%?", text, re.ASCII) or text.strip() == "%":
        raise source.wrong("late percent", "is no percentage: write 10 if a late day takes off ten percent")
    value = float(text.rstrip("% ").replace(",", ".") or 0)
    if value > 100:
        raise source.wrong("late percent", "is more than all points: write 100 or less")
    if 0 < value < 1 and "%" not in text:
        raise source.wrong("late percent", f"is less than one percent: write {100 * value:g} for {100 * value:g}%")
    return value


def _due(source: _Row, rows: list[_Row], column: str) -> datetime | None:
    if not source[column]:
        return None
    # A time is on the clock of its own row, or of the more general ones.
    named = next((row for row in rows[rows.index(source) :] if row["time zone"]), None)
    try:
        return parse_time(source[column], _zone(named) if named else None)
    except BadTime as error:
        cure = "" if named else ", or fill the column 'time zone' of the row '*'"
        raise BadRoster(f"line {source.line}, column '{column}': {error}{cure}") from error


def _zone(row: _Row) -> ZoneInfo:
    try:
        return time_zone(row["time zone"])
    except BadTime as error:
        raise BadRoster(f"line {row.line}, column 'time zone': {error}") from error
