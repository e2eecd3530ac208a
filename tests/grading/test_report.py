import csv
import io

import pytest
from rich.console import Console

from mlsys.grading.records import REFUSED, QuestionRecord, Record
from mlsys.grading.report import reasons, table, to_csv


def record(student: str, *questions: QuestionRecord, refused: str = "", repairs: tuple[str, ...] = ()) -> Record:
    return Record(student, "tiling", "1", "now", refused=refused, repairs=repairs, questions=questions)


def question(name: str, verdict: str, points: float, most: float, message: str = "") -> QuestionRecord:
    return QuestionRecord(name, "", f"{name}-test", verdict, points, most, message)


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


def test_reasons_name_refusals_faults_and_repairs_and_leave_out_the_rest() -> None:
    lines = [" ".join(row) for row in shown(reasons(CLASS))]
    assert lines == [
        "bob a: 3 is not 4",
        "e: x",
        "cy refused: the file is empty",
        "di mended: A cell was missing.",
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
