"""The replay of a tile's transpose against moved numbers, and against a shared memory that serves lane by lane."""

import random

import numpy as np
import pytest

from mlsys.grading import WrongAnswer
from mlsys.grading.replays.tile_transpose import SLOTS, assert_tile_transpose

SIDE = range(32)
STRIDES = [(32, 32), (64, 96), (1000, 40)]


def schedule(stride_x, stride_y, slot=lambda i, j: 33 * i + j):
    return {
        "loads": [[i * stride_x + j for j in SIDE] for i in SIDE],
        "slots": [[slot(i, j) for j in SIDE] for i in SIDE],
        "stores": [[j * stride_y + i for i in SIDE] for j in SIDE],
    }


SLOT_RULES = {
    "padded by one": (lambda i, j: 33 * i + j, True),
    "padded by three": (lambda i, j: 35 * i + j, True),
    "swizzled": (lambda i, j: 32 * i + (i ^ j), True),
    "turned": (lambda i, j: 32 * i + (i + j) % 32, True),
    "plain": (lambda i, j: 32 * i + j, False),
    "padded by two": (lambda i, j: 34 * i + j, False),
    "padded by four": (lambda i, j: 36 * i + j, False),
    "swizzled by halves": (lambda i, j: 32 * i + (i // 2 ^ j), False),
}


def passes(slots):
    """Passes of an access, by a memory that serves one slot of each bank at a time."""
    waiting, count = list(slots), 0
    while waiting:
        served = {}
        for slot in waiting:
            served.setdefault(slot % 32, slot)
        waiting = [slot for slot in waiting if served[slot % 32] != slot]
        count += 1
    return count


def accepted(*args):
    try:
        assert_tile_transpose(*args)
    except WrongAnswer:
        return False
    return True


@pytest.mark.parametrize("rule", SLOT_RULES)
def test_slots_are_right_if_a_memory_of_32_banks_needs_one_pass(rule):
    slot, right = SLOT_RULES[rule]
    rows = [passes([slot(i, j) for j in SIDE]) for i in SIDE]
    columns = [passes([slot(i, j) for i in SIDE]) for j in SIDE]
    assert (max(rows + columns) == 1) == right
    for strides in STRIDES:
        assert accepted(schedule(*strides, slot), *strides) == right


@pytest.mark.parametrize("strides", STRIDES)
def test_an_accepted_schedule_transposes_real_numbers(strides):
    stride_x, stride_y = strides
    shuffled = random.Random(3)
    found = schedule(*strides)
    for name in ("loads", "stores"):
        shuffled.shuffle(found[name])
        for access in found[name]:
            shuffled.shuffle(access)
    assert_tile_transpose(found, *strides)
    x, shared, y = np.arange(32 * stride_x), np.full(SLOTS, -1), np.full(32 * stride_y, -1)
    for access in found["loads"]:
        for element in access:
            shared[found["slots"][element // stride_x][element % stride_x]] = x[element]
    for access in found["stores"]:
        for element in access:
            y[element] = shared[found["slots"][element % stride_y][element // stride_y]]
    tile = x.reshape(32, stride_x)[:, :32]
    assert np.array_equal(y.reshape(32, stride_y)[:, :32], tile.T)


def test_four_rows_of_one_sector_are_as_good_as_one_row_of_four():
    found = schedule(64, 96, lambda i, j: 32 * i + (j ^ (i % 4 * 8 + i // 4)))
    found["loads"] = [
        [i * 64 + j for i in range(4 * part, 4 * part + 4) for j in range(8 * group, 8 * group + 8)]
        for part in range(8)
        for group in range(4)
    ]
    assert_tile_transpose(found, 64, 96)


def changed(name, value):
    return schedule(64, 96) | {name: value}


def replaced(name, row, column, value):
    found = schedule(64, 96)
    found[name][row][column] = value
    return found


FAULTS = {
    "no dict": ([], "return a dict with the keys"),
    "a key missing": ({"loads": [], "slots": []}, "return a dict with the keys"),
    "no list": (changed("slots", 7), "slots must be a list, got 7"),
    "too few loads": (changed("loads", [[0] * 32] * 31), "loads must have length 32, got 31"),
    "too many lanes": (changed("stores", [[0] * 33] * 32), "stores[0] must have length 32, got 33"),
    "a fraction": (replaced("slots", 1, 2, 3.0), "slots[1][2] must be a plain int"),
    "a truth": (replaced("loads", 0, 0, False), "loads[0][0] must be a plain int"),
    "a slot too far": (replaced("slots", 31, 31, SLOTS), "must be a slot from 0 to 1151"),
    "a slot below 0": (replaced("slots", 0, 0, -1), "must be a slot from 0 to 1151"),
    "a slot taken": (replaced("slots", 0, 1, 0), "elements (0, 0) and (0, 1) are both in slot 0"),
    "outside the tile": (replaced("loads", 2, 5, 40), "loads[2], lane 5: element 40 of x is not in the tile"),
    "a thousand digits": (replaced("loads", 2, 5, 10**5000), "lane 5: a number that large of x is not in the tile"),
    "below 0": (replaced("stores", 0, 0, -1), "of y is not in the tile"),
    "loaded twice": (replaced("loads", 0, 1, 0), "loads[0], lane 1: element 0 of x is there twice"),
    "columns of x": (
        changed("loads", [[i * 64 + j for i in SIDE] for j in SIDE]),
        "loads[0] touches 32 sectors; 4 are enough",
    ),
    "columns of y": (
        changed("stores", [[j * 96 + i for j in SIDE] for i in SIDE]),
        "stores[0] touches 32 sectors; 4 are enough",
    ),
    "plain slots": (
        changed("slots", [[32 * i + j for j in SIDE] for i in SIDE]),
        "stores[0]: 32 lanes, such as lanes 0 and 1, need bank 0 of shared memory",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_place(fault):
    found, message = FAULTS[fault]
    with pytest.raises(WrongAnswer) as raised:
        assert_tile_transpose(found, 64, 96)
    assert message in str(raised.value)
    assert str(raised.value).startswith("stride_x=64, stride_y=96: ")
