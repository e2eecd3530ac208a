import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.classroom.students import roster as roster_module
from mlsys.classroom.students.deadlines import BadTime, days_after, lateness, parse_time, plausible, time_zone
from mlsys.classroom.students.identity import Person, find
from mlsys.classroom.students.roster import BadRoster, Student, parse_roster, read_roster
from mlsys.errors import UnknownName, UserError

BERLIN = ZoneInfo("Europe/Berlin")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def example() -> str:
    """The roster that the module's documentation shows."""
    lines = (roster_module.__doc__ or "").splitlines()
    return textwrap.dedent("\n".join(line for line in lines if line.startswith("    ")))


def test_documented_example_reads_as_documented() -> None:
    roster = parse_roster(example())
    assert list(roster.students) == ["ann", "bob"]
    assert roster.student("ann") == Student(
        "ann", "Baker, Ann", "A", "12345", "S101", "ab1@uni.edu", 3, {"tiling": roster.due("ann", "tiling")}
    )
    assert roster.student("bob").late_days == 5
    assert roster.due("ann", "tiling").astimezone(UTC) == utc("2026-11-20 22:59")
    # An extension is on the clock of its own row: New York is six hours behind Berlin in November.
    assert roster.due("bob", "tiling").astimezone(UTC) == utc("2026-11-27 23:00")


def test_section_holds_before_everybody_and_student_before_section() -> None:
    roster = parse_roster(
        "id;name;section;time zone;due a;due b\n"
        "*;;;UTC;2026-03-01 12:00;2026-04-01 12:00\n"
        "*;;B;Asia/Tokyo;2026-03-02 12:00;\n"
        "eve;Eve;B;;;\n"
        "fay;Fay;B;;2026-03-05 12:00;\n"
        "gus;Gus;;;;\n"
    )
    due = {name: roster.due(name, "a").astimezone(UTC) for name in roster.students}
    # Fay's time stands in no zone of her own: it is on her section's clock, nine hours ahead of UTC.
    assert due == {"eve": utc("2026-03-02 03:00"), "fay": utc("2026-03-05 03:00"), "gus": utc("2026-03-01 12:00")}
    assert roster.due("eve", "b") == utc("2026-04-01 12:00")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,name,due a\nann,Ann,2026-11-20 23:59\n", r"line 2, column 'due a': .*no time zone.*time zone"),
        (
            "id,name,time zone,due a\nann,Ann,UTC,20.11.2026\n",
            r"line 2.*'20.11.2026' is how a spreadsheet.* 2026-11-20 23:59",
        ),
        ("id,name,time zone,due a\nann,Ann,UTC,2026-11-20\n", r"'2026-11-20' is no time"),
        ("id,name,time zone,due a\nann,Ann,UTC,2026-11-20 24:00\n", r"'2026-11-20 24:00' is no time .*23:59"),
        ("id,name,time zone,due a\n*,,Europe/Berlni,2026-11-20 23:59\nann,Ann,,\n", r"line 2.*Europe/Berlin"),
        ("id,name,late days\nann,Ann,two\n", r"line 2, column 'late days': 'two' is no number"),
        ("id,name\nann,Ann\nann,Another\n", r"line 3, column 'id': 'ann' is in line 2 already"),
        ("id,name\n../ann,Ann\n", r"line 2, column 'id': '../ann' is no id"),
        ('id,name\n"a""n",Ann\n', r"is no id"),
        (
            "id,name\nann,Ann\nAnn,Anna\n",
            r"line 3, column 'id': 'Ann' and 'ann' in line 2 are one folder",
        ),
        ("id,name\n" + "\u6f22" * 67 + ",Ann\n", r"is no id: it takes 201 bytes, the limit is 200: shorten it"),
        ("id,name\n" + "x" * 101 + ",Ann\n", r"is no id: it has 101 characters, the limit is 100"),
        ("id,name,canvas id\nann,A,7\nbob,B,7\n", r"line 3, column 'canvas id': '7' is in line 2"),
        ("id,name,canvas id\nann,A,1.23E+11\n", r"shortened by a spreadsheet"),
        ("id,name\nann,Baker, Ann\n", r"line 2 has 3 cells.*quotes"),
        (
            "id,name,section\n*,,C\nann,A,A\n",
            r"line 2, column 'section': 'C' is the section of no student; there are: A",
        ),
        ("name\nAnn\n", r"no column 'id'"),
        ("id,name,name\n", r"two columns are called 'name'"),
        ('id,name\nann,"Ann\n', r"check the quotes"),
        (
            "id,name,time zone,due a\nann,A,UTC,11/20/2026 11:59 PM\n",
            r"'11/20/2026 11:59 PM' .*enter 2026-11-20 23:59$",
        ),
        (
            "id,name,time zone,due a\nann,A,UTC,11/03/26 23:59\n",
            r"day and month can be read in both ways: .* 2026-03-11 23:59 or 2026-11-03 23:59",
        ),
        (
            "id,name,time zone,due a\nann,A,UTC,46346.9993055556\n",
            r"a day's number in a spreadsheet.* 2026-11-20 23:59",
        ),
        (
            "id,name,time zone,due a,due b\n*,,UTC,2026-03-11 12:00,2026-03-20 12:00\nann,A,,2026-12-03 12:00,\n",
            r"line 3, column 'due a': .*2026-03-20.*day and month exchanged.*2026-03-12 12:00.*2026-12-03 12:00\+00:00",
        ),
        ("id,name,grace minutes\nann,A,a few\n", r"line 2, column 'grace minutes': 'a few' is no number of minutes"),
        ("id,name,late percent\n*,,0.1\nann,A,\n", r"line 2, column 'late percent': '0.1' .*write 10 for 10%"),
        ("id,name,late percent\nann,A,110\n", r"'110' is more than all points"),
        ("id,name,late percent\nann,A,some\n", r"'some' is no percentage"),
        ("id,name,group a\n*,,g\nann,A,\n", r"line 2, column 'group a': 'g' .*in the rows of students"),
        (
            "id,name,time zone,due a\n*,,UTC,2026-11-20 23:59\nann,Ann,,2026-11-02 23:59\n",
            r"line 3.*'2026-11-02 23:59' is earlier than 2026-11-20 23:59 UTC in line 2",
        ),
    ],
)
def test_mistake_is_named_with_line_value_and_cure(text: str, message: str) -> None:
    with pytest.raises(BadRoster, match=message):
        parse_roster(text)


