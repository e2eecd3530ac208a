"""A roster to begin with: the students that a platform lists, and empty cells for what it does not say."""

from collections.abc import Iterable, Sequence

from mlsys.classroom.lms.csv_file import guarded

ABOUT = ("id", "name", "section", "canvas id", "sis user id", "sis login id")
"""Columns that a platform fills."""


def new_roster(rows: Iterable[Sequence[str]], labs: Iterable[str]) -> str:
    """Return the text of a roster.

    Args:
        rows: of the students, each with the cells of `ABOUT`.
        labs: labs that get a column of due times.
    """
    open_ones = ["time zone", "late days", *(f"due {lab}" for lab in labs)]
    lines = [[*ABOUT, *open_ones], ["*", *("" for _ in (*ABOUT[1:], *open_ones))]]
    lines += [[*row, *("" for _ in open_ones)] for row in rows]
    return "".join(",".join(map(_cell, line)) + "\n" for line in lines)


def _cell(value: str) -> str:
    # An apostrophe changes nobody's name: names are compared by their words.
    plain = guarded(" ".join(value.split()))
    return '"' + plain.replace('"', '""') + '"' if any(mark in plain for mark in ',;"') else plain
