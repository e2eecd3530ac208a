"""Plans of memory, held to a check of their own, to an exhaustive search and to MiniMalloc's problems."""

import itertools
import random
import time

import pytest
from helpers.minimalloc import CAPACITY, NAMES, height_of, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.errors import InvalidValue
from mlsys.runtime import DoesNotFit, peak_live, plan_height, plan_memory

BUFFERS = st.lists(
    st.tuples(st.integers(-8, 8), st.integers(1, 8), st.integers(0, 9)).map(lambda b: (b[0], b[0] + b[1], b[2])),
    max_size=25,
)


def least_height(buffers):
    """The least height of any plan: some order in which each buffer goes to the lowest free place gives it."""
    best = sum(size for _, _, size in buffers)
    for order in itertools.permutations(range(len(buffers))):
        placed = []
        for lower, upper, size in (buffers[place] for place in order):
            taken = sorted((o, o + s) for low, up, s, o in placed if low < upper and lower < up)
            offset = 0
            for start, end in taken:
                if offset + size <= start:
                    break
                offset = max(offset, end)
            placed.append((lower, upper, size, offset))
        best = min(best, max(size + offset for _, _, size, offset in placed))
    return best


@given(BUFFERS)
@settings(max_examples=150, deadline=None)
def test_a_plan_never_overlaps_and_needs_at_least_what_is_live(buffers):
    offsets = plan_memory(buffers)
    live = max((sum(s for low, up, s in buffers if low <= t < up) for t, _, _ in buffers), default=0)
    assert peak_live(buffers) == live
    assert plan_height(buffers, offsets) == height_of(buffers, offsets) >= live


@pytest.mark.parametrize("seed", range(12))
def test_small_plans_are_as_low_as_any(seed):
    draw = random.Random(seed)
    buffers = []
    for _ in range(7):
        lower = draw.randrange(6)
        buffers.append((lower, lower + draw.randint(1, 4), draw.randint(1, 9)))
    assert height_of(buffers, plan_memory(buffers)) == least_height(buffers)


@pytest.mark.parametrize("name", ["B", "C", "D"])
def test_three_of_minimallocs_problems_need_no_more_than_they_must(name):
    buffers = problem(name)
    assert height_of(buffers, plan_memory(buffers)) <= CAPACITY


@pytest.mark.proof
@pytest.mark.parametrize(("name", "limit"), [(name, 1.0 if name in "BCD" else 1.15) for name in NAMES])
def test_minimallocs_problems_need_little_more_than_they_must(name, limit):
    buffers = problem(name)
    started = time.process_time()
    height = height_of(buffers, plan_memory(buffers))
    assert height <= limit * CAPACITY
    assert time.process_time() - started < 30


def test_the_same_buffers_get_the_same_plan():
    buffers = problem("A")
    assert plan_memory(buffers, effort=0.1) == plan_memory(buffers, effort=0.1)


def test_a_plan_does_not_depend_on_when_time_starts_or_on_its_unit():
    buffers = problem("F")[:60]
    later = [(3 * lower - 100, 3 * upper - 100, size) for lower, upper, size in buffers]
    assert plan_memory(later) == plan_memory(buffers)


@pytest.mark.alone
def test_a_hundred_buffers_are_planned_within_a_second():
    buffers = problem("K")[:100]
    plan_memory(buffers[:20])  # numpy is loaded
    started = time.process_time()
    plan_memory(buffers)
    assert time.process_time() - started < 1


def test_many_buffers_are_planned_in_one_pass():
    draw = random.Random(3)
    buffers = [(t, t + draw.randint(1, 30), draw.randint(1, 1000)) for t in range(3000)]
    assert height_of(buffers, plan_memory(buffers)) < 1.4 * peak_live(buffers)


def test_the_search_stops_at_the_capacity():
    buffers = problem("D")
    capacity = round(1.2 * CAPACITY)
    offsets = plan_memory(buffers, capacity=capacity)
    assert CAPACITY < height_of(buffers, offsets) <= capacity


def test_more_effort_finds_a_plan_that_less_effort_does_not():
    buffers = problem("A")
    capacity = round(1.12 * CAPACITY)
    with pytest.raises(DoesNotFit, match=r"more than the capacity of 1174405; .* raise effort \(now 0\)"):
        plan_memory(buffers, capacity=capacity, effort=0)
    assert height_of(buffers, plan_memory(buffers, capacity=capacity)) <= capacity


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ([(0, 1, 5), (4, 4, 1)], "buffer 1 is live from 4 up to 4, which is no time at all; upper must exceed lower"),
        ([(0, 1, -5)], "buffer 0 has size -5; a size must be 0 or more"),
        ([(0, 1, 2.0)], r"buffer 0 has size 2\.0; give an integer"),
        ([(0, "1", 2)], "buffer 0 has upper '1'; give an integer"),
        ([(True, 2, 2)], "buffer 0 has lower True; give an integer"),
        ([(0, 1)], r"buffer 0 is \(0, 1\); give \(lower, upper, size\)"),
        ([7], r"buffer 0 is 7; give \(lower, upper, size\)"),
        ([(0, 1, 2**59), (0, 1, 2**59), (0, 1, 1)], "the sizes sum to .*; give them in a larger unit"),
    ],
)
def test_a_buffer_that_is_none_is_named(buffers, message):
    with pytest.raises(InvalidValue, match=message):
        plan_memory(buffers)


@pytest.mark.parametrize(
    ("capacity", "message"),
    [
        (9, "buffer 1 alone has size 10, 1 more than the capacity of 9; cut it into tiles or give more memory"),
        (15, "at time 3 2 buffers are live, together 16, 1 more than the capacity of 15; no plan can fit: "),
        (-1, "capacity must be an integer of 0 or more, got -1; the nearest is 0"),
        (16.5, r"capacity must be an integer of 0 or more, got 16\.5; the nearest is 16"),
    ],
)
def test_a_capacity_that_cannot_do_is_refused_with_the_reason(capacity, message):
    with pytest.raises(InvalidValue, match=message):
        plan_memory([(0, 2, 6), (2, 5, 10), (3, 4, 6)], capacity=capacity)


def test_no_buffers_need_no_memory():
    assert plan_memory([], capacity=0) == []
    assert peak_live([]) == plan_height([], []) == 0
    assert plan_memory([(0, 1, 0)], capacity=0) == [0]


def test_a_height_needs_an_offset_for_each_buffer():
    with pytest.raises(InvalidValue, match="there are 2 buffers and 1 offsets; give one for each"):
        plan_height([(0, 1, 1), (0, 1, 1)], [0])
