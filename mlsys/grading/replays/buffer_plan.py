"""Check a memory plan that a student returns as offsets, and draw problems for planners.

A buffer is (lower, upper, size): it takes `size` bytes while lower <= time < upper. A plan has one offset for each
buffer; two buffers that are live at the same time must not overlap. Its height is the largest offset + size. No plan is
lower than the most that is ever live.
"""

from collections.abc import Sequence

from mlsys.grading.checks.assertions import shown
from mlsys.grading.draws import Draws
from mlsys.grading.verdicts import WrongAnswer
from mlsys.runtime import Buffer, peak_live
from mlsys.runtime.first_fit import place_in_order

MOST_BYTES = 2**40
"""Offsets from here on are refused: no plan of the lab needs a millionth of it."""

Buffers = Sequence[tuple[int, int, int]]


def checked_height(offsets: object, buffers: Buffers, *, name: str = "the plan") -> int:
    """Return the height of a plan that a student returned.

    Args:
        offsets: what the student's function returned: a list with one plain int for each buffer.
        buffers: what is placed.
        name: what to call the problem in messages.

    Raises:
        WrongAnswer: it is no plan, or two buffers overlap while both are live.
    """
    if not isinstance(offsets, list | tuple):
        raise WrongAnswer(f"{name}: return a list of offsets, got {shown(offsets)}")
    if len(offsets) != len(buffers):
        raise WrongAnswer(f"{name}: there are {len(buffers)} buffers and {len(offsets)} offsets; return one for each")
    places: list[int] = []
    for number, offset in enumerate(offsets):
        if type(offset) is not int:
            raise WrongAnswer(f"{name}: the offset of buffer {number} must be a plain int, got {shown(offset)}")
        if not 0 <= offset < MOST_BYTES:
            raise WrongAnswer(f"{name}: the offset of buffer {number} must be 0 or more, and less than 2^40")
        places.append(offset)
    for one, (lower, upper, size) in enumerate(buffers):
        for other in range(one):
            other_lower, other_upper, other_size = buffers[other]
            together = lower < other_upper and other_lower < upper
            if together and places[one] < places[other] + other_size and places[other] < places[one] + size:
                raise WrongAnswer(
                    f"{name}: buffers {other} and {one} overlap: at time {max(lower, other_lower)} both are live, and "
                    "their bytes have some in common"
                )
    return max((offset + size for offset, (_, _, size) in zip(places, buffers, strict=True)), default=0)


def assert_heights(heights: Sequence[int], problems: Sequence[Buffers], bases: Sequence[int], most: float) -> None:
    """Raise `WrongAnswer` if plans exceed their lower bounds by more than a share of what other plans do, all together.

    Args:
        heights: heights of the plans.
        problems: what was placed.
        bases: heights of the plans to compare with.
        most: largest share; 0.2 leaves a fifth of what the other plans waste.
    """
    least = sum(map(peak_live, problems))
    wasted, theirs = sum(heights) - least, sum(bases) - least
    if wasted > most * theirs:
        share = wasted / max(theirs, 1)
        raise WrongAnswer(
            f"{len(problems)} problems: your plans waste {share:.0%} of what best fit wastes above the lower bounds, "
            f"and the limit is {most:.0%}"
        )


def first_fit(buffers: Buffers, order: Sequence[int]) -> list[int]:
    """Return the offsets of buffers that are placed in an order, each in the lowest gap that is large enough."""
    return place_in_order([Buffer(*buffer) for buffer in buffers], order)


def draw_problem(draw: Draws, count: int, steps: int, height: int, free: int = 4) -> list[tuple[int, int, int]]:
    """Draw buffers whose best plan is known to reach the lower bound, `height`.

    A plane of `steps` by `height` is cut into `count` rectangles, again and again one of the three largest. Of those
    that are not live at some time, `free` are left out, so that the plan has gaps. Then all are shuffled.

    Args:
        draw: where random numbers come from.
        count: rectangles before some are left out.
        steps: length of time.
        height: height of the plane.
        free: how many are left out.
    """
    pieces = [(0, steps, 0, height)]
    while len(pieces) < count:
        pieces.sort(key=lambda one: -(one[1] - one[0]) * (one[3] - one[2]))
        begin, end, low, high = pieces.pop(draw.integer(0, 2) if len(pieces) > 2 else 0)
        wide = (end - begin) * height > (high - low) * steps
        along_time = end - begin > 1 and (high - low < 2 or wide == (draw.integer(1, 10) <= 7))
        if along_time:
            at = draw.integer(begin + 1, end - 1)
            pieces += [(begin, at, low, high), (at, end, low, high)]
        else:
            at = draw.integer(low + 1, high - 1)
            pieces += [(begin, end, low, at), (begin, end, at, high)]
    full = draw.integer(0, steps - 1)
    for _ in range(free):
        others = [one for one in pieces if not one[0] <= full < one[1]]
        if others:
            pieces.remove(others[draw.integer(0, len(others) - 1)])
    shuffled = []
    while pieces:
        begin, end, low, high = pieces.pop(draw.integer(0, len(pieces) - 1))
        shuffled.append((begin, end, high - low))
    return shuffled