def test_misspelt_column_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'late days'"):
        parse_roster("id,name,late day\nann,Ann,3\n")


def test_an_unknown_column_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text("id,name,email\nann,Ann,ann@uni.edu\n")
    with pytest.raises(UnknownName) as refused:
        read_roster(path)
    assert str(refused.value).startswith(f"{path}: unknown column of the roster 'email': ")


@pytest.mark.parametrize("column", ["due ading", "group ading"])
def test_a_column_of_an_unknown_lab_is_named_with_its_file(tmp_path: Path, column: str) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(f"id,name,time zone,{column}\nann,Ann,UTC,\n")
    with pytest.raises(BadRoster) as refused:
        read_roster(path).check_labs(["adding", "tiling"])
    assert str(refused.value) == (
        f"{path}: column '{column}': unknown lab 'ading': did you mean 'adding'? Known: adding, tiling"
    )


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_roster(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("id,name\nann,Müller\n".encode("latin-1"))
    with pytest.raises(BadRoster, match="CSV UTF-8"):
        read_roster(tmp_path / "latin.csv")


def test_byte_order_mark_and_tabs_of_a_spreadsheet_are_read(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_bytes(b"\xef\xbb\xbfID\tName\tSIS_User_ID\r\nann\tBaker, Ann\t007\r\n")
    assert read_roster(tmp_path / "roster.csv").student("ann").sis_user_id == "007"


def test_unknown_student_lab_and_missing_due_time_are_named() -> None:
    roster = parse_roster("id,name,due tiling\nann,Ann,\n")
    with pytest.raises(UnknownName, match="did you mean 'ann'"):
        roster.due("anna", "tiling")
    with pytest.raises(UnknownName, match="did you mean 'tiling'"):
        roster.due("ann", "tilling")
    with pytest.raises(BadRoster, match="fill the column 'due tiling'"):
        roster.due("ann", "tiling")


def test_time_that_the_clock_skips_is_refused() -> None:
    with pytest.raises(BadTime, match="does not exist in Europe/Berlin: the clock jumps over it"):
        parse_time("2026-03-29 02:30", BERLIN)


def test_time_that_happens_twice_is_refused_and_can_be_said_exactly() -> None:
    with pytest.raises(BadTime, match=r"happens twice.*2026-10-25 02:30\+02:00 or 2026-10-25 02:30\+01:00"):
        parse_time("2026-10-25 02:30", BERLIN)
    assert parse_time("2026-10-25 02:30+01:00", BERLIN).astimezone(UTC) == utc("2026-10-25 01:30")


def test_naive_time_is_refused() -> None:
    with pytest.raises(BadTime, match="names no time zone"):
        parse_time("2026-11-20 23:59")
    with pytest.raises(BadTime, match="no time zone"):
        lateness(datetime(2026, 11, 20), utc("2026-11-20"))
    with pytest.raises(BadTime, match="no time zone"):
        lateness(utc("2026-11-20"), datetime(2026, 11, 20))


@pytest.mark.parametrize("name", ["", "Berlin", "CEST", "../../etc/passwd", "localtime", "/etc/localtime"])
def test_what_is_no_iana_zone_is_refused(name: str) -> None:
    with pytest.raises(BadTime, match="write an IANA name"):
        time_zone(name)


def test_clock_that_jumped_is_an_error() -> None:
    now = utc("2026-11-20 12:00")
    assert plausible(now + timedelta(minutes=1), now) == now + timedelta(minutes=1)
    with pytest.raises(BadTime, match="is in the future"):
        plausible(now + timedelta(hours=1), now)
    with pytest.raises(BadTime, match="older than any course"):
        plausible(datetime.fromtimestamp(0, UTC), now)


@pytest.mark.parametrize(
    ("handed_in", "days"),
    [
        ("2026-10-24 21:59:00", 0),  # 23:59 in Berlin, summer time
        ("2026-10-24 21:59:01", 1),
        ("2026-10-25 22:59:00", 1),  # 23:59 the next day is 25 hours later: the clock was set back
        ("2026-10-25 22:59:01", 2),
        ("2026-10-26 22:59:00", 2),
    ],
)
def test_late_day_ends_when_the_clock_shows_the_due_time_again(handed_in: str, days: int) -> None:
    assert lateness(utc(handed_in), parse_time("2026-10-24 23:59", BERLIN)).days == days


def test_late_day_that_ends_in_an_hour_that_is_skipped_ends_an_hour_later() -> None:
    due = parse_time("2026-03-28 02:30", BERLIN)  # the next day the clock goes from 02:00 to 03:00, at 01:00 UTC
    assert [lateness(utc(f"2026-03-29 {time}"), due).days for time in ("01:30", "01:31")] == [1, 2]


@given(st.datetimes(datetime(2001, 1, 1), datetime(2037, 1, 1)), st.integers(-90, 40 * 1440))
def test_lateness_agrees_with_counting_days_on_the_calendar(clock: datetime, minutes: int) -> None:
    try:
        due = parse_time(f"{clock:%Y-%m-%d %H:%M}", BERLIN)
    except BadTime:
        return
    time = due.astimezone(UTC) + timedelta(minutes=minutes)
    late = lateness(time, due)
    assert (late.late_by > timedelta()) == (minutes > 0) == bool(late)
    assert time <= days_after(due, late.days)
    assert not late or time > days_after(due, late.days - 1)
    assert abs(late.late_by - timedelta(minutes=max(0, minutes))) == timedelta()


STUDENTS = [
    Student("ann", "Baker, Ann", canvas_id="1", sis_login_id="ab1@uni.edu"),
    Student("ann2", "Ann Baker", canvas_id="2"),
    Student("jose", "José de la Cruz"),
    Student("li", "Li Na"),
    Student("na", "Na Li"),
    Student("sita", "राम, सीता"),
    Student("sata", "राम, सात"),
]


@pytest.mark.parametrize(
    ("person", "student"),
    [
        (Person(canvas_id="2", name="Somebody Else"), "ann2"),
        (Person(sis_login_id="ab1@uni.edu"), "ann"),
        (Person(student="jose"), "jose"),
        (Person(name="de la Cruz, Jose\u0301"), "jose"),  # accent as a character of its own
        (Person(name="delacruzjosé"), "jose"),
        (Person(name="रामसीता"), "sita"),
        (Person(name="Baker, Ann", canvas_id="1"), "ann"),
    ],
)
def test_person_is_found_by_id_or_name(person: Person, student: str) -> None:
    match = find(person, STUDENTS)
    assert match.student is not None
    assert match.student.id == student


@pytest.mark.parametrize(
    ("person", "reason"),
    [
        (Person(name="Ann Baker"), "several students: ann, ann2"),
        (Person(name="nali"), "several students: li, na"),
        (Person(name="Ann Baker", canvas_id="9"), "whose ids are others"),  # the same name is no proof
        (Person(canvas_id="2", sis_login_id="ab1@uni.edu"), "ids belong to several students: ann, ann2"),
        (Person(name=""), "nobody"),
        (Person(name="Ann"), "nobody"),
        (Person(name="रामसत"), "nobody"),  # vowel signs tell names apart
    ],
)
def test_doubtful_person_is_nobody_with_the_reason(person: Person, reason: str) -> None:
    match = find(person, STUDENTS)
    assert match.student is None
    assert reason in match.reason
