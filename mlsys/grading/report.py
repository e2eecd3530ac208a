"""What `mlsys grade` shows and writes: students by question, and one CSV row for each of both."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from mlsys.grading.records import MARKED, WAITING, QuestionRecord, Record

COLUMNS = ("student", "question", "verdict", "points", "max_points", "waiting", "message")
_COLORS = {"passed": "green", MARKED: "green", "slow": "yellow", "not implemented": "yellow"} | dict.fromkeys(
    WAITING, "cyan"
)


def table(title: str, records: Iterable[Record]) -> Table:
    """A table with a row per student: verdict and points of each question, the sum, and the points that wait."""
    records = list(records)
    # Without borders and with little padding a lab of many questions stays narrow.
    result = Table(title=title, header_style="bold", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    result.show_edge = result.pad_edge = False
    result.add_column("student", no_wrap=True)
    for question in records[0].questions if records else ():
        result.add_column(f"{question.question} ({question.max_points:g})")
    result.add_column("points", justify="right", no_wrap=True)
    result.add_column("wait", justify="right", no_wrap=True)
    for record in records:
        points = sum(question.points for question in record.questions)
        waiting = sum(question.waiting for question in record.questions)
        cells = (_cell(question) for question in record.questions)
        result.add_row(Text(record.student), *cells, f"{points:g}", f"{waiting:g}" if waiting else "")
    return result


def reasons(records: Iterable[Record]) -> Table:
    """A list of the students with something to say about: the refusal, what went wrong, what was mended."""
    result = Table.grid(padding=(0, 2))
    result.add_column(no_wrap=True)
    result.add_column()
    for record in records:
        if text := why(record):
            result.add_row(Text(record.student, style="bold"), Text(text))
    return result


def _cell(question: QuestionRecord) -> Text:
    points = "" if question.waiting or not question.points else f" {question.points:g}"
    return Text(f"{question.verdict}{points}", style=_COLORS.get(question.verdict, "red"))


def why(record: Record) -> str:
    """What keeps a student from full points, in a line per question: nothing where the verdict alone says it."""
    if record.refused:
        return f"refused: {record.refused}"
    silent = ("passed", MARKED, "not implemented", *WAITING)
    by_reason: dict[str, list[str]] = {}
    for question in record.questions:
        if question.verdict not in silent and question.message:
            by_reason.setdefault(first_line(question.message), []).append(question.question)
    lines = [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]
    return "\n".join([*lines, *(f"mended: {repair}" for repair in record.repairs)])


def first_line(message: str, width: int = 160) -> str:
    """The first line of a message, cut to `width` characters."""
    line = message.strip().split("\n")[0]
    return line if len(line) <= width else line[: width - 3] + "..."


def to_csv(records: Iterable[Record]) -> str:
    """The results as CSV text, one row per student and question."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        for question in record.questions:
            row = (question.verdict, f"{question.points:g}", f"{question.max_points:g}", f"{question.waiting:g}")
            writer.writerow([safe(record.student), safe(question.question), *row, safe(question.message)])
    return out.getvalue()


def safe(text: str) -> str:
    r"""A cell that no spreadsheet takes for a formula, on one line.

    >>> safe('=HYPERLINK("x")'), safe("fine")
    ('\'=HYPERLINK("x")', 'fine')
    """
    line = " ".join(text.split())
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line


def write_csv(records: Iterable[Record], path: Path) -> None:
    """Write `to_csv` to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_csv(records), encoding="utf-8")
