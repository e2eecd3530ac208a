"""The processing elements of a systolic array, advanced one cycle at a time.

Each element has three registers and a multiplier. `right` holds what it hands to the neighbor on its right, `down`
what it hands to the neighbor below, `held` what stays. Nothing else connects the elements: operands enter at the left
and top edges, results leave at the bottom edge.

A chain of registers is stored as a *tape* that slides past the array, one place per cycle. The window over the array
holds the registers; values that have not entered yet are on one side of it, and values that have left are on the other.
So moving every value to its neighbor costs nothing, and a value that a fault changes in one element stays changed in
all elements that follow.

Independent folds advance together. Register arrays have the axes (col_folds, rows, cols, row_folds).
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.core.arguments import non_negative_int, one_of
from mlsys.errors import InvalidValue

PARTS = ("product", "held", "right", "down")
"""Parts that can be faulty: the multiplier's output and the three registers."""

Values = NDArray[np.number]


@dataclass(frozen=True, slots=True)
class Fault:
    """One part of one element that always reads `value`, from the first cycle to the last.

    With r rows and c columns of the array counted from 0, and matrix indices modulo the array's size, theory says what
    a fault in element (row, col) changes:

    - `product`: under "ws" and "is" the sums of that column, under "os" only the outputs of that element;
    - `held`: the same places, as if that one operand (or, under "os", that output) were `value`;
    - `right`: the row's operand for that element and all on its right, hence the outputs of columns `col` and after
      (under "os" only those of that row);
    - `down`: what passes there on its way down: the whole column `col`.

    Attributes:
        row: Row of the element, 0 at the top.
        col: Column of the element, 0 at the left.
        part: One of `PARTS`.
        value: What the part reads.
    """

    row: int
    col: int
    part: str
    value: float

    def __post_init__(self) -> None:
        non_negative_int("row", self.row)
        non_negative_int("col", self.col)
        one_of("part", self.part, PARTS)
        if not np.isfinite(self.value):
            raise InvalidValue(f"a fault's value must be finite, got {self.value!r}; a stuck wire reads some number")


@dataclass(frozen=True, slots=True)
class Registers:
    """The values in the elements at the end of one cycle: views that the next cycle changes.

    `tag` is the streamed step whose operand each element works on, -1 for none; it has the axes (rows, cols), because
    all folds are in step. `right` and `product` are missing while operands are loaded or results drained.
    """

    phase: str
    down: Values
    held: Values
    tag: NDArray[np.intp]
    right: Values | None = None
    product: Values | None = None


def _tags(stream: int, rows: int, cols: int) -> NDArray[np.intp]:
    """The tape that carries each operand's step number beside it, axes (rows, places)."""
    cycles = stream + rows + cols - 2
    tape = np.full((rows, cycles + cols - 1), -1, dtype=np.intp)
    for row in range(rows):
        tape[row, cycles - row - stream : cycles - row] = np.arange(stream)[::-1]
    return tape


def _entering_left(streams: Values, cols: int) -> Values:
    """The tape of the operands that enter at the left, row r one cycle after row r - 1, so that partners meet.

    Args:
        streams: Axes (steps, folds, rows, row_folds).
        cols: Columns of the array.
    """
    steps, folds, rows, row_folds = streams.shape
    cycles = steps + rows + cols - 2
    tape = np.zeros((folds, rows, cycles + cols - 1, row_folds), dtype=streams.dtype)
    backwards = streams[::-1]
    for row in range(rows):
        tape[:, row, cycles - row - steps : cycles - row] = np.moveaxis(backwards[:, :, row], 0, 1)
    return tape


def _entering_top(streams: Values, rows: int) -> Values:
    """The tape of the operands that enter at the top, column c one cycle after column c - 1.

    Args:
        streams: Axes (steps, folds, cols, row_folds).
        rows: Rows of the array.
    """
    steps, folds, cols, row_folds = streams.shape
    cycles = steps + rows + cols - 2
    tape = np.zeros((folds, cycles + rows - 1, cols, row_folds), dtype=streams.dtype)
    backwards = streams[::-1]
    for col in range(cols):
        tape[:, cycles - col - steps : cycles - col, col] = np.moveaxis(backwards[:, :, col], 0, 1)
    return tape


