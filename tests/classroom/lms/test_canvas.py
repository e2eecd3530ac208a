import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.classroom.lms.canvas import BadGradebook, Gradebook, gradebook_of, roster_rows
from mlsys.classroom.lms.csv_file import BadCsv, formulas, guarded, is_formula, parse_table
from mlsys.classroom.lms.fill import (
    BLANK,
    FILLED,
    KEPT,
    NO_ROW,
    NO_SCORE,
    Filled,
    PointsDiffer,
    Score,
    fill,
    score_of,
)
from mlsys.classroom.lms.new_roster import new_roster
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.students.identity import Person, find
from mlsys.classroom.students.roster import Student, parse_roster
from mlsys.errors import UnknownName

# In the form of lib/gradebook_exporter.rb of canvas-lms: computed columns, an assignment with hidden grades, a custom
# column, names with commas and quotes, a name that Canvas guards from spreadsheets, the test student last.
EXPORT = (
    'Student,ID,SIS User ID,SIS Login ID,Section,Notes,Tiling (4711),"Essay ""One"", part 1 (4712)",'
    "Assignments Current Score,Current Score,Final Score\r\n"
    ",,,,,,Manual Posting,,,,\r\n"
    "    Points Possible,,,,,,20.00,10.00,(read only),(read only),(read only)\r\n"
    '"Baker, Ann",101,S101,ab1@uni.edu,A and B,,,8.50,85.00,85.00,42.50\r\n'
    '"O\'Neil, Bob ""Bo""",102,S102,bo2@uni.edu,A,"late, ill",EX,,,,0.00\r\n'
    '"de la Cruz, José",103,S103,jc3@uni.edu,B,,"",N/A,,,0.00\r\n'
    '"=""=1+1, Eve""",104,S104,ee4@uni.edu,B,=2+2,12.00,,,,0.00\r\n'
    '"Green, Fay",105,,fg5@uni.edu,B,,,,,,0.00\r\n'
    '"Student, Test",999,,0d1e2f,A and B,,,,,,0.00\r\n'
)
STUDENTS = {
    "ann": Student("ann", "Ann Baker", canvas_id="101"),
    "bob": Student("bob", "Bob O'Neil", sis_user_id="S102"),
    "jose": Student("jose", "José de la Cruz"),
    "eve": Student("eve", "Eve", sis_login_id="ee4@uni.edu"),
    "zoe": Student("zoe", "Zoe Young", canvas_id="777"),
}


def gradebook(text: str = EXPORT) -> Gradebook:
    return gradebook_of(parse_table(text))


def filled(*scores: Score, text: str = EXPORT, scale: bool = False) -> Filled:
    book = gradebook(text)
    return fill(book, book.assignment("tiling"), scores, STUDENTS, scale=scale)


def cells(result: Filled, column: str = "Tiling (4711)") -> dict[str, str]:
    rows = list(csv.DictReader(io.StringIO(result.table.to_bytes().decode("utf-8-sig"), newline="")))
    return {row["ID"]: row[column] for row in rows if row["ID"]}


def test_without_grades_the_file_is_the_same_bytes() -> None:
    assert filled().table.to_bytes() == EXPORT.encode()


def test_only_the_one_cell_changes() -> None:
    out = filled(Score("ann", 17.5, 20)).table.to_bytes().decode()
    assert out == EXPORT.replace("A and B,,,8.50", "A and B,,17.5,8.50")


def test_missing_waiting_and_refused_scores_are_blank_and_never_zero() -> None:
    result = filled(
        Score("ann", None, 20, "4 points wait (needs gpu)"),
        Score("eve", None, 20, "refused: the file is empty"),
        Score("jose", 0.0, 20),
    )
    assert cells(result) == {"101": "", "102": "EX", "103": "0", "104": "", "105": "", "999": ""}
    assert [(note.who, note.text) for note in result.of(BLANK)] == [
        ("ann (Baker, Ann, line 4)", "4 points wait (needs gpu)"),
        ('eve (="=1+1, Eve", line 7)', "refused: the file is empty; it was 12.00"),
    ]


def test_excused_student_stays_excused() -> None:
    result = filled(Score("bob", 20, 20))
    assert result.table.to_bytes() == EXPORT.encode()
    assert [note.text for note in result.of(KEPT)] == ["Canvas says EX"]


def test_every_student_of_either_side_has_a_note() -> None:
    result = filled(Score("ann", 20, 20), Score("zoe", 3, 20), Score("stranger", None, 20, "refused: x"))
    assert {note.who for note in result.of(NO_ROW)} == {"zoe", "stranger"}
    assert [note.who.rpartition("line ")[2].strip(")") for note in result.of(NO_SCORE)] == ["8", "5", "6", "7"]
    assert len(result.of(FILLED)) == 1


