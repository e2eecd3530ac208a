"""Moodle's grading worksheet, filled, and the bundles of feedback pages that platforms take back."""

import csv
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from mlsys.classroom.lms.bundles import Page, bundle
from mlsys.classroom.lms.csv_file import formulas
from mlsys.classroom.lms.fill import BLANK, FILLED, KEPT, NO_ROW, NO_SCORE, Score, fill
from mlsys.classroom.lms.moodle import BadWorksheet, Worksheet, read_worksheet, roster_rows
from mlsys.classroom.lms.new_roster import new_roster
from mlsys.classroom.students.history import Attempt
from mlsys.classroom.students.roster import Student, parse_roster

HEADER = (
    "Identifier,Full name,Email address,Status,Grade,Maximum grade,Grade can be changed,Last modified (submission),"
    "Last modified (grade),Feedback comments"
)
ROWS = (
    'Participant 4711,"Ann Baker",ab1@uni.edu,Submitted,,10.00,Yes,"Friday, 20 November 2026, 11:58 PM",-,',
    'Participant 4712,Minji Kim,mkim1@uni.edu,Submitted,7.00,10.00,Yes,-,-,"said, ""well"""',
    "Participant 4713,Minji Kim,mkim2@uni.edu,Submitted,3.00,10.00,No,-,-,",
    "Participant 4714,Cy Dunn,cy@uni.edu,No submission,,10.00,Yes,-,-,",
    "Participant 4715,Eve Evans,eve@uni.edu,Submitted,5.00,10.00,Yes,-,-,",
)
TEXT = "\ufeff" + "\r\n".join([HEADER, *ROWS]) + "\r\n"
STUDENTS = {
    name: Student(name, full, sis_login_id=f"{name}@uni.edu")
    for name, full in {
        "ab1": "Baker, Ann",
        "mkim1": "Kim, Minji",
        "mkim2": "Kim, Minji",
        "cy": "Dunn, Cy",
        "eve": "Evans, Eve",
        "zoe": "Zoe",
    }.items()
}


@pytest.fixture
def worksheet(tmp_path: Path) -> Worksheet:
    path = tmp_path / "worksheet.csv"
    path.write_bytes(TEXT.encode())
    return read_worksheet(path)


