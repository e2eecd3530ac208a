"""A CSV file with its cells as they were written: what is not changed is written back byte for byte.

A spreadsheet runs a cell that begins with one of `= + - @`. It may split a file at commas, semicolons or tabs, whatever
it was written with, so a cell may become several: each piece between two of these counts, and its quotes do not protect
it.
"""

import re
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path

from mlsys.errors import InvalidValue, UserError

_PIECE = re.compile(r"[^,;\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_NUMBER = re.compile(r"[+-]?[0-9.,]+(e[+-]?[0-9]+)?%?", re.I)


class BadCsv(InvalidValue):
    """A file that is not CSV; the message names the line."""


@dataclass(frozen=True)
class Row:
    """One row: its cells with their quotes, what ends it, and the line that it begins in."""

    raw: tuple[str, ...]
    end: str
    line: int

    def __getitem__(self, index: int) -> str:
        """The value of a cell; a row that is too short goes on with empty ones."""
        cell = self.raw[index] if index < len(self.raw) else ""
        return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell

    def __len__(self) -> int:
        return len(self.raw)

    def values(self) -> list[str]:
        """Return the values of all cells."""
        return [self[index] for index in range(len(self))]


@dataclass(frozen=True)
class Table:
    """A CSV file: an optional byte order mark, the separator, the rows."""

    rows: tuple[Row, ...]
    separator: str = ","
    mark: str = ""

    def to_bytes(self) -> bytes:
        """Return the file, the same bytes as were read but for the cells that were changed."""
        return (self.mark + "".join(self.separator.join(row.raw) + row.end for row in self.rows)).encode()

    def with_cell(self, row: int, column: int, value: str) -> "Table":
        """Return the table with another value in one cell, in quotes if the cell had them or the value needs them.

        Raises:
            BadCsv: the row has no such cell, or a spreadsheet would take the value for a formula.
        """
        old = self.rows[row]
        if column >= len(old):
            raise BadCsv(f"line {old.line} has {len(old)} cells, cell {column + 1} is to be filled: export it again")
        if is_formula(value):
            raise BadCsv(f"{value!r} would be a formula in a spreadsheet and is not written")
        quoted = old.raw[column].startswith('"') or any(mark in value for mark in ('"', "\n", "\r", self.separator))
        cell = '"' + value.replace('"', '""') + '"' if quoted else value
        changed = replace(old, raw=(*old.raw[:column], cell, *old.raw[column + 1 :]))
        return replace(self, rows=(*self.rows[:row], changed, *self.rows[row + 1 :]))


def is_formula(value: str) -> bool:
    """Return whether a spreadsheet may take the cell, or a piece of it, for a formula; a number with a sign is none.

    >>> is_formula("=1+1"), is_formula("x;=1+1"), is_formula("-2.5"), is_formula("Baker, Ann")
    (True, True, False, False)
    """
    return guarded(value) != value


def formulas(table: Table) -> list[tuple[int, str]]:
    """Return line and text of each cell that a spreadsheet would take for a formula; a lone dash is none."""
    cells = ((row.line, value) for row in table.rows for value in row.values())
    return [(line, value) for line, value in cells if is_formula(value) and value.strip() != "-"]


def guarded(value: str) -> str:
    """Return the value with an apostrophe before each piece that would be a formula; with it, a spreadsheet shows text.

    >>> guarded("x;=1+1")
    "x;'=1+1"
    """
    if _NUMBER.fullmatch(value.strip()):
        return value
    return _PIECE.sub(lambda match: f"'{match[0]}" if _begins_formula(match[0]) else match[0], value)


def _begins_formula(piece: str) -> bool:
    # Quotes, spaces and marks that nobody sees may be left out by whoever reads the file.
    start = next((index for index, letter in enumerate(piece) if not _is_skipped(letter)), len(piece))
    sign = unicodedata.normalize("NFKC", piece[start : start + 1])  # also the full-width signs of East Asian text
    return sign[:1] in tuple("=+-@") and not _NUMBER.fullmatch(piece[start:].rstrip(' "'))


def _is_skipped(letter: str) -> bool:
    return letter == '"' or letter.isspace() or unicodedata.category(letter)[0] in "CZ"


def read_table(path: Path) -> Table:
    """Return the CSV file at `path`.

    Raises:
        UserError: it cannot be read, or is no CSV in UTF-8.
    """
    try:
        return parse_table(path.read_bytes().decode())
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a CSV file") from error
    except UnicodeDecodeError as error:
        raise BadCsv(
            f"{path} is not UTF-8 text: take the file as it was exported, or save it as 'CSV UTF-8'"
        ) from error
    except BadCsv as error:
        raise BadCsv(f"{path}: {error}") from error


def parse_table(text: str) -> Table:
    """Return the cells of a CSV file; the separator is the comma or semicolon that its first line has more of.

    Raises:
        BadCsv: quotes that do not close, or with text after them.

    >>> parse_table('a,"b, c"').rows[0].values()
    ['a', 'b, c']
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    position, line, first = len(mark), 1, text.split("\n", 1)[0]
    separator = ";" if first.count(";") > first.count(",") else ","
    rows: list[Row] = []
    # A cell in quotes, or one that does not begin with them; then what ends it.
    cell = re.compile(rf'("[^"]*(?:""[^"]*)*"|(?!")[^{separator}\r\n]*)({separator}|\r\n|\r|\n|\Z)')
    raw: list[str] = []
    while position < len(text) or raw:
        match = cell.match(text, position)
        if match is None:
            raise BadCsv(f"line {line}: a quote is not closed, or text follows it; correct the quotes in that line")
        raw.append(match[1])
        position = match.end()
        if match[2] != separator:
            rows.append(Row(tuple(raw), match[2], line))
            line += sum(map(_line_breaks, raw)) + 1
            raw = []
    return Table(tuple(rows), separator, mark)


def _line_breaks(text: str) -> int:
    return len(re.findall(r"\r\n|\r|\n", text))
