"""The progress of a run: how many are done and how long the rest will take, as a bar or as lines of a log file."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

LINE_EVERY_S = 15.0
"""Seconds between two lines of a log file."""
_TRUST = 4
"""How many submissions of this run count as much as what earlier runs say of the pace."""


@dataclass
class Pace:
    """How long the rest of a run takes: what earlier runs say first, and more and more what this one shows.

    Attributes:
        total: how many things there are to do.
        expected_s: how long all of them should take by earlier runs, in seconds; 0 if nothing is known.
    """

    total: int
    expected_s: float = 0.0

    def left_s(self, done: int, elapsed_s: float) -> float | None:
        """Return the seconds that are left, or None while nothing says anything about the pace.

        On a GPU the first ones are done late and together, so until then the pace is that of earlier runs.

        >>> Pace(10, 100.0).left_s(0, 0.0), Pace(10, 100.0).left_s(0, 40.0), Pace(10, 100.0).left_s(0, 140.0)
        (100.0, 60.0, None)
        >>> Pace(10).left_s(0, 5.0), Pace(10).left_s(5, 20.0)
        (None, 20.0)
        """
        if done == 0:
            return self.expected_s - elapsed_s if self.expected_s > elapsed_s else None
        trust = min(_TRUST, self.total) if self.expected_s else 0
        each_s = (elapsed_s + trust * self.expected_s / self.total) / (done + trust)
        return max(0, self.total - done) * each_s


@dataclass
class _Lines:
    """Progress for a file or a pipe: a line at the beginning, and one whenever some time has passed."""

    title: str
    pace: Pace
    console: Console
    clock: Callable[[], float]
    began_s: float = field(init=False)
    said_s: float = field(init=False)
    done: int = 0

    def __post_init__(self) -> None:
        self.began_s = self.clock()
        self._say(self.began_s)

    def advance(self) -> None:
        self.done += 1
        now_s = self.clock()
        if now_s - self.said_s >= LINE_EVERY_S:
            self._say(now_s)

    def _say(self, now_s: float) -> None:
        self.said_s = now_s
        left = in_words(self.pace.left_s(self.done, now_s - self.began_s))
        self.console.print(f"{self.title}: {self.done} of {self.pace.total} done{left}", soft_wrap=True, markup=False)


@contextmanager
def tracked(
    title: str,
    total: int,
    console: Console,
    clock: Callable[[], float] | None = None,
    expected_s: float = 0.0,
) -> Iterator[Callable[[], None]]:
    """Show how far the block has come, and yield what is to be called as each of `total` things is done.

    Args:
        title: what is done.
        total: how many things.
        console: where to show it: a bar on a terminal, lines elsewhere.
        clock: seconds; the monotonic clock when None.
        expected_s: how long all should take by earlier runs, in seconds; 0 if nothing is known.
    """
    clock, pace = clock or time.monotonic, Pace(total, expected_s)
    if not console.is_terminal:
        yield _Lines(title, pace, console, clock).advance
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    began_s, done = clock(), 0
    with Progress(*columns, console=console, transient=True, get_time=clock) as progress:
        task = progress.add_task(title, total=total, left=in_words(pace.left_s(0, 0.0)))

        def advance() -> None:
            nonlocal done
            done += 1
            progress.update(task, completed=done, left=in_words(pace.left_s(done, clock() - began_s)))

        yield advance


def in_words(left_s: float | None) -> str:
    """Return the time left in words, to follow a count.

    >>> in_words(50.0), in_words(200.0), in_words(None)
    (', about 50 s left', ', about 3 min left', '')
    """
    if left_s is None:
        return ""
    return f", about {left_s:.0f} s left" if left_s < 90 else f", about {left_s / 60:.0f} min left"