class HeldOperandArray:
    """An array that holds one operand while the other streams past and sums move down: "ws" and "is".

    Args:
        held: The operand that stays, axes (col_folds, rows, cols, row_folds).
        streams: The operand that enters at the left, axes (steps, 1, rows, row_folds); all folds along the columns see
            the same values.
        fault: A part that is stuck, if any.
    """

    def __init__(self, held: Values, streams: Values, fault: Fault | None = None) -> None:
        self._operand, self._fault = held, fault
        self.col_folds, self.rows, self.cols, self.row_folds = held.shape
        self.steps = len(streams)
        self._tags = _tags(self.steps, self.rows, self.cols)
        self._right = _entering_left(streams, self.cols)
        places = self.steps + 2 * self.rows + self.cols - 3
        self._down = np.zeros((self.col_folds, places, self.cols, self.row_folds), dtype=held.dtype)

    def run(self) -> Iterator[Registers]:
        """Load the held operand, then stream the other past it, one item per cycle."""
        held = yield from self._load()
        yield from self._compute(held)

    def _load(self) -> Generator[Registers, None, Values]:
        rows, fault = self.rows, self._fault
        tape = np.zeros((self.col_folds, 2 * rows - 1, self.cols, self.row_folds), dtype=self._operand.dtype)
        tape[:, :rows] = self._operand
        idle = np.full((rows, self.cols), -1, dtype=np.intp)
        empty = np.broadcast_to(self._operand.dtype.type(0), self._operand.shape)
        for first in reversed(range(rows)):
            down = tape[:, first : first + rows]
            if fault and fault.part == "down":
                down[:, fault.row, fault.col] = fault.value
            yield Registers("load", down, empty, idle)
        if fault and fault.part == "held":
            down[:, fault.row, fault.col] = fault.value
        return down

    def _compute(self, held: Values) -> Iterator[Registers]:
        rows, cols, fault = self.rows, self.cols, self._fault
        product = np.empty_like(held)
        latched = np.empty((1, rows, cols, self.row_folds), dtype=held.dtype)  # multiplying without gaps is faster
        for first in reversed(range(self.steps + rows + cols - 2)):
            right = self._right[:, :, first : first + cols]
            down = self._down[:, first : first + rows]
            if fault and fault.part == "right":
                right[:, fault.row, fault.col] = fault.value
            np.copyto(latched, right)
            np.multiply(latched, held, out=product)
            if fault and fault.part == "product":
                product[:, fault.row, fault.col] = fault.value
            np.add(down, product, out=down)
            if fault and fault.part == "down":
                down[:, fault.row, fault.col] = fault.value
            yield Registers("compute", down, held, self._tags[:, first : first + cols], right, product)

    def collected(self) -> Values:
        """What left the bottom edge, unskewed and added up over the row folds: axes (steps, col_folds, cols)."""
        after = self.steps + self.rows + self.cols - 2
        by_col = [
            np.einsum("gsf->sg", self._down[:, after - col - self.steps : after - col, col]) for col in range(self.cols)
        ]
        return np.stack(by_col, axis=-1)[::-1]


class HeldOutputArray:
    """An array that holds the sums while both operands stream past, and shifts the sums out at the end: "os".

    Args:
        left: The operand that enters at the left, axes (steps, 1, rows, row_folds).
        top: The operand that enters at the top, axes (steps, col_folds, cols, row_folds).
        fault: A part that is stuck, if any.
    """

    def __init__(self, left: Values, top: Values, fault: Fault | None = None) -> None:
        self._fault = fault
        self.steps, _, self.rows, self.row_folds = left.shape
        _, self.col_folds, self.cols, _ = top.shape
        self._tags = _tags(self.steps, self.rows, self.cols)
        self._right = _entering_left(left, self.cols)
        self._down = _entering_top(top, self.rows)
        self._sums = np.zeros((self.col_folds, self.rows, self.cols, self.row_folds), dtype=top.dtype)
        self._drained = np.zeros((self.col_folds, 2 * self.rows - 1, self.cols, self.row_folds), dtype=top.dtype)

    def run(self) -> Iterator[Registers]:
        """Stream both operands, then drain the sums through the bottom edge, one item per cycle."""
        yield from self._compute()
        yield from self._drain()

    def _compute(self) -> Iterator[Registers]:
        rows, cols, fault, held = self.rows, self.cols, self._fault, self._sums
        product = np.empty_like(held)
        latched = np.empty((1, rows, cols, self.row_folds), dtype=held.dtype)  # multiplying without gaps is faster
        for first in reversed(range(self.steps + rows + cols - 2)):
            right = self._right[:, :, first : first + cols]
            down = self._down[:, first : first + rows]
            tag = self._tags[:, first : first + cols]
            if fault and fault.part == "right":
                right[:, fault.row, fault.col] = fault.value
            if fault and fault.part == "down":
                down[:, fault.row, fault.col] = fault.value
            np.copyto(latched, right)
            np.multiply(latched, down, out=product)
            # A sum takes in a product only while its operands are there: their tag moves with them.
            if fault and fault.part == "product" and tag[fault.row, fault.col] >= 0:
                product[:, fault.row, fault.col] = fault.value
            np.add(held, product, out=held)
            if fault and fault.part == "held":
                held[:, fault.row, fault.col] = fault.value
            yield Registers("compute", down, held, tag, right, product)

    def _drain(self) -> Iterator[Registers]:
        rows, fault = self.rows, self._fault
        self._drained[:, rows - 1 :] = self._sums
        idle = np.full((rows, self.cols), -1, dtype=np.intp)
        for first in reversed(range(rows)):
            down = self._drained[:, first : first + rows]
            if fault and fault.part == "down":
                down[:, fault.row, fault.col] = fault.value
            yield Registers("drain", down, self._sums, idle)

    def collected(self) -> Values:
        """What left the bottom edge: axes (col_folds, rows, cols, row_folds)."""
        return self._drained[:, self.rows - 1 :]
