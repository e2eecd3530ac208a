"""Due times in IANA time zones, and how late a submission is.

A time is an instant or an error. A clock time without a zone, one that the clock skipped or showed twice, one that a
spreadsheet has rewritten, and a time in the future each raise `BadTime` with what to write instead.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from mlsys.errors import InvalidValue
from mlsys.receipt import CLOCK_TOLERANCE

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""No notebook is older: archives and disks that lost a file's time write 1970 or 1980."""

_TIME = re.compile(
    r"(?P<clock>\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?(?P<zone>Z|[+-]\d\d:\d\d|[A-Za-z][\w/+-]*)?"
)


_TURNED = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[/.-])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4}|\d\d)"
    r"(?:,? +(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::\d\d)? *(?P<half>[AaPp]\.?[Mm]\.?)?)?"
)
"""A day as spreadsheets write it: day and month in either order, then the year."""
_SERIAL = re.compile(r"(?P<days>[2-9]\d{4})(?:[.,](?P<part>\d+))?")
"""A day as spreadsheets count it, with the time of day as a fraction."""
_SERIALS_BEGIN = datetime(1899, 12, 30)
_AS_TEXT = "format the column as text and enter"


class BadTime(InvalidValue):
    """A time that names no instant; the message says what to write instead."""


@dataclass(frozen=True)
class Lateness:
    """How late a submission is: the time after the due time, and the late days that it costs."""

    late_by: timedelta
    days: int

    def __bool__(self) -> bool:
        return self.days > 0


def time_zone(name: str) -> ZoneInfo:
    """Return the IANA time zone `name`.

    Raises:
        BadTime: there is no such zone.

    >>> time_zone("Europe/Berlin").key
    'Europe/Berlin'
    """
    if name not in _zone_names():
        near = get_close_matches(name, _zone_names(), n=3, cutoff=0.5)
        hint = f"; similar: {', '.join(near)}" if near else ""
        raise BadTime(f"{name!r} is no time zone: write an IANA name such as Europe/Berlin{hint}")
    return ZoneInfo(name)


@cache
def _zone_names() -> frozenset[str]:
    # These two are what a machine is set to, not places.
    return frozenset(available_timezones() - {"localtime", "Factory"})


