"""Registers of the simulated array against the package's own arrays, and what a wrong one is told."""

import random

import numpy as np
import pytest

from mlsys import systolic
from mlsys.grading import WrongAnswer
from mlsys.grading.checks.assertions import hidden_values
from mlsys.grading.replays.pe_array import REGISTERS, assert_product, assert_registers, assert_step, registers


def feed_of(weights, inputs):
    """A feed for one tile: all weights first, then the inputs, row r delayed by r cycles."""
    (rows, cols), stream = weights.shape, len(inputs)
    enters = [{"x": [0] * rows, "swap": [0] * rows, "weights": None} for _ in range(2 * rows + cols + stream - 2)]
    for row in range(rows):
        enters[rows - 1 - row]["weights"] = weights[row].tolist()
        enters[rows + row]["swap"][row] = 1
        for number in range(stream):
            enters[rows + number + row]["x"][row] = int(inputs[number, row])
    return enters


@pytest.mark.parametrize("seed", range(4))
def test_the_sums_of_the_last_row_are_the_product(seed):
    chance = np.random.default_rng(seed)
    rows, cols, stream = (int(side) for side in chance.integers(1, 6, 3))
    weights, inputs = chance.integers(-9, 9, (rows, cols)), chance.integers(-9, 9, (stream, rows))
    history = registers(feed_of(weights, inputs), rows, cols)
    run = systolic.simulate(inputs, weights, rows=rows, cols=cols, dataflow="ws")
    assert len(history) == run.cycles
    total = history[:, REGISTERS.index("sum"), -1]
    found = [[total[rows + i + rows - 1 + j, j] for j in range(cols)] for i in range(stream)]
    assert np.array_equal(found, run.product)


def test_the_registers_are_those_of_the_packages_frames():
    weights, inputs = np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8], [9, 10]])
    history = registers(feed_of(weights, inputs), 2, 2)
    assert history[2, REGISTERS.index("weight")].tolist() == [[1, 0], [0, 0]]  # the swap moves with the first input
    assert history[4, REGISTERS.index("weight")].tolist() == weights.tolist()
    assert history[2:7, REGISTERS.index("x"), 1, 1].tolist() == [0, 0, 6, 8, 10]


@pytest.mark.parametrize("number", range(len(REGISTERS)))
def test_one_wrong_register_of_one_cycle_is_found_and_named(number):
    enters = feed_of(np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]]))
    right = registers(enters, 2, 2).transpose(0, 2, 3, 1).tolist()
    assert_registers(right, enters, 2, 2)
    right[4][1][0][number] += 17
    with pytest.raises(WrongAnswer, match=rf"2 x 2 array, cycle 4, PE \(1, 0\): {REGISTERS[number]}: got"):
        assert_registers(right, enters, 2, 2)


def test_a_register_that_is_early_or_late_is_told_so():
    enters = feed_of(np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]]))
    late = registers(enters, 2, 2).transpose(0, 2, 3, 1).tolist()
    late[3][0][0] = late[2][0][0]
    with pytest.raises(WrongAnswer, match="what it should hold in the cycle before"):
        assert_registers(late, enters, 2, 2)


@pytest.mark.parametrize(
    "history",
    [None, [], 7, "0000000", [[[0] * 5] * 2] * 7, [[[[0, 0, 0, 0]] * 2] * 2] * 7, [[[[0.0] * 5] * 2] * 2] * 7,
     [[[[False] * 5] * 2] * 2] * 7, [[["00000"] * 2] * 2] * 7, [[[[10**5000] * 5] * 2] * 2] * 7],
)  # fmt: skip
def test_what_is_no_history_is_refused(history):
    enters = feed_of(np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]]))
    with hidden_values(), pytest.raises((WrongAnswer, ValueError)):
        assert_registers(history, enters, 2, 2)


def test_a_step_follows_the_order_of_swap_sum_and_load():
    chance = random.Random(3)
    for _ in range(50):
        before, x, swap, total = (
            (chance.randint(-9, 9), chance.randint(-9, 9)),
            chance.randint(-9, 9),
            chance.randint(0, 1),
            4,
        )
        above = chance.choice([None, 0, 5])
        # An array of one PE that holds `before`: its registers are set by a weight that swaps and another that follows.
        enters = [{"x": [0], "swap": [0], "weights": [before[0]]}, {"x": [0], "swap": [1], "weights": [before[1]]}]
        enters.append({"x": [x], "swap": [swap], "weights": None if above is None else [above]})
        weight, spare, x_out, swap_out, found = (int(value) for value in registers(enters, 1, 1)[-1, :, 0, 0])
        assert_step((weight, spare, x_out, swap_out, found + total), before, x, swap, total, above)
        with pytest.raises(WrongAnswer):
            assert_step((weight, spare, x_out, swap_out, found + total + 1), before, x, swap, total, above)


def test_a_product_and_its_cycles_are_compared():
    a, b = [[1, 2], [3, 4]], [[5], [6]]
    assert_product(([[17], [39]], 9), a, b, 9)
    for wrong in ([[[17], [39]], 8], [[[17], [38]], 9], [[[17, 39]], 9], [[[17], [39]]], ([[17.0], [39]], 9), None):
        with pytest.raises(WrongAnswer):
            assert_product(wrong, a, b, 9)
