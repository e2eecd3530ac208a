"""The progress bar of a run: how many are done, and how long the rest will take."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

WHOLE_RUN_S = 1e9
"""The time left follows from the pace of the whole run: one submission may take as long as many others."""


@contextmanager
def tracked(
    title: str, total: int, console: Console, clock: Callable[[], float] | None = None
) -> Iterator[Callable[[], None]]:
    """Show a bar while the block runs, and yield what is to be called as each of `total` things is done.

    Args:
        title: what is done.
        total: how many things.
        console: where to show it.
        clock: seconds; the monotonic clock when None.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(
        *columns, console=console, transient=True, get_time=clock, speed_estimate_period=WHOLE_RUN_S
    ) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)