def test_quotes_of_a_filled_cell_stay() -> None:
    assert b'B,,"19",N/A' in filled(Score("jose", 19, 20)).table.to_bytes()


def test_two_rows_of_one_student_are_listed_and_not_filled() -> None:
    twice = EXPORT + '"Baker, Ann",,S101,,A,,,,,,\r\n'
    text = twice.replace(",101,S101,", ",,S101,")
    result = filled(Score("ann", 20, 20), text=text)
    assert result.table.to_bytes() == text.encode()
    assert [note.who for note in result.of(NO_ROW)] == ["ann"]
    assert sum("lines 4 and 10 both fit ann" in note.text for note in result.of(NO_SCORE)) == 2


def test_other_points_possible_are_an_error_unless_scaled() -> None:
    with pytest.raises(PointsDiffer, match=r"ann has 5 of 10 points, the column 'Tiling \(4711\)' has 20 .*--scale"):
        filled(Score("ann", 5, 10))
    assert cells(filled(Score("ann", 5, 10), scale=True))["101"] == "10"
    assert cells(filled(Score("ann", 1, 30), scale=True))["101"] == "0.6667"


def test_waiting_points_make_the_whole_score_wait() -> None:
    def record(*questions: QuestionRecord, refused: str = "") -> Record:
        return Record("ann", "tiling", "1", "now", refused=refused, questions=questions)

    done = QuestionRecord("a", "", "a-test", "passed", 6, 6)
    speed = QuestionRecord("e", "", "e-speed", "needs gpu", 0, 4)
    assert score_of(record(done)) == Score("ann", 6, 6)
    assert score_of(record(done, speed)) == Score("ann", None, 10, "4 points wait (needs gpu)")
    assert score_of(record(done, speed.marked(3))) == Score("ann", 9, 10)
    assert score_of(record(QuestionRecord("a", "", "a", "refused", 0, 6), refused="empty")).points is None


def test_assignment_is_found_by_title_id_or_whole_name() -> None:
    book = gradebook()
    assert {book.assignment(name).index for name in ("tiling", "4711", "TILING (4711)")} == {6}
    assert book.assignment('Essay "One", part 1').points == 10
    with pytest.raises(UnknownName, match="did you mean 'Tiling"):
        book.assignment("tilling")


@pytest.mark.parametrize("name", ["Notes", "Current Score", "Final Score", "Assignments Current Score", "Section"])
def test_notes_computed_columns_and_those_about_students_cannot_be_filled(name: str) -> None:
    with pytest.raises(UnknownName, match="Known: Essay .*, Tiling"):
        gradebook().assignment(name)


def test_column_that_canvas_says_is_read_only_cannot_be_filled() -> None:
    book = gradebook(EXPORT.replace("Possible,,,,,,20.00", "Possible,,,,,(read only),20.00"))
    assert [column.title for column in book.assignments()] == ["Tiling", 'Essay "One", part 1']


def test_two_columns_of_one_title_have_to_be_told_apart() -> None:
    book = gradebook(EXPORT.replace("Notes,", "Tiling (1),", 1))
    with pytest.raises(BadGradebook, match=r"several columns.*'Tiling \(1\)', 'Tiling \(4711\)'"):
        book.assignment("tiling")
    assert book.assignment("tiling (4711)").id == "4711"


def test_semicolons_decimal_commas_byte_order_mark_and_split_names_are_canvas_too() -> None:
    text = (
        "\ufeffLastName;FirstName;ID;SIS Login ID;Section;Tiling (4711);Current Score\n"
        '    Points Possible;;;;;"20,00";(läs endast)\n'
        "Baker;Ann;101;ab1;A;;\n"
    )
    result = filled(Score("ann", 12.5, 20), text=text)
    assert result.table.to_bytes().decode() == text.replace("101;ab1;A;;", "101;ab1;A;12.5;")
    assert gradebook(text).assignment("tiling").points == 20


def test_formulas_of_others_are_pointed_out_and_stay() -> None:
    book = gradebook()
    assert formulas(book.table) == [(7, '="=1+1, Eve"'), (7, "=2+2")]
    assert b'"=""=1+1, Eve"""' in filled(Score("eve", 1, 20)).table.to_bytes()


@pytest.mark.parametrize(
    "value", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", " =1", "\t=1", "x;=1", "x\ty\t@z", "\uff1d1", "\ufeff=1"]
)
def test_no_formula_is_ever_written(value: str) -> None:
    assert is_formula(value)
    with pytest.raises(BadCsv, match="formula"):
        parse_table("a,b\n1,2\n").with_cell(1, 1, value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins '', a Canvas gradebook begins 'Student, ID'"),
        ("name,points\nann,3\n", "begins 'name, points'"),
        ("Student,ID,ID\n", "two columns are called 'ID'"),
    ],
)
def test_what_is_no_gradebook_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadGradebook, match=message):
        gradebook(text)