def parse_time(text: str, zone: ZoneInfo | None = None) -> datetime:
    """Return the instant that `text` names, as an aware datetime.

    Args:
        text: `2026-11-20 23:59`, with seconds or without, with an offset (`+01:00`, `Z`) or a zone's name after it, or
            without.
        zone: whose clock is meant when the text says nothing; the result is in this zone.

    Raises:
        BadTime: not of this form, without zone, or a clock time that the zone's clock skipped or showed twice.

    >>> parse_time("2026-11-20 23:59", ZoneInfo("Europe/Berlin")).isoformat()
    '2026-11-20T23:59:00+01:00'
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        found = rewritten_by_spreadsheet(text.strip())
        raise BadTime(
            f"{text!r} {found}"
            if found
            else f"{text!r} is no time: write year, month, day, hours and minutes as in 2026-11-20 23:59"
        )
    try:
        clock = datetime.fromisoformat(match["clock"])
    except ValueError as error:
        raise BadTime(f"{text!r} is no time ({error}): the last minute of a day is 23:59") from error
    named = match["zone"]
    if named and (named == "Z" or named[0] in "+-"):
        exact = clock.replace(tzinfo=UTC if named == "Z" else _offset(named, text))
        return exact.astimezone(zone) if zone else exact
    place = time_zone(named) if named else zone
    if place is None:
        raise BadTime(f"{text!r} names no time zone: add one, as in {text.strip()} UTC")
    return _on_the_clock(clock, place, text)


def rewritten_by_spreadsheet(text: str) -> str:
    """Say what a spreadsheet has made of a time, and what to write; empty if it looks like nothing of the kind.

    >>> rewritten_by_spreadsheet("11/20/2026 23:59")
    'is how a spreadsheet writes a time: format the column as text and enter 2026-11-20 23:59'
    """
    if serial := _SERIAL.fullmatch(text):
        days = float(f"{serial['days']}.{serial['part'] or 0}")
        clock = _SERIALS_BEGIN + timedelta(minutes=round(days * 24 * 60))
        return f"is a day's number in a spreadsheet: {_AS_TEXT} {clock:%Y-%m-%d %H:%M}, if that is what was meant"
    match = _TURNED.fullmatch(text)
    if match is None:
        return ""
    year = int(match["year"]) + (2000 if len(match["year"]) == 2 else 0)
    first, second = int(match["first"]), int(match["second"])
    hour, half = int(match["hour"] or 0), (match["half"] or "").lower()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    time = f"{hour:02}:{match['minute']}" if match["hour"] else "23:59"
    readings = []
    for month, day in dict.fromkeys(((second, first), (first, second))):
        try:
            readings.append(f"{datetime(year, month, day):%Y-%m-%d} {time}")
        except ValueError:  # there is no such month or day
            continue
    doubt = ": day and month can be read in both ways" if len(readings) == 2 else ""
    return f"is how a spreadsheet writes a time{doubt}: {_AS_TEXT} {' or '.join(readings)}" if readings else ""


def _offset(text: str, whole: str) -> timezone:
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 14 or minutes > 59:
        raise BadTime(f"{whole!r} has the offset {text}, which no place on Earth has: write one such as +01:00")
    return timezone((1 if text[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes))


def _on_the_clock(clock: datetime, zone: ZoneInfo, text: str) -> datetime:
    first, second = (clock.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return first
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != clock:
        raise BadTime(f"{text!r} does not exist in {zone.key}: the clock jumps over it; choose a time before or after")
    choices = " or ".join(f"{clock:%Y-%m-%d %H:%M}{time.isoformat()[-6:]}" for time in (first, second))
    raise BadTime(f"{text!r} happens twice in {zone.key}, where the clock is set back: write {choices}")


def aware(time: datetime, what: str) -> datetime:
    """Return `time` in UTC.

    Raises:
        BadTime: it has no time zone.
    """
    if time.utcoffset() is None:
        raise BadTime(f"{what} {time} has no time zone: add its distance from UTC, as in 2026-11-20T18:00+01:00")
    return time.astimezone(UTC)


def plausible(time: datetime, now: datetime, what: str = "the time") -> datetime:
    """Return `time` in UTC, if a clock that works could have shown it.

    Raises:
        BadTime: no time zone, in the future, or before `EARLIEST`: some clock jumped.
    """
    time, now = aware(time, what), aware(now, "now")
    if time > now + CLOCK_TOLERANCE:
        raise BadTime(f"{what} {time:%Y-%m-%d %H:%M} UTC is in the future: a clock is wrong; correct the time")
    if time < EARLIEST:
        raise BadTime(f"{what} {time:%Y-%m-%d %H:%M} UTC is older than any course: its time was lost; set it right")
    return time


def days_after(due: datetime, days: int) -> datetime:
    """Return the same time on the clock `days` later, in UTC: 23 or 25 hours later on the day a clock is changed.

    >>> due = parse_time("2026-10-24 23:59", ZoneInfo("Europe/Berlin"))
    >>> days_after(due, 1) - due
    datetime.timedelta(days=1, seconds=3600)
    """
    later = due + timedelta(days=days)
    # Where the clock skips or repeats that time, the later of both readings counts, in the student's favor.
    return max(aware(later.replace(fold=fold), "the due time") for fold in (0, 1))


def lateness(time: datetime, due: datetime, grace: timedelta = timedelta()) -> Lateness:
    """Return how late `time` is; every day begun costs one late day.

    Args:
        time: when it was handed in.
        due: when it was due.
        grace: how long after the due time, and after the end of each late day, it still counts as in time.

    Raises:
        BadTime: a time without time zone.
    """
    late_by = aware(time, "the time of the submission") - aware(due, "the due time")
    if late_by <= timedelta():
        return Lateness(timedelta(), 0)
    counted = aware(time, "the time of the submission") - grace
    days = max(0, late_by.days)
    while counted > days_after(due, days):
        days += 1
    while days > 0 and counted <= days_after(due, days - 1):
        days -= 1
    return Lateness(late_by, days)
