"""Names in any script, logins in any form, and times that an LMS says: who handed in what, and when."""

import json
import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from helpers.handing_in import DUE, NOW, ROSTER, folder, notebook, submitted, take, zipped

from mlsys.classroom.intake.collect import collect
from mlsys.classroom.lms.hand_ins import HandIns, parse_hand_ins
from mlsys.classroom.students.roster import Roster, parse_roster
from mlsys.course.tree import CourseTree

NAMES = (
    *("Şirin Çelik", "Yılmaz İbrahim", "शर्मा प्रिया", "กิตติ สมชาย", "বেগম ফাতেমা", "தமிழ் செல்வன்", "מֹשֶׁה כֹּהֵן", "محمّد عليّ"),
    *("김민지", "李小龙", "Nguyễn Thị Ánh", "Дмитрий Йолкин"),
)


def canvas_word(name: str) -> str:
    """What Canvas makes of a name: Ruby's `gsub(/[^[[:word:]]]/, "").downcase`, which keeps letters and marks."""
    return "".join(letter for letter in name if unicodedata.category(letter)[0] in "LMN" or letter == "_").lower()


@pytest.fixture
def tree(tmp_path: Path) -> CourseTree:
    return CourseTree(tmp_path / "course")


def logins() -> Roster:
    """A roster as Canvas's gradebook begins it: the ids are logins."""
    return parse_roster(
        "id,name,sis user id,sis login id\n"
        'abaker11@uni.edu,"Baker, Ann",100003,abaker11@uni.edu\n'
        'jsmith17@uni.edu,"Smith, John",100017,jsmith17@uni.edu\n'
        'mkim1@uni.edu,"Kim, Minji",100021,mkim1@uni.edu\n'
        'mkim2@uni.edu,"Kim, Minji",100022,mkim2@uni.edu\n'
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_any_script_is_read_with_and_without_a_roster(tree: CourseTree, tmp_path: Path, name: str) -> None:
    source = zipped(tmp_path / "in.zip", {f"{canvas_word(name)}_5010_90010_tiling-1.ipynb": notebook(name)})
    alone = take(source, tree, None)
    assert (len(alone.students), alone.ignored) == (1, ())
    roster = parse_roster(f"id,name,canvas id\ns1,{name},5010\ns2,Bob,5011\n")
    assert take(source, CourseTree(tmp_path / "known"), roster).students == ["s1"]
    by_name = parse_roster(f"id,name\ns1,{name}\ns2,Bob\n")
    assert take(source, CourseTree(tmp_path / "by name"), by_name).students == ["s1"]
    moodle = zipped(tmp_path / "m.zip", {f"{name}_4711_assignsubmission_file_/tiling.ipynb": notebook(name)})
    assert take(moodle, CourseTree(tmp_path / "moodle"), by_name).students == ["s1"]
    unknown = take(moodle, CourseTree(tmp_path / "unknown"), None)
    assert (len(unknown.students), unknown.ignored) == (1, ())


@pytest.mark.parametrize(
    ("file", "student"),
    [
        ("Ann Baker", "abaker11@uni.edu"),
        ("Baker, Ann", "abaker11@uni.edu"),
        ("baker_ann", "abaker11@uni.edu"),
        ("JSMITH17@uni.edu", "jsmith17@uni.edu"),
        ("jsmith17", "jsmith17@uni.edu"),
        ("100003", "abaker11@uni.edu"),
    ],
)
@pytest.mark.parametrize("layout", ["{}.ipynb", "{}/tiling/tiling.ipynb"])
def test_a_file_is_found_by_name_login_or_sis_id(
    tree: CourseTree, tmp_path: Path, file: str, student: str, layout: str
) -> None:
    result = take(zipped(tmp_path / "in.zip", {layout.format(file): notebook(file)}), tree, logins())
    assert (result.students, result.unknown, result.ignored) == ([student], (), ())
    assert submitted(tree, student) == notebook(file)


def test_the_number_that_a_browser_adds_is_no_part_of_a_login(tree: CourseTree, tmp_path: Path) -> None:
    result = take(zipped(tmp_path / "in.zip", {"zmuller0@uni.edu (1).ipynb": notebook()}), tree, None)
    assert (result.students, result.ignored) == (["zmuller0@uni.edu"], ())


def test_names_can_be_read_in_the_list_of_attempts(tree: CourseTree, tmp_path: Path) -> None:
    take(zipped(tmp_path / "in.zip", {"ann.ipynb": notebook(), "bob/x": b""} | {"김민지.ipynb": notebook("kim")}), tree)
    assert '"name": "김민지.ipynb"' in tree.attempts("tiling", "김민지").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", ["Minji Kim.ipynb", "Kim Minji_4711_assignsubmission_file_/tiling.ipynb"])
def test_where_two_students_fit_the_file_is_nobodys_and_a_question_is_asked(
    tree: CourseTree, tmp_path: Path, file: str
) -> None:
    result = take(zipped(tmp_path / "in.zip", {file: notebook()}), tree, logins())
    assert result.students == []
    assert "whose is it? the name fits several students: mkim1@uni.edu, mkim2@uni.edu" in result.ignored[0].reason
    assert "call it mkim1@uni.edu.ipynb or mkim2@uni.edu.ipynb" in result.ignored[0].reason


def test_an_address_elsewhere_is_nobodys_login(tree: CourseTree, tmp_path: Path) -> None:
    roster = parse_roster("id,name\nann,Ann Baker\n")
    result = take(zipped(tmp_path / "in.zip", {"ann@example.org.ipynb": notebook()}), tree, roster)
    assert (result.students, result.missing) == (["ann@example.org"], ("ann",))


def test_a_login_without_its_domain_that_two_have_is_in_doubt(tree: CourseTree, tmp_path: Path) -> None:
    roster = parse_roster("id,name\nann@a.edu,Ann A\nann@b.edu,Ann B\n")
    result = take(zipped(tmp_path / "in.zip", {"ann.ipynb": notebook()}), tree, roster)
    assert "its ids belong to several students: ann@a.edu, ann@b.edu" in result.ignored[0].reason


# Times


def test_the_time_of_a_file_is_not_that_of_handing_in(tree: CourseTree, tmp_path: Path) -> None:
    copied = folder(tmp_path / "copied today", {"ann.ipynb": (notebook(), DUE + timedelta(days=3))})
    result = take(copied, tree)
    assert result.histories["ann"].attempts[0].time is None
    assert result.choices["ann"][0].late is None
    assert "name the LMS's list with --times" in take(copied, tree, policy="on-time").refused["ann"]


def canvas_list(**times: str) -> HandIns:
    numbers = {"ann": (101, 900), "bob": (102, 901)}
    answer = [
        {"user_id": numbers[name][0], "submitted_at": time, "attachments": [{"id": numbers[name][1]}]}
        for name, time in times.items()
    ]
    return HandIns(tuple(parse_hand_ins(json.dumps(answer))))


def test_canvas_list_gives_the_times_of_its_zip_also_to_what_is_known_already(tree: CourseTree, tmp_path: Path) -> None:
    source = zipped(
        tmp_path / "in.zip",
        {"bakerann_LATE_101_900_tiling.ipynb": notebook("ann"), "carterbob_102_901_tiling.ipynb": notebook("bob")},
    )
    assert "ann" in take(source, tree, policy="on-time").refused
    times = canvas_list(ann="2026-11-20T22:58:00Z")
    result = collect(source, tree, "tiling", ROSTER, policy="on-time", hand_ins=times, now=NOW)
    assert result.refused == {}
    assert result.histories["ann"].attempts[0].time == datetime(2026, 11, 20, 22, 58, tzinfo=UTC)
    assert [(note.name, "has none for it" in note.reason) for note in result.doubtful] == [
        ("carterbob_102_901_tiling.ipynb", True)
    ]
    # What was learned stays, also without the list.
    assert take(source, tree, policy="on-time").refused == {}


def test_moodles_worksheet_gives_times_and_tells_two_of_one_name_apart(tree: CourseTree, tmp_path: Path) -> None:
    names = {4711: "first", 4712: "second"}
    files = {
        f"Minji Kim_{number}_assignsubmission_file_/tiling.ipynb": notebook(text) for number, text in names.items()
    }
    sheet = "Identifier,Full name,Email address,Last modified (submission)\n" + "".join(
        f'Participant {number},Minji Kim,MKim{index}@uni.edu,"Friday, 20 November 2026, 11:5{index} PM"\n'
        for index, number in enumerate(names, 1)
    )
    times = HandIns(tuple(parse_hand_ins(sheet, ZoneInfo("Europe/Berlin"))))
    result = collect(zipped(tmp_path / "in.zip", files), tree, "tiling", logins(), hand_ins=times, now=NOW)
    assert result.students == ["mkim1@uni.edu", "mkim2@uni.edu"]
    assert submitted(tree, "mkim2@uni.edu") == notebook("second")
    (attempt,) = result.histories["mkim2@uni.edu"].attempts
    assert attempt.time == datetime(2026, 11, 20, 22, 52, tzinfo=UTC)


def test_a_list_by_hand_gives_times_to_flat_files(tree: CourseTree, tmp_path: Path) -> None:
    source = zipped(tmp_path / "in.zip", {"ann.ipynb": notebook("ann"), "bob.ipynb": notebook("bob")})
    times = HandIns(tuple(parse_hand_ins("student,time\nann,2026-11-20 23:00+01:00\nBob Carter,2026-11-21T23:00Z\n")))
    result = collect(source, tree, "tiling", ROSTER, policy="on-time", hand_ins=times, now=NOW)
    assert [attempt.time for name in ("ann", "bob") for attempt in result.histories[name].attempts] == [
        datetime(2026, 11, 20, 22, tzinfo=UTC),
        datetime(2026, 11, 21, 23, tzinfo=UTC),
    ]
    assert result.choices["bob"][0].late
