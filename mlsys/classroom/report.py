"""What `mlsys grade` shows and writes: students by question, questions summed up, and one CSV row for each of both."""

import csv
import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from mlsys.classroom.intake.collect import Collected
from mlsys.classroom.intake.layouts import Ignored
from mlsys.classroom.lms.csv_file import guarded
from mlsys.classroom.store.record import LATE, MARKED, REFUSED, WAITING, QuestionRecord, Record
from mlsys.classroom.students.late import how_late
from mlsys.core.files import write_atomically
from mlsys.course.tree import CourseTree

COLUMNS = ("student", "question", "verdict", "points", "max_points", "waiting", "sandboxed", "message")
NO_SANDBOX = "graded without the sandbox"
_COLORS = {
    "passed": "green",
    MARKED: "green",
    "slow": "yellow",
    "mutants survive": "yellow",
    "not implemented": "yellow",
} | dict.fromkeys(WAITING, "cyan")

_SHORT = {
    "wrong answer": "wrong",
    "out of bounds": "oob",
    "not implemented": "todo",
    "error": "error",
    "crashed": "crash",
    "timed out": "time",
    "out of memory": "mem",
    "not a kernel": "nokrn",
    "suspicious": "susp",
    "needs review": "mark",
    "needs gpu": "gpu",
    REFUSED: "-",
}
"""Words for verdicts in a narrow table; an answer that has points is shown by them."""
_SHORT_HEAD = 6


def table(title: str, records: Iterable[Record], width: int | None = None) -> Group:
    """Return a table with a row per student: verdict and points of each question, the sum, and the points that wait.

    Args:
        title: above it.
        records: of the students.
        width: characters in a line. Where the verdicts do not fit, short words stand for them and are explained below;
            where these do not fit either, some questions come in a second table. None if there is room.
    """
    records = list(records)
    names = [question.question for question in records[0].questions] if records else []
    whole = _table(title, records, names, short=False)
    if width is None or _width(whole) <= width:
        return Group(whole)
    parts: list[Table] = []
    while names:
        count = len(names)
        while count > 1 and _width(_table(title, records, names[:count], short=True)) > width:
            count -= 1
        parts.append(_table(title if not parts else "", records, names[:count], short=True))
        names = names[count:]
    found = {question.verdict for record in records for question in record.questions}
    words = ", ".join(f"{word} {verdict}" for verdict, word in _SHORT.items() if verdict in found - {word})
    return Group(*parts, Text(f"A number: points of an answer that passed, has a part of them, or was marked; {words}"))


def _width(part: Table) -> int:
    return Measurement.get(Console(width=10_000), Console(width=10_000).options, part).maximum


