"""A roster to begin with: the students that a platform lists, and empty cells for what it does not say."""

from collections.abc import Iterable, Mapping, Sequence

from mlsys.classroom.lms.csv_file import guarded
from mlsys.classroom.students.roster import as_a_disk_sees
from mlsys.errors import InvalidValue

ABOUT = ("id", "name", "section", "canvas id", "sis user id", "sis login id")
"""Columns that a platform fills."""
RULES = ("time zone", "late days", "grace minutes", "late percent")
"""Columns for the rules on late work, which people fill."""


class ListedTwice(InvalidValue):
    """A login or another id that two lines of a platform's file have."""


def new_roster(rows: Mapping[int, Sequence[str]], labs: Iterable[str]) -> str:
    """Return the text of a roster.

    Args:
        rows: of the students, by their lines in the platform's file; each with the cells of `ABOUT`.
        labs: labs that get a column of due times, and one of groups.

    Raises:
        ListedTwice: two rows have one id, of the course or of the platform; a roster has room for one.
    """
    for column in ("sis login id", "canvas id", "sis user id", "id"):  # the id is one of the others: these say more
        _check_once(rows, column)
    open_ones = [*RULES, *(f"{what} {lab}" for lab in labs for what in ("due", "group"))]
    lines = [[*ABOUT, *open_ones], ["*", *("" for _ in (*ABOUT[1:], *open_ones))]]
    lines += [[*row, *("" for _ in open_ones)] for row in rows.values()]
    return "".join(",".join(map(_cell, line)) + "\n" for line in lines)


def _check_once(rows: Mapping[int, Sequence[str]], column: str) -> None:
    seen: dict[str, int] = {}
    for line, row in rows.items():
        value = row[ABOUT.index(column)]
        other = seen.setdefault(as_a_disk_sees(value), line)
        if value and other != line:
            names = " and ".join(rows[one][ABOUT.index("name")] for one in (other, line))
            raise ListedTwice(
                f"lines {other} and {line} ({names}) have the same {column}, {value!r}. If they are one student, take "
                "one of the lines out of a copy of the file, and name the copy; if they are two, correct it in the "
                "platform and export again"
            )


def _cell(value: str) -> str:
    # An apostrophe changes nobody's name: names are compared by their words.
    plain = guarded(" ".join(value.split()))
    return '"' + plain.replace('"', '""') + '"' if any(mark in plain for mark in ',;"') else plain
