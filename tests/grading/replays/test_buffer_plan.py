"""Checks of memory plans against a count of every byte at every time, and problems whose best plan is known."""

import random

import numpy as np
import pytest

from mlsys import grading
from mlsys.grading import WrongAnswer
from mlsys.grading.replays.buffer_plan import assert_heights, checked_height, draw_problem, first_fit
from mlsys.runtime import peak_live, plan_height

BUFFERS = [(0, 2, 10), (1, 3, 5), (2, 4, 10)]


def test_a_plan_is_accepted_exactly_if_no_byte_is_used_twice():
    chance, refused = random.Random(2), 0
    for _ in range(300):
        buffers = [
            (lower := chance.randint(0, 5), lower + chance.randint(1, 4), chance.randint(1, 5)) for _ in range(4)
        ]
        offsets = [chance.randint(0, 12) for _ in buffers]
        used = np.zeros((10, 20), dtype=int)
        for (lower, upper, size), offset in zip(buffers, offsets, strict=True):
            used[lower:upper, offset : offset + size] += 1
        if used.max() > 1:
            refused += 1
            with pytest.raises(WrongAnswer, match="overlap"):
                checked_height(offsets, buffers)
        else:
            assert checked_height(offsets, buffers) == plan_height(buffers, offsets)
    assert 50 < refused < 250


@pytest.mark.parametrize(
    "offsets",
    [None, 7, "123", [], [0, 10], [0, 10, 0, 0], [0, 10, -1], [0, 10, 0.0], [0, 10, True], [0, 10, "0"], [0, 10, None],
     [0, 10, 2**40], [0, 10, 10**5000], {0: 0, 1: 10, 2: 0}],
)  # fmt: skip
def test_what_is_no_plan_is_refused(offsets):
    with pytest.raises(WrongAnswer):
        checked_height(offsets, BUFFERS)


def test_waste_is_added_up_over_all_problems():
    problems = [BUFFERS, BUFFERS]  # lower bound 15
    assert_heights([15, 16], problems, [20, 20], 0.2)
    with pytest.raises(
        WrongAnswer, match="waste 20% of what best fit wastes above the lower bounds, and the limit is 10%"
    ):
        assert_heights([15, 17], problems, [20, 20], 0.1)


def test_first_fit_takes_the_lowest_gap():
    assert first_fit(BUFFERS, [0, 1, 2]) == [0, 10, 0]
    assert first_fit(BUFFERS, [1, 0, 2]) == [5, 0, 5]


@pytest.mark.parametrize("height", [200, 1000])
def test_the_pieces_of_a_problem_fit_together(height):
    draw = grading.Draws(f"cut {height}")
    for _ in range(10):
        buffers = draw_problem(draw, 40, 20, height, free=0)
        assert len(buffers) == 40
        live = [sum(size for lower, upper, size in buffers if lower <= time < upper) for time in range(20)]
        assert set(live) == {height}  # nothing is left out, so every time is full
        fewer = draw_problem(draw, 40, 20, height)
        assert len(fewer) == 36
        assert peak_live(fewer) == height
        assert all(0 <= lower < upper <= 20 and size >= 1 for lower, upper, size in fewer)
