"""Times of handing in, from the files that Canvas and Moodle export."""

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from mlsys.classroom.lms.hand_ins import BadHandIns, HandIns, parse_hand_ins, read_hand_ins
from mlsys.classroom.students.deadlines import BadTime
from mlsys.classroom.students.identity import Person
from mlsys.errors import UserError

BERLIN = ZoneInfo("Europe/Berlin")
WORKSHEET = (
    "\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\r\n"
    'Participant 4711,Minji Kim,kim1@uni.edu,Submitted,,100.00,Yes,"Friday, 20 November 2026, 11:58 PM",-,\r\n'
    "Participant 4712,Minji Kim,kim2@uni.edu,No submission,,100.00,Yes,-,-,\r\n"
)


def test_canvas_says_the_time_of_every_uploaded_file() -> None:
    """The form of Canvas's API, with the guard that it puts before JSON for a browser."""
    answer = [
        {
            "user_id": 101,
            "submitted_at": "2026-11-20T22:30:00Z",
            "attachments": [{"id": 910, "filename": "tiling-1.ipynb"}],
            "submission_history": [{"submitted_at": "2026-11-19T08:00:00Z", "attachments": [{"id": 900}]}],
        },
        {"user_id": 102, "submitted_at": None, "workflow_state": "unsubmitted"},
    ]
    found = HandIns(tuple(parse_hand_ins("while(1);" + json.dumps(answer))))
    ann = Person(canvas_id="101")
    assert found.time(ann, 900, ()) == datetime(2026, 11, 19, 8, tzinfo=UTC)
    assert found.time(ann, 910, ()) == datetime(2026, 11, 20, 22, 30, tzinfo=UTC)
    assert found.time(ann, 999, ()) is None


def test_moodles_worksheet_says_times_on_its_readers_clock_and_who_a_participant_is(tmp_path: Path) -> None:
    path = tmp_path / "worksheet.csv"
    path.write_text(WORKSHEET, encoding="utf-8")
    found = read_hand_ins([path], BERLIN)
    kim = Person("Minji Kim", moodle_id="4711")
    assert found.time(kim, None, ()) == datetime(2026, 11, 20, 22, 58, tzinfo=UTC)
    assert found.identified(kim).student == "kim1@uni.edu"
    assert found.time(Person("Minji Kim", moodle_id="4712"), None, ()) is None


@pytest.mark.parametrize(
    "text",
    [
        "Friday, 20 November 2026, 11:58 PM",
        "Friday, November 20, 2026, 11:58 PM",
        "20 November 2026, 11:58\u202fPM",
        "Friday, 20 November 2026, 23:58",
    ],
)
def test_moodles_forms_of_a_time_are_one_time(text: str) -> None:
    (one, _) = parse_hand_ins(WORKSHEET.lstrip("\ufeff").replace("Friday, 20 November 2026, 11:58 PM", text), BERLIN)
    assert one.time == datetime(2026, 11, 20, 22, 58, tzinfo=UTC)


def test_a_worksheet_of_another_assignment_is_noticed_by_the_names() -> None:
    found = HandIns(tuple(parse_hand_ins(WORKSHEET.lstrip("\ufeff"), BERLIN)))
    with pytest.raises(BadHandIns, match=r"participant 4711 is 'Minji Kim' .* and 'Ann Baker'"):
        found.identified(Person("Ann Baker", moodle_id="4711"))
    assert found.identified(Person("Participant 4711", moodle_id="4711")).student == "kim1@uni.edu"


def test_a_plain_list_of_times() -> None:
    (one, two) = parse_hand_ins("student;time\nann;2026-11-20 23:58\nbob;2026-11-20T23:58Z\n", BERLIN)
    assert (one.person.student, one.time) == ("ann", datetime(2026, 11, 20, 22, 58, tzinfo=UTC))
    assert two.time == datetime(2026, 11, 20, 23, 58, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "zone", "message"),
    [
        ("Bezeichner,Status,Zuletzt geändert (Abgabe)\n", BERLIN, "with English as Moodle's language"),
        (
            WORKSHEET.replace("20 November 2026, 11:58 PM", "20. November 2026, 23:58"),
            BERLIN,
            "line 2: .*choose English",
        ),
        (
            '"Identifier","Full name","Last modified (submission)"\n"Participant 4","Ann Baker","11/20/2026 23:58"\n',
            BERLIN,
            "line 2: '11/20/2026 23:58' is how a spreadsheet writes a time.*as Moodle exported it",
        ),
        (WORKSHEET, None, "enter it in the roster, in the row '\\*'"),
        ('[{"id": 7}]', BERLIN, "entries without user_id"),
        ("[{", BERLIN, "no JSON"),
        ("", BERLIN, "first line begins ''"),
    ],
)
def test_what_is_no_list_of_times_is_named_with_the_cure(text: str, zone: ZoneInfo | None, message: str) -> None:
    with pytest.raises(BadHandIns, match=message):
        parse_hand_ins(text.lstrip("\ufeff"), zone)


def test_a_wrong_time_is_named_with_its_line_and_file(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("student,time\nann,2026-11-20 23:58\nbob,yesterday\n")
    with pytest.raises(BadHandIns, match=r"times.csv: line 3: 'yesterday' is no time"):
        read_hand_ins([path], BERLIN)
    with pytest.raises(BadTime, match="names no time zone"):
        parse_hand_ins("student,time\nann,2026-11-20 23:58\n")
    with pytest.raises(UserError, match="cannot be read"):
        read_hand_ins([tmp_path / "none.csv"], BERLIN)