def test_only_grades_change_and_everybody_is_accounted_for(worksheet: Worksheet) -> None:
    scores = [
        Score("ab1", 8.5, 10),
        Score("mkim1", 9, 10),
        Score("mkim2", 1, 10),
        Score("eve", None, 10, "4 points wait (needs gpu)"),
        Score("zoe", 2, 10),
    ]
    filled = fill(worksheet, worksheet.assignment(), scores, STUDENTS)
    expected = TEXT.replace("Submitted,,10.00", "Submitted,8.5,10.00").replace(",7.00,", ",9,").replace(",5.00,", ",,")
    assert filled.table.to_bytes() == expected.encode()
    assert formulas(filled.table) == []  # Moodle's dashes are none
    assert [note.who.split()[0] for note in filled.of(FILLED)] == ["ab1", "mkim1"]
    assert "cannot be changed" in filled.of(KEPT)[0].text
    assert [len(filled.of(kind)) for kind in (BLANK, NO_SCORE, NO_ROW)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Identifier", "Bezeichner", "choose English as your language"),
        ("cy@uni.edu,No submission,,10.00", "cy@uni.edu,No submission,,20.00", "several values"),
        ("10.00", "Good", "set the assignment's grade type to points"),
    ],
)
def test_what_is_no_worksheet_of_points_is_named_with_the_cure(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "worksheet.csv"
    path.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(BadWorksheet, match=message):
        read_worksheet(path).assignment()


def test_a_roster_begins_with_the_participants(worksheet: Worksheet) -> None:
    text = new_roster(roster_rows(worksheet), ["tiling"]).replace("*,,,,,,,,,,,", "*,,,,,,UTC,,,,2026-11-20 23:59,")
    roster = parse_roster(text)
    assert list(roster.students)[:2] == ["ab1@uni.edu", "mkim1@uni.edu"]
    assert roster.student("mkim2@uni.edu").sis_login_id == "mkim2@uni.edu"


# Pages back


def page(student: str, name: str, origin: str, **more: object) -> Page:
    attempt = Attempt("digest", name, origin, **more)  # type: ignore[arg-type]
    return Page(student, student.title(), f"{student}@uni.edu", "digest", [attempt], f"for {student}".encode())


def files_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def owner_in_canvas(name: str) -> tuple[str, str]:
    """Canvas's rule: of the words between underscores, the first two numbers are the user and the uploaded file."""
    user, upload, *_ = (word for word in name.split("_") if word.isdecimal())
    return user, upload


def test_canvas_gets_each_page_under_the_name_of_the_students_file() -> None:
    pages = [
        page("ann", "class/bakerann_LATE_101_900_tiling-1.ipynb", "canvas", number=900, canvas_id="101"),
        page("eve", "o_7_neil_104_903_tiling.ipynb", "canvas", number=903, canvas_id="104"),
        page("bob", "bob.ipynb", "flat"),
    ]
    made = bundle(pages, "tiling", "canvas")
    assert files_of(made.data) == {"bakerann_LATE_101_900_tiling-1.html": b"for ann"}
    assert owner_in_canvas("bakerann_LATE_101_900_tiling-1.html") == ("101", "900")
    assert dict(made.left_out) == {
        "eve": "Canvas would not know whose o_7_neil_104_903_tiling.ipynb is: attach the page in SpeedGrader",
        "bob": "what counts did not come from Canvas's download",
    }


def test_moodle_gets_the_folders_of_its_download() -> None:
    pages = [
        page("ann", "Ann Baker_4711_assignsubmission_file_/my work.ipynb", "moodle"),
        page("kim", "all/김민지_4712_assignsubmission_file_tiling.ipynb", "moodle"),
        page("bob", "bob.ipynb", "flat"),
    ]
    made = bundle(pages, "tiling", "moodle")
    assert files_of(made.data) == {
        "Ann Baker_4711_assignsubmission_file_/tiling.html": b"for ann",
        "김민지_4712_assignsubmission_file_/tiling.html": b"for kim",
    }
    # Moodle splits the folder at underscores: name, participant, kind of plugin, plugin.
    assert [name.split("/")[0].split("_", 4)[1:4] for name in files_of(made.data)] == [
        ["4711", "assignsubmission", "file"],
        ["4712", "assignsubmission", "file"],
    ]
    assert [student for student, _ in made.left_out] == ["bob"]


def test_a_file_of_a_group_goes_back_with_the_page_of_who_handed_it_in() -> None:
    of_bob = {"name": "carterbob_102_901_tiling.ipynb", "origin": "canvas", "number": 901, "canvas_id": "102"}
    in_canvas = [replace(page(student, **of_bob), canvas_id=own) for student, own in (("ann", "101"), ("bob", "102"))]
    made = bundle([*in_canvas, replace(page("cy", **of_bob), canvas_id="")], "tiling", "canvas")
    assert files_of(made.data) == {"carterbob_102_901_tiling.html": b"for bob"}
    assert [student for student, _ in made.left_out] == ["ann", "cy"]
    assert {reason for _, reason in made.left_out} == {
        "the group handed in one file, so one page goes back: that of bob, with the same points"
    }
    in_moodle = [page(student, "Bob_4711_assignsubmission_file_/tiling.ipynb", "moodle") for student in ("ann", "bob")]
    made = bundle(in_moodle, "tiling", "moodle")
    assert files_of(made.data) == {"Bob_4711_assignsubmission_file_/tiling.html": b"for bob"}
    assert [student for student, _ in made.left_out] == ["ann"]


def test_a_student_of_whom_nothing_counts_gets_the_page_that_says_why() -> None:
    late = Attempt("digest", "Ann Baker_4711_assignsubmission_file_/tiling.ipynb", "moodle")
    refused = Page("ann", "Ann", "", "", [late], b"too late")
    assert files_of(bundle([refused], "tiling", "moodle").data) == {
        "Ann Baker_4711_assignsubmission_file_/tiling.html": b"too late"
    }


def test_mail_gets_pages_and_a_list() -> None:
    no_address = Page("bob", "Bob", "", "digest", [], b"for bob")
    made = bundle([page("ann", "ann.ipynb", "flat"), no_address], "tiling", "mail")
    files = files_of(made.data)
    assert set(files) == {"ann.html", "mail.csv"}
    (row,) = csv.DictReader(files["mail.csv"].decode("utf-8-sig").splitlines())
    assert row == {"address": "ann@uni.edu", "name": "Ann", "student": "ann", "file": "ann.html"}
    assert (made.count, [student for student, _ in made.left_out]) == (1, ["bob"])
