"""MiniMalloc's eleven challenging planning problems, and a check of a plan that knows nothing of the planner."""

import csv
from itertools import pairwise
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "runtime" / "minimalloc"
NAMES = "ABCDEFGHIJK"
CAPACITY = 1_048_576
"""Each problem is known to have a plan of this height."""


def problem(name: str) -> list[tuple[int, int, int]]:
    """The buffers of a problem: (lower, upper, size)."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(file)]


def height_of(buffers: list[tuple[int, int, int]], offsets: list[int]) -> int:
    """The height of a plan, after looking at every point of time that no two live buffers share a byte."""
    assert len(offsets) == len(buffers)
    assert all(type(offset) is int and offset >= 0 for offset in offsets)
    for time in sorted({lower for lower, _, _ in buffers}):
        live = sorted(
            (offset, offset + size)
            for (lower, upper, size), offset in zip(buffers, offsets, strict=True)
            if lower <= time < upper and size
        )
        for (_, end), (start, _) in pairwise(live):
            assert end <= start, f"two buffers share bytes {start} to {end} at time {time}"
    return max((offset + size for (_, _, size), offset in zip(buffers, offsets, strict=True)), default=0)
