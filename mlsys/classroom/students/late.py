"""Late work: when a lab is due for a student, and what it costs to hand it in after that."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from mlsys.classroom.students.deadlines import lateness


@dataclass(frozen=True)
class Late:
    """How late a submission is, and what that costs.

    Attributes:
        minutes: after the due time; 0 if it is not late.
        needed: late days that it needs: every day begun after the grace time.
        left: late days that the student had left.
        percent: of the points, taken off for each day that no late day covers.
    """

    minutes: int = 0
    needed: int = 0
    left: int = 0
    percent: float = 0.0

    @property
    def spent(self) -> int:
        """Late days that it uses up."""
        return min(self.needed, self.left)

    @property
    def uncovered(self) -> int:
        """Days late that no late day covers."""
        return self.needed - self.spent

    @property
    def off(self) -> float:
        """Part of the points that is taken off, from 0 to 1.

        >>> Late(minutes=3000, needed=3, left=1, percent=10).off
        0.2
        """
        return min(1.0, self.uncovered * self.percent / 100)

    @property
    def cost(self) -> str:
        """What was needed, what there was, and what is taken off.

        >>> Late(minutes=3000, needed=3, left=1, percent=10).cost
        'it needs 3 late days, 1 was left; 20% of the points are taken off'
        """
        if not self.needed:
            return "within the grace time" if self.minutes else "in time"
        needs = f"it needs {days(self.needed)}, {were(self.left)} left"
        if self.off:
            return f"{needs}; {100 * self.off:g}% of the points are taken off"
        return needs if self.uncovered else f"{needs}, {self.left - self.spent} after it"


@dataclass(frozen=True)
class Rule:
    """When a lab is due for a student, and what holds after that; `late_days` are those that are left."""

    due: datetime
    late_days: int = 0
    grace_minutes: int = 0
    percent: float = 0.0

    def late(self, time: datetime) -> Late:
        """Return what handing in at `time` costs."""
        found = lateness(time, self.due, timedelta(minutes=self.grace_minutes))
        minutes = -(-found.late_by // timedelta(minutes=1))  # a second late is late
        return Late(minutes, found.days, self.late_days, self.percent)


def days(count: int) -> str:
    """Say a number of late days."""
    return f"{count} late day{'' if count == 1 else 's'}"


def were(count: int) -> str:
    """Say that there were so many."""
    return f"{count or 'none'} {'was' if count <= 1 else 'were'}"


def how_late(minutes: int) -> str:
    """Say a time after the due time.

    >>> how_late(1), how_late(200), how_late(3000)
    ('1 min', '3 h 20 min', '2 d 2 h')
    """
    whole_days, rest = divmod(minutes, 24 * 60)
    if whole_days:
        return f"{whole_days} d {rest // 60} h"
    return f"{rest // 60} h {rest % 60} min" if rest >= 60 else f"{rest} min"
