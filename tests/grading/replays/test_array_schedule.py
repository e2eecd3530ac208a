"""The replay of labels against arrays that multiply real numbers, and against all schedules of tiny arrays."""

import random
from itertools import product

import numpy as np
import pytest

from mlsys.grading import WrongAnswer
from mlsys.grading.replays.array_schedule import (
    MAX_CYCLE,
    assert_double_buffered,
    assert_output_stationary,
    assert_weight_stationary,
)
from mlsys.systolic import frames, gemm_cycles

SIZES = [(1, 1, 1), (2, 2, 2), (3, 2, 4), (2, 5, 3), (4, 3, 1), (1, 4, 3)]


def skewed_os(m, n, k, late=0):
    a = late + np.add.outer(np.arange(m), np.arange(k))
    b = late + np.add.outer(np.arange(k), np.arange(n))
    return {"a": a.tolist(), "b": b.tolist()}


def skewed_ws(m, n, k, start=None):
    start = k if start is None else start
    return {
        "b": [[k - 1 - p] * n for p in range(k)],
        "a": [[start + i + p for p in range(k)] for i in range(m)],
        "c": [[start + i + k - 1 + j for j in range(n)] for i in range(m)],
    }


def buffered(folds, m, rows, cols, period=None):
    swap = [rows + fold * (period or max(m, 2 * rows - 1)) for fold in range(folds)]
    return {
        "swap": swap,
        "b": [[[start + j - 1 - p for j in range(cols)] for p in range(rows)] for start in swap],
        "a": [[[start + i + p for p in range(rows)] for i in range(m)] for start in swap],
    }


def accepted(check, *args):
    try:
        check(*args)
    except WrongAnswer:
        return False
    return True


def os_product(schedule, a, b):
    """C by an array of registers that holds numbers; nothing is known about which ones should meet."""
    (m, k), n = a.shape, b.shape[1]
    right, down, sums = (np.zeros((m, n)) for _ in range(3))
    cycles = 0
    for cycle in range(30):
        right, down = np.roll(right, 1, axis=1), np.roll(down, 1, axis=0)
        right[:, 0] = down[0] = 0
        for i, p in product(range(m), range(k)):
            right[i, 0] += a[i, p] * (schedule["a"][i][p] == cycle)
        for p, j in product(range(k), range(n)):
            down[0, j] += b[p, j] * (schedule["b"][p][j] == cycle)
        sums += right * down
        cycles = cycle + 1 if (right * down).any() else cycles
    return sums, cycles


def ws_product(schedule, a, b):
    """C by an array of registers in which weights are pushed down and sums run, read when the schedule says."""
    (m, k), n = a.shape, b.shape[1]
    right, held, sums = (np.zeros((k, n)) for _ in range(3))
    result, cycles = np.zeros((m, n)), 0
    for cycle in range(30):
        right = np.roll(right, 1, axis=1)
        right[:, 0] = 0
        for i, p in product(range(m), range(k)):
            right[p, 0] += a[i, p] * (schedule["a"][i][p] == cycle)
        sums = np.roll(sums, 1, axis=0)
        sums[0] = 0
        sums += right * held
        cycles = cycle + 1 if right.any() else cycles
        for i, j in product(range(m), range(n)):
            if schedule["c"][i][j] == cycle:
                result[i, j] = sums[-1, j]
        for j in range(n):
            entering = [b[p, j] for p in range(k) if schedule["b"][p][j] == cycle]
            if entering:
                held[1:, j] = held[:-1, j].copy()
                held[0, j] = sum(entering)
    return result, cycles


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_skewed_schedules_are_right(size):
    assert_output_stationary(skewed_os(*size), *size)
    assert_weight_stationary(skewed_ws(*size), *size)


@pytest.mark.parametrize("size", [(2, 2, 2), (3, 2, 4)], ids=str)
def test_the_package_draws_the_same_schedules(size):
    m, n, k = size
    a, b = np.arange(1, m * k + 1).reshape(m, k), 100 + np.arange(k * n).reshape(k, n)
    steps = [step for step in frames(a, b, rows=m, cols=n, dataflow="os") if step.phase == "compute"]
    left = {(i, step.right[i, 0]): step.cycle for step in steps for i in range(m)}
    assert skewed_os(*size)["a"] == [[left[i, a[i, p]] for p in range(k)] for i in range(m)]
    steps = list(frames(a, b, rows=k, cols=n, dataflow="ws"))
    top = {(j, step.down[0, j]): step.cycle for step in steps if step.phase == "load" for j in range(n)}
    left = {(p, step.right[p, 0]): step.cycle for step in steps if step.phase == "compute" for p in range(k)}
    assert skewed_ws(*size)["b"] == [[top[j, b[p, j]] for j in range(n)] for p in range(k)]
    assert skewed_ws(*size)["a"] == [[left[p, a[i, p]] for p in range(k)] for i in range(m)]


