import csv
import io
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from mlsys.classroom.intake.collect import Collected
from mlsys.classroom.intake.layouts import Ignored
from mlsys.classroom.progress import tracked
from mlsys.classroom.report import arrivals, by_question, other_versions, reasons, safe, table, to_csv
from mlsys.classroom.store.record import REFUSED, QuestionRecord, Record
from mlsys.classroom.students.attempt_policy import Choice
from mlsys.classroom.students.history import Attempt, History
from mlsys.classroom.students.late import Late
from mlsys.course.tree import CourseTree
from mlsys.grading.verdicts import VERDICTS


def record(student: str, *questions: QuestionRecord, refused: str = "", repairs: tuple[str, ...] = ()) -> Record:
    return Record(student, "tiling", "1", "now", refused=refused, repairs=repairs, questions=questions)


def question(name: str, verdict: str, points: float, most: float, message: str = "") -> QuestionRecord:
    return QuestionRecord(name, "", f"{name}-test", verdict, points, most, message)


COURSE = CourseTree(Path("course"))
CLASS = [
    record("ann", question("a", "passed", 1, 1), question("e", "needs gpu", 0, 4, "no GPU")),
    record("bob", question("a", "wrong answer", 0, 1, "3 is not 4\nsecond line"), question("e", "slow", 2.5, 4, "x")),
    record("cy", question("a", REFUSED, 0, 1, "why"), question("e", REFUSED, 0, 4, "why"), refused="the file is empty"),
    record("di", question("a", "passed", 1, 1), question("e", "passed", 4, 4), repairs=("A cell was missing.",)),
]


