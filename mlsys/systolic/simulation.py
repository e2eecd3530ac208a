"""Run a matrix product on the systolic array, all folds at once, and count what happens."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mlsys.systolic.accesses import SramAccesses
from mlsys.systolic.array import Fault, Values
from mlsys.systolic.cycles import Folding
from mlsys.systolic.folds import add_results, array_of, batches, check_inside, operands


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """The product and the counts of one run, taken while it ran.

    Attributes:
        product: C = A B, read at the array's edge.
        cycles: Cycles of all folds, one after another.
        folds: Count of folds.
        macs: Multiply-accumulates on real operands, not on padding.
        sram: Elements that crossed the array's edges.
        elements: rows x cols.
    """

    product: Values
    cycles: int
    folds: int
    macs: int
    sram: SramAccesses
    elements: int

    @property
    def utilization(self) -> float:
        """Share of element-cycles that did useful work: macs / (elements cycles)."""
        return self.macs / (self.elements * self.cycles)


def simulate(
    a: ArrayLike,
    b: ArrayLike,
    *,
    rows: int,
    cols: int,
    dataflow: str,
    drain: bool = True,
    fault: Fault | None = None,
) -> Simulation:
    """Compute C[m, n] = A[m, k] B[k, n] cycle by cycle on a rows x cols array.

    Integers are computed exactly; the result is int64. Floating-point operands keep their type (at least float32), and
    each sum adds its products in the order in which the array computes them.

    Args:
        a: The inputs, (m, k).
        b: The weights, (k, n).
        rows: Rows of the array.
        cols: Columns of the array.
        dataflow: "ws", "os" or "is".
        drain: Count the cycles in which an output-stationary array moves its results out (see `gemm_cycles`). The
            results are moved out either way.
        fault: A stuck part of one element, if any.

    Raises:
        InvalidValue: Operands that are no real matrices of matching shapes, a size that is no positive integer, an
            unknown dataflow, or a fault outside the array.

    >>> run = simulate([[2, 4], [1, 3]], [[1, 3], [5, 2]], rows=2, cols=2, dataflow="os")
    >>> run.product.tolist(), run.cycles, run.macs
    ([[22, 14], [16, 9]], 6, 8)
    """
    a, b, result_type = operands(a, b, fault)
    (m, k), n = a.shape, b.shape[1]
    folding = Folding.of(m, n, k, rows=rows, cols=cols, dataflow=dataflow)
    check_inside(fault, rows, cols)
    moving, other = (b.T, a.T) if dataflow == "is" else (a, b)  # "is" is "ws" of the transposed product
    result = np.zeros((len(moving), other.shape[1]), dtype=result_type)
    cycles = macs = left = still = vertical = 0
    for batch in batches(folding, a.dtype.itemsize):
        array = array_of(moving, other, folding, batch, fault)
        per_fold, busy = 0, np.zeros((rows, cols), dtype=np.int64)
        for registers in array.run():
            per_fold += drain or registers.phase != "drain"
            busy += registers.tag >= 0
        add_results(result, array, folding, batch)
        used_rows, used_cols = batch.used_rows(folding), batch.used_cols(folding)
        cycles += per_fold * len(used_rows) * len(used_cols)
        macs += int(busy.cumsum(axis=0).cumsum(axis=1)[np.ix_(used_rows - 1, used_cols - 1)].sum())
        left += int(busy[:, 0].cumsum()[used_rows - 1].sum()) * len(used_cols)
        still += int(used_rows.sum() * used_cols.sum())
        vertical += int(busy[0].cumsum()[used_cols - 1].sum()) * len(used_rows)
    sram = {
        "ws": SramAccesses(left, still, vertical, vertical - m * n),
        "os": SramAccesses(left, vertical, still, 0),
        "is": SramAccesses(still, left, vertical, vertical - m * n),
    }[dataflow]
    return Simulation(result.T if dataflow == "is" else result, cycles, folding.folds, macs, sram, rows * cols)