@pytest.mark.parametrize("text", ['a\nb,"c\nd,e\n', 'a\nb,"c"d\n'])
def test_broken_quotes_are_named_with_their_line(text: str) -> None:
    with pytest.raises(BadCsv, match="line 2: a quote"):
        parse_table(text)


def test_row_too_short_to_fill_is_an_error() -> None:
    with pytest.raises(BadCsv, match="line 3 has 4 cells"):
        filled(
            Score("ann", 1, 20),
            text='Student,ID,SIS Login ID,Section,Tiling (4711)\n    Points Possible,,,,20\n"Baker, Ann",101,ab1,A\n',
        )


def test_new_roster_of_a_gradebook_can_be_read_back() -> None:
    text = new_roster(roster_rows(gradebook()), ["tiling"])
    heading, everybody, *_ = csv.reader(io.StringIO(text))
    assert heading[6:] == ["time zone", "late days", "grace minutes", "late percent", "due tiling", "group tiling"]
    assert everybody == ["*", *[""] * 11]
    rules = "*,,,,,,Europe/Berlin,2,15,10,2026-11-20 23:59,\n"
    roster = parse_roster(text.replace(",".join(everybody) + "\n", rules))
    assert list(roster.students) == ["ab1@uni.edu", "bo2@uni.edu", "jc3@uni.edu", "ee4@uni.edu", "fg5@uni.edu"]
    jose = roster.student("jc3@uni.edu")
    assert (jose.name, jose.canvas_id, jose.late_days) == ("de la Cruz, José", "103", 2)
    assert (jose.grace_minutes, jose.late_percent) == (15, 10)
    assert not any(is_formula(cell) for row in csv.reader(io.StringIO(text)) for cell in row)
    book = gradebook()
    scores = [Score(student, 1, 20) for student in roster.students]
    assert not fill(book, book.assignment("tiling"), scores, roster.students).of(NO_ROW)


@pytest.mark.parametrize("name", ["x;=cmd", "Evans, =Eve", "\uff1dEve", 'E";"=Eve'])
def test_a_name_that_a_student_chose_is_no_formula_in_the_new_roster_and_still_hers(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    text = new_roster(roster_rows(gradebook(EXPORT.replace('"Green, Fay"', quoted))), ["tiling"])
    for separator in (",", ";", "\t"):
        cells = [cell for row in csv.reader(io.StringIO(text), delimiter=separator) for cell in row]
        assert not any(is_formula(cell) for cell in cells)
    fay = parse_roster(text).student("fg5@uni.edu")
    match = find(Person(name), [fay, Student("bob", "Bob")])
    assert match.student is fay


@given(st.text(st.sampled_from("=+-@;,\t\n \"'\ufeff\uff1dx1.e"), max_size=12))
def test_a_guarded_value_is_no_formula_and_says_the_same(value: str) -> None:
    guard = guarded(value)
    assert not is_formula(guard)
    assert guard.replace("'", "") == value.replace("'", "")
    assert guarded(guard) == guard
    assert (guard == value) == (not is_formula(value))


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)


@given(
    st.lists(st.lists(CELL, min_size=2, max_size=4), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.booleans(),
    st.booleans(),
)
def test_import_then_export_without_grades_is_identical(
    rows: list[list[str]], end: str, quoting: int, mark: bool, last_end: bool
) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    writer.writerows([["Student", "ID", "Section", "Tiling (1)"], *rows])
    text = ("\ufeff" if mark else "") + (out.getvalue() if last_end else out.getvalue().removesuffix(end))
    book = gradebook(text)
    assert book.table.to_bytes() == text.encode()
    assert fill(book, book.assignment("tiling"), [], {}).table.to_bytes() == text.encode()
    # Another reader finds the same cells.
    assert [row.values() for row in book.table.rows[1:]] == [row or [""] for row in rows]


@given(st.lists(st.one_of(st.none(), st.floats(0, 20)), min_size=1, max_size=12), st.booleans())
def test_each_score_stands_in_the_row_of_its_student_and_nowhere_else(points: list[float | None], quoted: bool) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL)
    writer.writerow(["Student", "ID", "Section", "Tiling (1)", "Other"])
    writer.writerows([f"Name{number}, Any", number, "A", "", "7"] for number in range(len(points)))
    students = {f"s{number}": Student(f"s{number}", canvas_id=str(number)) for number in range(len(points))}
    book = gradebook(out.getvalue())
    scores = [Score(f"s{number}", value, 20) for number, value in enumerate(points)]
    result = fill(book, book.assignment("tiling"), reversed(scores), students)
    rows = list(csv.DictReader(io.StringIO(result.table.to_bytes().decode(), newline="")))
    for row, value in zip(rows, points, strict=True):
        assert row["Tiling (1)"] == "" if value is None else abs(float(row["Tiling (1)"]) - value) <= 5e-5
        assert row["Other"] == "7"
