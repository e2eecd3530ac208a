"""Cut operands into folds, give them to an array, and put what it gives out back together."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlsys.core.arguments import int_at_most
from mlsys.errors import InvalidValue
from mlsys.systolic.array import Fault, HeldOperandArray, HeldOutputArray, Values
from mlsys.systolic.cycles import Folding

_TAPE_BYTES = 1 << 26
"""Folds advance together as long as one tape stays below this; more folds run in several batches."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Folds that advance together: a range along the rows times a range along the columns."""

    row_folds: slice
    col_folds: slice

    def used_rows(self, folding: Folding) -> NDArray[np.intp]:
        """Rows that each row fold fills."""
        first = np.arange(self.row_folds.start, self.row_folds.stop) * folding.rows
        return _clipped(folding.row_extent - first, folding.rows)

    def used_cols(self, folding: Folding) -> NDArray[np.intp]:
        """Columns that each column fold fills."""
        first = np.arange(self.col_folds.start, self.col_folds.stop) * folding.cols
        return _clipped(folding.col_extent - first, folding.cols)


def _clipped(left: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    return left.clip(max=size)


def batches(folding: Folding, itemsize: int) -> Iterator[Batch]:
    """All folds in batches whose tapes stay within bounds; `itemsize` is the bytes of a register."""
    one_fold = (folding.compute_cycles + folding.rows) * max(folding.rows, folding.cols) * itemsize
    at_once = max(1, _TAPE_BYTES // one_fold)
    along_rows = min(folding.row_folds, at_once)
    along_cols = min(folding.col_folds, max(1, at_once // along_rows))
    for col in range(0, folding.col_folds, along_cols):
        for row in range(0, folding.row_folds, along_rows):
            yield Batch(
                slice(row, min(row + along_rows, folding.row_folds)),
                slice(col, min(col + along_cols, folding.col_folds)),
            )


def array_of(
    moving: Values, other: Values, folding: Folding, batch: Batch, fault: Fault | None
) -> HeldOperandArray | HeldOutputArray:
    """The array with the operands of one batch of folds, padded with zeros to whole folds."""
    if folding.dataflow == "os":
        left = _pieces(moving.T, folding.rows, batch.row_folds)  # (k, folds, rows)
        top = _pieces(other, folding.cols, batch.col_folds)  # (k, folds, cols)
        top_of_each = np.broadcast_to(top[..., None], (*top.shape, left.shape[1]))
        return HeldOutputArray(left.swapaxes(1, 2)[:, None], top_of_each, fault)
    streams = _pieces(moving, folding.rows, batch.row_folds)  # (steps, folds, rows)
    by_row = _pieces(other.T, folding.rows, batch.row_folds)  # (col extent, folds, rows)
    held = _pieces(by_row.transpose(1, 2, 0), folding.cols, batch.col_folds)  # (folds, rows, folds, cols)
    return HeldOperandArray(held.transpose(2, 1, 3, 0), streams.swapaxes(1, 2)[:, None], fault)


def _pieces(matrix: Values, size: int, which: slice) -> Values:
    """Cut the last axis into pieces of `size`, pad the last one with zeros, and keep the pieces `which`."""
    part = matrix[..., which.start * size : which.stop * size]
    pieces = which.stop - which.start
    padded = np.zeros((*matrix.shape[:-1], pieces * size), dtype=matrix.dtype)
    padded[..., : part.shape[-1]] = part
    return padded.reshape(*matrix.shape[:-1], pieces, size)


def add_results(result: Values, array: HeldOperandArray | HeldOutputArray, folding: Folding, batch: Batch) -> None:
    """Write what the array gave out into C; sums over further folds of k add up there."""
    rows, cols = folding.rows, folding.cols
    collected = array.collected()
    if isinstance(array, HeldOutputArray):
        by_fold = collected.transpose(3, 1, 0, 2)
        whole = by_fold.reshape(by_fold.shape[0] * rows, -1)
        target = result[batch.row_folds.start * rows :, batch.col_folds.start * cols : batch.col_folds.stop * cols]
        target = target[: len(whole)]
    else:
        whole = collected.reshape(len(collected), -1)
        target = result[:, batch.col_folds.start * cols : batch.col_folds.stop * cols]
    target += whole[: target.shape[0], : target.shape[1]].astype(result.dtype, copy=False)


def operands(a: ArrayLike, b: ArrayLike, fault: Fault | None) -> tuple[Values, Values, np.dtype[np.number]]:
    """Both matrices in the number format that the registers work in, and the format of the result."""
    first, second = np.asarray(a), np.asarray(b)
    for name, matrix in (("a", first), ("b", second)):
        if matrix.ndim != 2 or matrix.dtype.kind not in "buif":
            raise InvalidValue(
                f"{name} must be a matrix of real numbers, got shape {matrix.shape} of {matrix.dtype}; "
                "a vector becomes one with reshape(1, -1) or reshape(-1, 1)"
            )
    if first.shape[1] != second.shape[0]:
        raise InvalidValue(
            f"a has {first.shape[1]} columns but b has {second.shape[0]} rows; in C = A B both are k, "
            f"so b must have {first.shape[1]} rows"
        )
    stuck = 0.0 if fault is None else float(fault.value)
    if first.dtype.kind == "f" or second.dtype.kind == "f":
        registers = result = np.result_type(first, second, np.float32)
    elif not stuck.is_integer():
        registers = result = np.dtype(np.float64)
    else:
        registers, result = _exact_type(first, second, abs(int(stuck))), np.dtype(np.int64)
    return first.astype(registers), second.astype(registers), result


def _exact_type(a: Values, b: Values, stuck: int) -> np.dtype[np.number]:
    """The fastest format in which every sum of these integers is exact (beyond int64 sums wrap, as in NumPy)."""
    peak = [max(int(x.max(initial=0)), -int(x.min(initial=0)), stuck) for x in (a, b)]
    largest_sum = a.shape[1] * max(peak[0] * peak[1], stuck)
    return np.dtype(np.float32 if largest_sum < 1 << 24 else np.float64 if largest_sum < 1 << 53 else np.int64)


def check_inside(fault: Fault | None, rows: int, cols: int) -> None:
    """Raise InvalidValue when the fault is outside the array."""
    if fault is not None:
        int_at_most("row of the fault, counted from 1,", fault.row + 1, rows, f"the array has {rows} rows")
        int_at_most("column of the fault, counted from 1,", fault.col + 1, cols, f"the array has {cols} columns")