@pytest.mark.parametrize(("check", "make", "multiply"), [
    (assert_output_stationary, skewed_os, os_product),
    (assert_weight_stationary, skewed_ws, ws_product),
], ids=["os", "ws"])  # fmt: skip
def test_what_the_replay_accepts_multiplies_rightly_and_what_it_refuses_does_not(check, make, multiply):
    chance = random.Random(3)
    numbers = np.random.default_rng(3)
    right = wrong = 0
    for _ in range(400):
        m, n, k = (chance.randint(1, 4) for _ in "mnk")
        schedule = make(m, n, k)
        order = list(range(k))
        if chance.random() < 0.5 and check is assert_output_stationary:  # any order of k that both operands follow
            chance.shuffle(order)
            schedule = {"a": [[row[p] for p in order] for row in schedule["a"]], "b": [schedule["b"][p] for p in order]}
        for _ in range(chance.choice([0, 0, 1, 2])):
            row = chance.choice(schedule[chance.choice(sorted(schedule))])
            at = chance.randrange(len(row))
            row[at] = max(0, row[at] + chance.choice([-1, 1, 2]))
        a, b = numbers.integers(1, 10**6, (m, k)), numbers.integers(1, 10**6, (k, n))
        result, cycles = multiply(schedule, a, b)
        dataflow, rows = ("os", m) if make is skewed_os else ("ws", k)
        least = gemm_cycles(m, n, k, rows=rows, cols=n, dataflow=dataflow, drain=False)
        good = np.array_equal(result, a @ b) and cycles <= least
        assert accepted(check, schedule, m, n, k) == good, schedule
        right, wrong = right + good, wrong + (not good)
    assert min(right, wrong) > 100


def test_no_schedule_of_a_tiny_array_is_shorter_than_the_limit():
    m, n, k = 1, 2, 2
    shortest = gemm_cycles(m, n, k, rows=m, cols=n, dataflow="os", drain=False)
    a, b = np.array([[3, 5]]), np.array([[7, 11], [13, 17]])
    found = []
    for times in product(range(shortest), repeat=m * k + k * n):
        schedule = {"a": [list(times[:2])], "b": [list(times[2:4]), list(times[4:])]}
        result, cycles = os_product(schedule, a, b)
        if np.array_equal(result, a @ b):
            found.append(cycles)
            assert accepted(assert_output_stationary, schedule, m, n, k) == (cycles <= shortest)
    assert min(found) == shortest


@pytest.mark.parametrize("size", [(1, 2, 3, 2), (3, 8, 3, 2), (4, 5, 3, 4), (3, 4, 3, 2), (3, 1, 4, 2), (2, 3, 1, 1)])
def test_double_buffering_takes_the_least_cycles_and_not_one_less(size):
    folds, m, rows, _ = size
    assert_double_buffered(buffered(*size), *size)
    if folds > 1:
        period = max(m, 2 * rows - 1)
        with pytest.raises(WrongAnswer, match="meets|enter"):
            assert_double_buffered(buffered(*size, period=period - 1), *size)
        with pytest.raises(WrongAnswer, match="are enough"):
            assert_double_buffered(buffered(*size, period=period + 1), *size)


def test_one_fold_on_the_doubled_array_takes_as_long_as_on_the_plain_one():
    schedule = buffered(1, 3, 4, 2)
    last = max(max(row) for row in schedule["a"][0]) + 2
    assert last == gemm_cycles(3, 2, 4, rows=4, cols=2, dataflow="ws")


def test_no_two_folds_of_one_column_can_be_closer():
    """All schedules of two folds on a 2 x 1 array with one input each, in one cycle less than the limit."""
    folds, m, rows, cols = 2, 1, 2, 1
    cycles = (folds - 1) * max(m, 2 * rows - 1) + gemm_cycles(m, cols, rows, rows=rows, cols=cols, dataflow="ws") - 1
    for times in product(range(cycles), repeat=4):
        for swap in product(range(cycles - rows + 1), repeat=2):
            schedule = {
                "b": [[[times[0]], [times[1]]], [[times[2]], [times[3]]]],
                "swap": list(swap),
                "a": [[[swap[0], swap[0] + 1]], [[swap[1], swap[1] + 1]]],
            }
            assert not accepted(assert_double_buffered, schedule, folds, m, rows, cols), schedule


