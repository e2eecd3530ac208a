"""Plans in one pass: buffers are placed one after the other, each in a gap between those that it meets.

The order decides how good the plan is. Largest first is the usual choice; the lowest gap is "first fit", the smallest
gap that is large enough is "best fit".
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from mlsys.runtime.buffers import Buffer

ORDERS: dict[str, Callable[[Buffer], tuple[int, ...]]] = {
    "size": lambda b: (-b.size, b.lower - b.upper),
    "area": lambda b: (-b.size * (b.upper - b.lower), -b.size),
    "lifetime": lambda b: (b.lower - b.upper, -b.size),
}
"""Orders in which buffers are placed, by name, as sort keys.

:meta hide-value:
"""


def place_in_order(buffers: Sequence[Buffer], order: Iterable[int], *, best: bool = False) -> list[int]:
    """Place buffers one after the other, each in the lowest gap that is large enough.

    Args:
        buffers: What to place.
        order: The places of all buffers, first placed first.
        best: Whether to choose the smallest such gap instead (the space above everything is the last choice).

    Returns:
        An offset for each buffer.

    >>> place_in_order([Buffer(0, 2, 10), Buffer(1, 3, 5), Buffer(2, 4, 10)], [0, 1, 2])
    [0, 10, 0]
    """
    lower, upper, size = (np.array(column, dtype=np.int64) for column in zip(*buffers, strict=True))
    offsets = np.zeros(len(buffers), dtype=np.int64)
    placed = np.zeros(len(buffers), dtype=bool)
    for place in order:
        met = np.flatnonzero(placed & (lower < upper[place]) & (lower[place] < upper))
        met = met[np.argsort(offsets[met], kind="stable")]
        starts = offsets[met]
        covered = np.concatenate(([0], np.maximum.accumulate(starts + size[met])))
        gaps = np.flatnonzero(starts - covered[:-1] >= size[place])
        if not len(gaps):
            offsets[place] = covered[-1]
        elif best:
            offsets[place] = covered[gaps[np.argmin((starts - covered[:-1])[gaps])]]
        else:
            offsets[place] = covered[gaps[0]]
        placed[place] = True
    return [int(offset) for offset in offsets]


def simple_plans(buffers: Sequence[Buffer]) -> Iterable[list[int]]:
    """Yield one plan for each of `ORDERS` and each kind of fit."""
    for key in ORDERS.values():
        order = sorted(range(len(buffers)), key=lambda place: (key(buffers[place]), place))
        for best in (False, True):
            yield place_in_order(buffers, order, best=best)