def _table(title: str, records: list[Record], names: list[str], *, short: bool) -> Table:
    # Without borders and with little padding a lab of many questions stays narrow.
    result = Table(title=title, header_style="bold", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    result.show_edge = result.pad_edge = False
    result.add_column("student", no_wrap=True)
    most = {question.question: question.max_points for question in records[0].questions} if records else {}
    for name in names:
        head = f"{name if len(name) <= _SHORT_HEAD else name[: _SHORT_HEAD - 1] + '.'}\n/{most[name]:g}"
        result.add_column(head if short else f"{name} ({most[name]:g})", no_wrap=short)
    result.add_column("points", justify="right", no_wrap=True)
    result.add_column("wait", justify="right", no_wrap=True)
    for record in records:
        waiting = sum(question.waiting for question in record.questions)
        of = {question.question: question for question in record.questions}
        cells = (_cell(of[name], short=short) if name in of else Text() for name in names)
        result.add_row(Text(record.student), *cells, f"{round(record.points, 2):g}", f"{waiting:g}" if waiting else "")
    return result


def reasons(records: Iterable[Record]) -> Table:
    """Return a list of students with what there is to say: the refusal, what went wrong, what was repaired."""
    result = Table.grid(padding=(0, 2))
    result.add_column(no_wrap=True)
    result.add_column()
    for record in records:
        if text := why(record):
            result.add_row(Text(record.student, style="bold"), Text(text))
    return result


def _cell(question: QuestionRecord, *, short: bool) -> Text:
    style = _COLORS.get(question.verdict, "red")
    if short:
        return Text(_SHORT.get(question.verdict, f"{round(question.points, 2):g}"), style=style)
    points = "" if question.waiting or not question.points else f" {round(question.points, 2):g}"
    return Text(f"{question.verdict}{points}", style=style)


def why(record: Record) -> str:
    """Say what keeps a student from full points, in a line per question: nothing where the verdict alone says it."""
    if record.refused:
        return f"refused: {safe(record.refused)}"
    silent = ("passed", MARKED, "not implemented", *WAITING)
    by_reason: dict[str, list[str]] = {}
    for question in record.questions:
        if question.verdict not in silent and question.message:
            by_reason.setdefault(first_line(question.message), []).append(question.question)
    lines = [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]
    lines += [f"{LATE}: {record.penalty:g} points are taken off"] if record.penalty else []
    lines += [] if record.sandboxed else [NO_SANDBOX]
    return "\n".join([*lines, *(f"repaired: {repair}" for repair in record.repairs)])


def by_question(records: Iterable[Record]) -> Table:
    """Return a table with a row per question: attempts, how many passed, median points, the commonest verdict.

    The median is over those who answered and whose points do not wait.
    """
    result = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
    result.show_edge = result.pad_edge = False
    for column in ("question", "attempts", "passed", "median points", "of", "commonest verdict"):
        result.add_column(column, justify="left" if column in ("question", "commonest verdict") else "right")
    found: dict[str, list[QuestionRecord]] = {}
    for record in records:
        for question in record.questions:
            found.setdefault(question.question, []).append(question)
    for name, questions in found.items():
        tried = [question for question in questions if question.verdict not in (REFUSED, "not implemented")]
        points = [question.points for question in tried if not question.waiting]
        passed = sum(question.verdict == "passed" for question in tried)
        verdicts = Counter(question.verdict for question in questions)
        middle = f"{round(median(points), 2):g}" if points else ""
        (verdict, count), *_ = verdicts.most_common(1)
        cells = (name, str(len(tried)), str(passed), middle, f"{questions[0].max_points:g}", f"{verdict} ({count})")
        result.add_row(*(Text(cell) for cell in cells))
    return result


def arrivals(collected: Collected, tree: CourseTree, lab: str) -> Text:
    """Say who handed in late or not at all, and which files and names are nobody's."""
    lines = [f"missing: {safe(student)}: handed in nothing here" for student in collected.missing]
    for student, choices in collected.choices.items():
        late = choices[0].late if len(choices) == 1 else None
        if late and late.minutes:
            lines.append(f"late: {safe(student)}: {how_late(late.minutes)}: {late.cost}")
        elif any(choice.attempt and choice.attempt.late and choice.attempt.time is None for choice in choices):
            path = tree.attempts(lab, student).resolve()
            lines.append(
                f"late: {safe(student)}: Canvas marks it LATE; get its time with --times, or enter it in {path}"
            )
    lines += _unknown_times(collected)
    for kind, notes in (
        ("unknown", collected.unknown),
        ("ignored", collected.ignored),
        ("doubtful", collected.doubtful),
        ("not graded", collected.beside),
    ):
        lines += _notes(kind, notes)
    return Text("\n".join(lines))


def _unknown_times(collected: Collected) -> list[str]:
    """Say whose lateness would cost points if the time of handing in were known."""
    open_ones = [
        student
        for student, choices in collected.choices.items()
        if student in collected.ruled - collected.refused.keys()
        and any(one.attempt and not one.attempt.time for one in choices)
    ]
    if not open_ones:
        return []
    more = f" and {len(open_ones) - 10} more" if len(open_ones) > 10 else ""
    names = ", ".join(map(safe, open_ones[:10]))
    return [
        f"time unknown: {names}{more}: late days cost points, and nothing is taken off: name the times with --times"
    ]


def _notes(kind: str, notes: Iterable[Ignored], most: int = 10) -> list[str]:
    """Return a line for each note; of many with one reason the first few, and how many more there are."""
    by_reason: dict[str, list[str]] = {}
    for note in notes:
        by_reason.setdefault(note.reason, []).append(note.name)
    lines = []
    for reason, names in by_reason.items():
        lines += [f"{kind}: {safe(name)}: {safe(reason)}" for name in names[:most]]
        lines += [f"{kind}: {len(names) - most} more: {safe(reason)}"] if len(names) > most else []
    return lines


def other_versions(records: Iterable[Record], version: str) -> Text:
    """Say who handed in another version of the lab than the one that is released now."""
    found: dict[str, list[str]] = {}
    for record in records:
        if record.version not in ("", version):
            found.setdefault(record.version, []).append(record.student)
    now = f"(now {version}); graded with the newest tests where they fit"
    lines = (
        f"version: {', '.join(map(safe, students))}: handed in version {safe(other)[:40]} of the lab {now}"
        for other, students in sorted(found.items())
    )
    return Text("\n".join(lines))


def other_terms(records: Iterable[Record], term: str, lists: Path) -> Text:
    """Say whose submission is of an earlier term than the present one.

    Args:
        records: of the students.
        term: the present term.
        lists: the folder of the lists of attempts, in which people may correct a term.
    """
    found: dict[str, list[str]] = {}
    for record in records:
        if record.term != term and not record.refused:
            found.setdefault(record.term, []).append(record.student)
    lines = (
        f"term: {', '.join(map(safe, students))}: handed in in {f'term {other}' if other else 'no term'} (now {term}), "
        f"and graded with the lab of then. If the same file was handed in again now, enter the term in {lists}"
        for other, students in sorted(found.items())
    )
    return Text("\n".join(lines))


def first_line(message: str, width: int = 160) -> str:
    """Return the first line of a message, cut to `width` characters."""
    line = message.strip().split("\n")[0]
    return line if len(line) <= width else line[: width - 3] + "..."


def to_csv(records: Iterable[Record]) -> str:
    """Return the results as CSV text, one row per student and question, and one for what lateness takes off.

    The points of a student's rows add up to the score.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        for question in record.questions:
            row = (question.verdict, f"{question.points:g}", f"{question.max_points:g}", f"{question.waiting:g}")
            sandboxed = "yes" if record.sandboxed else "no"
            writer.writerow([safe(record.student), safe(question.question), *row, sandboxed, safe(question.message)])
        if record.penalty:
            why = record.handed_in.cost
            writer.writerow([safe(record.student), LATE, LATE, f"{-record.penalty:g}", "0", "0", sandboxed, why])
    return out.getvalue()


def safe(text: str) -> str:
    r"""Return `text` on one line that no spreadsheet takes for a formula and that tells a terminal nothing.

    >>> safe('=HYPERLINK("x")'), safe("fine")
    ('\'=HYPERLINK("x")', 'fine')
    """
    return guarded("".join(character if character.isprintable() else "?" for character in " ".join(text.split())))


def write_csv(records: Iterable[Record], path: Path) -> None:
    """Write `to_csv` to `path`.

    Raises:
        UserError: the disk is full, or the folder cannot be written.
    """
    write_atomically(path, to_csv(records).encode())
