"""Step through a matrix product on a small systolic array and see the registers of every element."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlsys.systolic.array import Fault, Values
from mlsys.systolic.cycles import Folding
from mlsys.systolic.folds import Batch, array_of, check_inside, operands


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The registers of a small array at the end of one cycle, for drawing; all arrays are (rows, cols).

    Attributes:
        cycle: Cycle since the start, from 0; draining is counted.
        fold: (row fold, column fold), from 0.
        phase: "load", "compute" or "drain".
        right: What each element hands to the right next.
        down: What each element hands down next; the bottom row leaves the array.
        held: What stays.
        product: What the multiplier shows; 0 when idle.
        tag: Streamed step that the element works on, -1 for none.
        active: Elements that multiply real operands, not padding.
    """

    cycle: int
    fold: tuple[int, int]
    phase: str
    right: Values
    down: Values
    held: Values
    product: Values
    tag: NDArray[np.intp]
    active: NDArray[np.bool_]


def frames(
    a: ArrayLike, b: ArrayLike, *, rows: int, cols: int, dataflow: str, fault: Fault | None = None
) -> Iterator[Frame]:
    """Step through the product of `simulate`, one cycle per `next`, folds one after another, draining included.

    The arguments and errors are those of `simulate`. The count of frames is `gemm_cycles(...)`.

    >>> steps = frames([[2, 4], [1, 3]], [[1, 3], [5, 2]], rows=2, cols=2, dataflow="os")
    >>> first, second = next(steps), next(steps)
    >>> first.held.tolist(), second.held.tolist()
    ([[2, 0], [0, 0]], [[22, 6], [1, 0]])
    """
    a, b, result_type = operands(a, b, fault)
    folding = Folding.of(len(a), b.shape[1], a.shape[1], rows=rows, cols=cols, dataflow=dataflow)
    check_inside(fault, rows, cols)
    moving, other = (b.T, a.T) if dataflow == "is" else (a, b)
    return _frames(moving.astype(result_type), other.astype(result_type), folding, fault)


def _frames(moving: Values, other: Values, folding: Folding, fault: Fault | None) -> Iterator[Frame]:
    cycle = 0
    for col_fold, row_fold in np.ndindex(folding.col_folds, folding.row_folds):
        batch = Batch(slice(row_fold, row_fold + 1), slice(col_fold, col_fold + 1))
        used = np.zeros((folding.rows, folding.cols), dtype=bool)
        used[: batch.used_rows(folding)[0], : batch.used_cols(folding)[0]] = True
        for registers in array_of(moving, other, folding, batch, fault).run():
            right, down, held, product = (
                np.zeros(used.shape, dtype=moving.dtype) if values is None else values[0, :, :, 0].copy()
                for values in (registers.right, registers.down, registers.held, registers.product)
            )
            tag = registers.tag.copy()
            active = used & (tag >= 0)
            yield Frame(cycle, (row_fold, col_fold), registers.phase, right, down, held, product, tag, active)
            cycle += 1