MESSAGES = [
    ({"a": [[0, 1], [0, 1]], "b": [[0, 0], [1, 1]]}, r"PE \(0,1\) at cycle 0: b\[0,1\] meets nothing; it needs a"),
    ({"a": [[0, 1], [1, 2]], "b": [[1, 2], [0, 1]]}, r"PE \(0,0\) at cycle 0: a\[0,0\] meets b\[1,0\]; it needs b"),
    ({"a": [[0, 0], [1, 2]], "b": [[0, 1], [1, 2]]}, r"a\[0,0\] and a\[0,1\] both enter row 0 in cycle 0"),
    (skewed_os(2, 2, 2, late=3), "last multiplication is in cycle 6, so the array needs 7 cycles; 4 are enough"),
    ({"a": [[0, 1]], "b": [[0, 1], [1, 2]]}, "a must have length 2, got 1"),
    ({"a": [[0], [1, 2]], "b": [[0, 1], [1, 2]]}, r"a\[0\] must have length 2, got 1"),
    ({"a": [[0, 1.0], [1, 2]], "b": [[0, 1], [1, 2]]}, r"a\[0\]\[1\] must be a plain int, got 1.0, a float"),
    ({"a": [[0, True], [1, 2]], "b": [[0, 1], [1, 2]]}, r"a\[0\]\[1\] must be a plain int, got True, a bool"),
    ({"a": [[0, np.int64(1)], [1, 2]], "b": [[0, 1], [1, 2]]}, "must be a plain int, got .*, an int64"),
    ({"a": [[0, -1], [1, 2]], "b": [[0, 1], [1, 2]]}, f"must be a cycle from 0 to {MAX_CYCLE}, got -1"),
    ({"a": [[0, 10**40], [1, 2]], "b": [[0, 1], [1, 2]]}, f"must be a cycle from 0 to {MAX_CYCLE}, got 1000"),
    ({"a": np.zeros((2, 2), int), "b": [[0, 1], [1, 2]]}, "a must be a list"),
    ({"a": [[0, 1], [1, 2]]}, 'return a dict with the keys "a", "b", got'),
    (None, "return a dict"),
]  # fmt: skip


@pytest.mark.parametrize(("schedule", "message"), MESSAGES)
def test_a_message_says_what_met_what(schedule, message):
    with pytest.raises(WrongAnswer, match=message):
        assert_output_stationary(schedule, 2, 2, 2)


def test_messages_of_an_array_that_keeps_its_weights():
    cases = {
        r"PE \(0,0\) at cycle 1: a\[0,0\] meets b\[1,0\]; it needs b\[0,0\]": skewed_ws(2, 2, 2, start=1),
        r"PE \(0,0\) at cycle 0: a\[0,0\] meets no weight": skewed_ws(2, 2, 2, start=0),
        r"c\[0,0\] leaves column 0 in cycle 4; in the replay c\[1,0\] leaves": skewed_ws(2, 2, 2)
        | {"c": [[4, 4], [4, 5]]},
        r"PE \(1,0\) at cycle 2: a\[0,1\] meets no sum from above": skewed_ws(2, 2, 2) | {"a": [[2, 2], [3, 3]]},
        r"PE \(1,0\) at cycle 3: the sum for c\[0,0\] comes from above and meets no input": skewed_ws(2, 2, 2)
        | {"a": [[2, 4], [3, 5]]},
        r"PE \(0,0\) at cycle 2: a\[0,0\] meets b\[1,0\]": skewed_ws(2, 2, 2) | {"b": [[0, 0], [1, 1]]},
    }
    for message, schedule in cases.items():
        with pytest.raises(WrongAnswer, match=message):
            assert_weight_stationary(schedule, 2, 2, 2)


def test_swaps_must_rise():
    with pytest.raises(WrongAnswer, match="swap must rise"):
        assert_double_buffered(buffered(2, 2, 2, 2) | {"swap": [5, 2]}, 2, 2, 2, 2)


def shifted(schedule, first):
    """The schedule with its cycles counted from another number."""
    if isinstance(schedule, dict):
        return {name: shifted(part, first) for name, part in schedule.items()}
    return [shifted(part, first) for part in schedule] if isinstance(schedule, list) else schedule + first


@pytest.mark.parametrize("first", [1, 7])
def test_cycles_can_be_counted_from_another_number_which_messages_use_too(first):
    for check, right, sizes in (
        (assert_output_stationary, skewed_os(2, 3, 4), (2, 3, 4)),
        (assert_weight_stationary, skewed_ws(2, 3, 4), (2, 3, 4)),
        (assert_double_buffered, buffered(2, 3, 2, 2), (2, 3, 2, 2)),
    ):
        check(shifted(right, first), *sizes, first=first)
        with pytest.raises(WrongAnswer):
            check(right, *sizes, first=first)
    with pytest.raises(WrongAnswer, match=rf"a\[0\]\[0\] must be a cycle from {first} to {MAX_CYCLE + first}, got 0"):
        assert_output_stationary(skewed_os(2, 2, 2), 2, 2, 2, first=first)
    late = shifted(skewed_os(2, 2, 2, late=1), first)
    with pytest.raises(
        WrongAnswer, match=rf"the last multiplication is in cycle {first + 4}, so the array needs 5 cycles"
    ):
        assert_output_stationary(late, 2, 2, 2, first=first)
    wrong = shifted({"a": [[0, 1]], "b": [[1], [2]]}, first)
    with pytest.raises(WrongAnswer, match=rf"PE \(0,0\) at cycle {first}: a\[0,0\] meets nothing"):
        assert_output_stationary(wrong, 1, 1, 2, first=first)
