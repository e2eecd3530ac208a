"""Check the simulation of a systolic array that a student writes, register by register and cycle by cycle.

Each processing element (PE) has five registers:

- `weight`, which it multiplies with, and `spare`, the weight of the next tile on its way down;
- `x` and `swap`, what has come from the left: an input, and whether a new tile begins with it;
- `sum`, which its neighbor below reads in the next cycle.

A feed says what enters at the edges, one dict for each cycle: "x" and "swap" with one int for each row, and "weights",
a list with one int for each column, or None in a cycle in which no weights move. All registers are 0 at the beginning,
and all change at the same time, at the end of a cycle.

>>> one = {"x": [3], "swap": [1], "weights": None}
>>> [list(map(int, each)) for each in registers([{"x": [0], "swap": [0], "weights": [5]}, one], 1, 1)[:, :, 0, 0]]
[[0, 5, 0, 0, 0], [5, 5, 3, 1, 15]]
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.grading.checks.assertions import assert_equal, shown
from mlsys.grading.verdicts import WrongAnswer

REGISTERS = ("weight", "spare", "x", "swap", "sum")
"""Registers of a PE, in the order in which a student returns them."""

Feed = Sequence[dict[str, Any]]


def registers(feed: Feed, rows: int, cols: int) -> NDArray[np.int64]:
    """Return what all registers hold at the end of each cycle: axes (cycles, registers, rows, cols).

    Args:
        feed: what enters in each cycle.
        rows: rows of the array.
        cols: columns of the array.
    """
    weight, spare, x, swap, total = (np.zeros((rows, cols), dtype=np.int64) for _ in REGISTERS)
    history = []
    for enters in feed:
        x = np.column_stack([np.array(enters["x"], dtype=np.int64), x[:, :-1]])
        swap = np.column_stack([np.array(enters["swap"], dtype=np.int64), swap[:, :-1]])
        weight = np.where(swap == 1, spare, weight)
        total = np.vstack([np.zeros((1, cols), dtype=np.int64), total[:-1]]) + x * weight
        if enters["weights"] is not None:
            spare = np.vstack([np.array([enters["weights"]], dtype=np.int64), spare[:-1]])
        history.append(np.stack([weight, spare, x, swap, total]))
    return np.stack(history)


def assert_step(found: object, before: Sequence[int], x: int, swap: int, total: int, weight_above: int | None) -> None:
    """Raise `WrongAnswer` unless one PE has done one cycle rightly.

    Args:
        found: what the student's function returned: the five registers at the end of the cycle.
        before: `weight` and `spare` at the end of the cycle before.
        x: what comes from the left.
        swap: 1 if a tile begins with it, else 0.
        total: the sum that comes from above.
        weight_above: what the spare register above holds, or None if no weights move.
    """
    what = f"weight={before[0]}, spare={before[1]}, x={x}, swap={swap}, sum_above={total}, weight_above={weight_above}"
    weight = before[1] if swap else before[0]
    spare = before[1] if weight_above is None else weight_above
    right = (weight, spare, x, swap, total + x * weight)
    for name, value, due in zip(REGISTERS, _list(found, len(REGISTERS), f"{what}: the PE"), right, strict=True):
        assert_equal(value, due, what=f"{what}: {name}")


def assert_registers(found: object, feed: Feed, rows: int, cols: int) -> None:
    """Raise `WrongAnswer` unless a simulation has the right number in every register of every cycle.

    Args:
        found: what the student's function returned: for each cycle, for each row, for each column the five registers.
        feed: what enters in each cycle.
        rows: rows of the array.
        cols: columns of the array.
    """
    right = registers(feed, rows, cols)
    size = f"{rows} x {cols} array"
    cycles = _list(found, len(feed), f"{size}: the list of cycles")
    for cycle, grid in enumerate(cycles):
        where = f"{size}, cycle {cycle}"
        for row, line in enumerate(_list(grid, rows, f"{where}: the grid")):
            for col, element in enumerate(_list(line, cols, f"{where}: row {row}")):
                place = f"{where}, PE ({row}, {col})"
                values = _list(element, len(REGISTERS), place)
                for number, (name, value) in enumerate(zip(REGISTERS, values, strict=True)):
                    due = int(right[cycle, number, row, col])
                    if type(value) is int and value == due:
                        continue
                    if len(cycles) > 1 and len(set(map(repr, cycles))) == 1:
                        raise WrongAnswer(
                            f"{size}: all {len(cycles)} cycles are the same. Make a new grid for each cycle."
                        )
                    _explain(value, due, f"{place}: {name}", right[:, number, row, col], cycle)


def _explain(value: object, due: int, what: str, over_time: NDArray[np.int64], cycle: int) -> None:
    """Raise what `assert_equal` does, and say if the register has the right number at the wrong time."""
    try:
        assert_equal(value, due, what=what)
    except WrongAnswer as error:
        times = {"in the cycle before": cycle - 1, "one cycle later": cycle + 1}
        known = type(value) is int and value != 0
        fits = [when for when, at in times.items() if known and 0 <= at < len(over_time) and over_time[at] == value]
        hint = f"\n  This is what it should hold {fits[0]}." if fits else ""
        raise WrongAnswer(f"{error}{hint}") from None


def assert_product(found: object, a: Sequence[Sequence[int]], b: Sequence[Sequence[int]], cycles: int) -> None:
    """Raise `WrongAnswer` unless a product of integer matrices and its count of cycles are right.

    Args:
        found: what the student's function returned: (C as nested lists, cycles).
        a: A, m lists of k ints.
        b: B, k lists of n ints.
        cycles: the right count.
    """
    m, k, n = len(a), len(b), len(b[0])
    what = f"m={m}, n={n}, k={k}"
    if not (isinstance(found, list | tuple) and len(found) == 2 and type(found[1]) is int):
        raise WrongAnswer(f"{what}: return the pair (C, cycles), with cycles as an int; got {shown(found)}")
    product, counted = found
    right = np.array(a, dtype=np.int64) @ np.array(b, dtype=np.int64)
    for i, row in enumerate(_list(product, m, f"{what}: C")):
        for j, value in enumerate(_list(row, n, f"{what}: C[{i}]")):
            assert_equal(value, int(right[i, j]), what=f"{what}: C[{i}][{j}]")
    assert_equal(counted, cycles, what=f"{what}: cycles")


def _list(value: object, length: int, what: str) -> list[object]:
    if not isinstance(value, list | tuple):
        raise WrongAnswer(f"{what} must be a list or a tuple, got {shown(value)}")
    if len(value) != length:
        raise WrongAnswer(f"{what} must have length {length}, got {len(value)}")
    return list(value)
