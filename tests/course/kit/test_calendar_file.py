import re
from datetime import date, timedelta
from pathlib import Path

import pytest

from mlsys.course.kit.calendar_file import calendar_file
from mlsys.course.kit.syllabus import first_days, read_syllabi

ROOT = Path(__file__).parents[3]
SYLLABI = read_syllabi(ROOT)
MONDAY = date(2027, 2, 1)


def events(data: bytes) -> list[dict[str, str]]:
    """The events of a calendar, read by the rules of RFC 5545, sections 3.1 and 3.6.1, without the library."""
    lines = data.decode("utf-8").replace("\r\n ", "").split("\r\n")
    found: list[dict[str, str]] = []
    for line in lines:
        name, _, value = line.partition(":")
        if line == "BEGIN:VEVENT":
            found.append({})
        elif found and line not in ("END:VEVENT", "END:VCALENDAR", ""):
            found[-1][name] = value
    return found


@pytest.mark.parametrize("length", SYLLABI)
def test_there_is_an_event_for_each_week_and_each_hand_in(length: int) -> None:
    syllabus = SYLLABI[length]
    found = events(calendar_file(ROOT, syllabus, first_days(syllabus, MONDAY)))
    weeks = [event for event in found if event["SUMMARY"].startswith("Week ")]
    assert [event["DTSTART;VALUE=DATE"] for event in weeks] == [
        f"{MONDAY + timedelta(days=7 * number):%Y%m%d}" for number in range(length)
    ]
    due = [event for event in found if event["SUMMARY"].startswith("Hand in: Lab: ")]
    assert len(due) == sum(week.hand_in for week in syllabus.weeks)
    assert len(found) == len(weeks) + len(due)
    assert {date.fromisoformat(event["DTSTART;VALUE=DATE"]).weekday() for event in due} == {6}
    assert len({event["UID"] for event in found}) == len(found)


@pytest.mark.parametrize("length", SYLLABI)
def test_the_file_keeps_to_the_standard(length: int) -> None:
    data = calendar_file(ROOT, SYLLABI[length], first_days(SYLLABI[length], MONDAY))
    assert data.startswith(b"BEGIN:VCALENDAR\r\n")
    assert data.endswith(b"END:VCALENDAR\r\n")
    assert max(map(len, data.split(b"\r\n"))) <= 75  # section 3.1
    assert not re.search(rb"(?<!\r)\n", data)
    for event in events(data):
        start, end = (date.fromisoformat(event[f"DT{which};VALUE=DATE"]) for which in ("START", "END"))
        assert end - start == timedelta(days=1)  # the end is exclusive
        assert event["DTSTAMP"].endswith("Z")


def test_the_same_term_gives_the_same_file() -> None:
    days = first_days(SYLLABI[6], MONDAY)
    assert calendar_file(ROOT, SYLLABI[6], days) == calendar_file(ROOT, SYLLABI[6], days)
