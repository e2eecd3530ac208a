"""A term's calendar as an .ics file, which calendars and learning platforms import (RFC 5545)."""

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from icalendar import Calendar, Event

from mlsys import __version__
from mlsys.course.kit.syllabus import WEEK, Syllabus, page_title
from mlsys.course.pages.contents import book_pages

DOMAIN = "ai-hardware-acceleration"
"""Ends the identifiers of events, so that an import of a corrected file replaces them."""


def calendar_file(root: Path, syllabus: Syllabus, days: list[date]) -> bytes:
    """Return the calendar of a term: an all-day event for each week, and one for each hand-in on the week's last day.

    Args:
        root: the repository, for the titles of the pages.
        syllabus: the course.
        days: the first day of each of its weeks.
    """
    pages = book_pages(root)
    length = len(syllabus.weeks)
    calendar = Calendar()
    calendar.add("prodid", f"-//{DOMAIN}//mlsys {__version__}//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", f"AI Hardware Acceleration, {length} weeks")
    stamp = datetime.combine(days[0], time(), UTC)  # the same term gives the same file
    for number, (week, day) in enumerate(zip(syllabus.weeks, days, strict=True), 1):
        read = ", ".join(page_title(pages[name]) for name in week.read)
        calendar.add_component(
            _event(f"week-{number}-of-{length}", stamp, day, f"Week {number}: {read}", f"Read: {read}\nDo: {week.do}")
        )
        if week.hand_in:
            title = f"Hand in: {page_title(pages[week.lab])}"
            last = day + WEEK - timedelta(days=1)
            calendar.add_component(_event(f"{week.lab}-of-{length}", stamp, last, title, week.do))
    return bytes(calendar.to_ical())


def _event(name: str, stamp: datetime, day: date, title: str, text: str) -> Event:
    event = Event()
    event.add("uid", f"{name}@{DOMAIN}")
    event.add("dtstamp", stamp)
    event.add("dtstart", day)
    event.add("dtend", day + timedelta(days=1))  # exclusive, as the standard has it
    event.add("summary", title)
    event.add("description", text.replace("`", ""))
    event.add("transp", "TRANSPARENT")
    return event