def shown(renderable: object) -> list[list[str]]:
    console = Console(file=io.StringIO(), width=160)
    console.print(renderable)
    return [line.replace("│", " ").split() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def test_table_has_a_row_per_student_with_sums_and_waiting_points() -> None:
    rows = {row[0]: row[1:] for row in shown(table("t", CLASS)) if row and row[0] in ("ann", "bob", "cy", "di")}
    assert rows["ann"] == ["passed", "1", "needs", "gpu", "1", "4"]
    assert rows["bob"] == ["wrong", "answer", "slow", "2.5", "2.5"]
    assert rows["cy"] == ["refused", "refused", "0"]
    assert rows["di"] == ["passed", "1", "passed", "4", "5"]


VERDICT_WORDS = [*VERDICTS, REFUSED]


@pytest.mark.parametrize("width", [80, 140])
def test_in_a_narrow_terminal_no_cell_is_cut_and_words_can_be_told_apart(width: int) -> None:
    """The lab with the most questions, and ids as Canvas has them."""
    names = [*"abcdefghij", "challenge", "g-why", "gap"]
    rows = [
        record(
            f"student{number}@uni.edu",
            *(
                question(name, VERDICT_WORDS[(place + number) % len(VERDICT_WORDS)], (place + number) % 3 * 0.25, 12.5)
                for place, name in enumerate(names)
            ),
        )
        for number in range(len(VERDICT_WORDS))
    ]
    console = Console(file=io.StringIO(), width=width)
    console.print(table("A lab", rows, width))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert text.count("student3@uni.edu") == (2 if width == 80 else 1)
    legend = text[text.index("A number:") :]
    shown_by_points = ("passed", "slow", "mutants survive", "error")
    assert all(verdict in " ".join(legend.split()) for verdict in VERDICT_WORDS if verdict not in shown_by_points)
    cells = [line.split()[1:-1] for line in text.splitlines() if line.startswith("student0@")]
    words = [cell for line in cells for cell in line if not cell[0].isdigit()]
    assert len(set(words)) == len(words)


def test_reasons_name_refusals_faults_and_repairs_and_leave_out_the_rest() -> None:
    lines = [" ".join(row) for row in shown(reasons(CLASS))]
    assert lines == [
        "bob a: 3 is not 4",
        "e: x",
        "cy refused: the file is empty",
        "di repaired: A cell was missing.",
    ]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r@"])
def test_no_cell_of_the_csv_is_a_formula(start: str) -> None:
    hostile = record(
        f"{start}cmd", question("a", "error", 0, 1, f"{start}1+1"), question("e", "error", 0, 4, 'a"b,\nc')
    )
    rows = list(csv.reader(to_csv([hostile]).splitlines()))
    assert all(not cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for cell in row)
    assert rows[2][-1] == 'a"b, c'


def test_csv_counts_waiting_points_apart() -> None:
    rows = list(csv.DictReader(to_csv(CLASS).splitlines()))
    assert [(row["student"], row["points"], row["waiting"]) for row in rows[:3]] == [
        ("ann", "1", "0"),
        ("ann", "0", "4"),
        ("bob", "0", "0"),
    ]


def test_questions_are_summed_up_over_those_who_answered() -> None:
    more = [
        *CLASS,
        record("ed", question("a", "not implemented", 0, 1), question("e", "slow", 1, 4)),
        record("fi", question("a", "passed", 1, 1), question("e", "slow", 3.5, 4)),
    ]
    rows = {row[0]: row[1:] for row in shown(by_question(more)) if row and row[0] in ("a", "e")}
    # a: passed by ann, di, fi; wrong by bob; not tried by cy, ed. Points 1 0 1 1.
    assert rows["a"] == ["4", "3", "1", "1", "passed", "(3)"]
    # e: 2.5, 4, 1, 3.5 and one that waits: the median of four is 3.
    assert rows["e"] == ["5", "1", "3", "4", "slow", "(3)"]


def test_who_came_late_or_not_at_all_is_said_and_no_name_commands_the_terminal() -> None:
    late = Choice(Attempt("d", "x", "flat"), late=Late(1800, 2, 3, 10))
    collected = Collected(
        {"ann": (late,), "bob": (Choice(Attempt("e", "y", "flat")),)},
        {},
        unknown=(Ignored("\x1b[2Jzed", "nobody has its name"),),
        ignored=(Ignored("=1+1", "no notebook"),),
        doubtful=(Ignored("y", "its time is in the future"),),
        missing=("cy",),
    )
    assert arrivals(collected, COURSE, "tiling").plain.splitlines() == [
        "missing: cy: handed in nothing here",
        "late: ann: 1 d 6 h: it needs 2 late days, 3 were left, 1 after it",
        "unknown: ?[2Jzed: nobody has its name",
        "ignored: '=1+1: no notebook",
        "doubtful: y: its time is in the future",
    ]


def test_whose_time_is_missing_is_said_unless_the_submission_is_refused_anyway() -> None:
    choices = {
        "ann": (Choice(Attempt("d", "x", "flat")),),
        "bob": (Choice(Attempt("", "y.txt", "flat", refused="no notebook"), "no notebook"),),
    }
    collected = Collected(choices, {student: History() for student in choices}, ruled=frozenset(choices))
    assert arrivals(collected, COURSE, "tiling").plain == (
        "time unknown: ann: late days cost points, and nothing is taken off: name the times with --times"
    )


def test_many_files_that_are_nobodys_for_one_reason_do_not_hide_the_others() -> None:
    many = tuple(Ignored(f"data/{number}", "its name says no student") for number in range(5000))
    shown = arrivals(
        Collected({}, {}, ignored=(*many, Ignored("eve.ipynb", "in doubt"))), COURSE, "tiling"
    ).plain.splitlines()
    assert len(shown) == 12
    assert shown[10:] == ["ignored: 4990 more: its name says no student", "ignored: eve.ipynb: in doubt"]


def test_who_is_late_by_canvas_mark_alone_is_said_with_the_file_for_the_time(tmp_path: Path) -> None:
    late = Attempt("d", "carterbob_LATE_102_901_tiling.ipynb", "canvas", number=901, late=True)
    timed = replace(late, time=datetime(2026, 11, 21, tzinfo=UTC))
    choices = {"bc2@uni.edu": (Choice(late),), "ann": (Choice(timed),), "cy": (Choice(replace(late, late=False)),)}
    collected = Collected(choices, {student: History() for student in choices})
    path = tmp_path / "attempts" / "bc2@uni.edu" / "tiling" / "attempts.json"
    assert arrivals(collected, CourseTree(tmp_path), "tiling").plain == (
        f"late: bc2@uni.edu: Canvas marks it LATE; get its time with --times, or enter it in {path}"
    )


def test_what_was_graded_without_the_sandbox_is_marked() -> None:
    bare = Record("ann", "tiling", "1", "now", sandboxed=False, questions=(question("a", "passed", 1, 1),))
    assert [" ".join(row) for row in shown(reasons([bare]))] == ["ann graded without the sandbox"]
    assert [row["sandboxed"] for row in csv.DictReader(to_csv([bare, CLASS[0]]).splitlines())] == ["no", "yes", "yes"]


def test_the_time_left_follows_the_pace_so_far_however_slow() -> None:
    now, console = [1000.0], Console(file=io.StringIO(), force_terminal=True, width=120)
    with tracked("Grading", 10, console, clock=lambda: now[0]) as advance:
        for _ in range(4):
            now[0] += 90.0
            advance()
    assert "4/10" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "about 9 min left" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_log_file_gets_progress_and_time_left_from_the_first_line_on() -> None:
    now, console = [0.0], Console(file=io.StringIO(), width=80)
    with tracked("Grading [adding]", 40, console, clock=lambda: now[0], expected_s=400.0) as advance:
        for _ in range(40):
            now[0] += 5.0  # twice as fast as earlier runs say
            advance()
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[0] == "Grading [adding]: 0 of 40 done, about 7 min left"
    assert lines[1] == "Grading [adding]: 3 of 40 done, about 5 min left"
    assert lines[-1] == "Grading [adding]: 39 of 40 done, about 5 s left"
    assert len(lines) == 14


def test_without_history_nothing_is_said_about_the_time_left_before_something_is_done() -> None:
    now, console = [0.0], Console(file=io.StringIO(), width=80)
    with tracked("Grading", 2, console, clock=lambda: now[0]) as advance:
        now[0] += 60.0
        advance()
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "Grading: 0 of 2 done",
        "Grading: 1 of 2 done, about 60 s left",
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(
    "message",
    [
        'x;=HYPERLINK("http://evil.example")',
        "x,=1+1",
        "x\t@SUM(A1)",
        'x;"=1+1"',
        "x; \ufeff=1+1",
        "\uff1d1+1",
        "x;\uff0b1+1;\uff0d1+1;\uff201",
        "\ufeff=1",
        "\u00a0=1",
        'a";"=1',
        "-1+1",
        "\u200b@x",
    ],
)
def test_a_spreadsheet_that_splits_elsewhere_finds_no_formula(separator: str, message: str) -> None:
    text = to_csv([record("ann", question("a", "error", 0, 1, message))])
    # Some readers honour quotes, some do not.
    cells = [cell for row in csv.reader(text.splitlines(), delimiter=separator) for cell in row]
    cells += [cell for line in text.splitlines() for cell in line.split(separator)]
    for cell in cells:
        start = unicodedata.normalize("NFKC", cell.replace("\ufeff", "").replace("\u200b", "")).strip(' "')
        assert not start.startswith(("=", "+", "-", "@")), cell


def test_numbers_and_plain_words_stay_as_they_are() -> None:
    for text in ("-2.5", "+3", "-1e-05", "-40%", "expected 3, -2; +1", "a-b", "x = 1", "ann@uni.edu", "'=1"):
        assert safe(text) == text


def test_who_handed_in_another_version_is_listed_in_a_line() -> None:
    old = [replace(one, version="2") for one in CLASS[:2]] + [replace(CLASS[2], version="3"), CLASS[3]]
    assert other_versions(old, "3").plain.splitlines() == [
        "version: di: handed in version 1 of the lab (now 3); graded with the newest tests where they fit",
        "version: ann, bob: handed in version 2 of the lab (now 3); graded with the newest tests where they fit",
    ]
    assert not other_versions(CLASS, "1")
    assert other_versions([replace(CLASS[0], version="\x1b[2J")], "1").plain.isprintable()
