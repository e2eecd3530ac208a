"""Closed-form cycles of a matrix product on a systolic array.

The count is the formula 2R + C + L - 2 per fold of SCALE-Sim (Samajdar et al., A Systematic Methodology for
Characterizing Scalability of DNN Accelerators using SCALE-Sim, ISPASS 2020). Runs of its second version are the golden
numbers of the tests; that program leaves out the cycles in which an output-stationary array drains.
"""

from dataclasses import dataclass

from mlsys.core.arguments import one_of, positive_int

DATAFLOWS = ("ws", "os", "is")
"""Weight, output and input stationary."""


@dataclass(frozen=True, slots=True)
class Folding:
    """How C[m, n] = A[m, k] B[k, n] is cut into pieces that fit a rows x cols array.

    =========  ==============  =================  ======================
    dataflow   along the rows  along the columns  streamed, step by step
    =========  ==============  =================  ======================
    ws         k               n                  m
    os         m               n                  k
    is         k               m                  n
    =========  ==============  =================  ======================

    The piece that is held is at most rows x cols; each piece is a *fold*, and folds run one after another.
    """

    dataflow: str
    rows: int
    cols: int
    row_extent: int
    col_extent: int
    stream: int

    @classmethod
    def of(cls, m: int, n: int, k: int, *, rows: int, cols: int, dataflow: str) -> "Folding":
        """Return the folding of an (m, n, k) product.

        Raises:
            InvalidValue: A size that is no positive integer, or an unknown dataflow.

        >>> Folding.of(4096, 4096, 4096, rows=128, cols=128, dataflow="ws").folds
        1024
        """
        m, n, k = positive_int("m", m), positive_int("n", n), positive_int("k", k)
        rows, cols = positive_int("rows", rows), positive_int("cols", cols)
        one_of("dataflow", dataflow, DATAFLOWS)
        row_extent, col_extent, stream = {"ws": (k, n, m), "os": (m, n, k), "is": (k, m, n)}[dataflow]
        return cls(dataflow, rows, cols, row_extent, col_extent, stream)

    @property
    def row_folds(self) -> int:
        """Pieces along the array's rows: ceil(row_extent / rows)."""
        return -(-self.row_extent // self.rows)

    @property
    def col_folds(self) -> int:
        """Pieces along the array's columns: ceil(col_extent / cols)."""
        return -(-self.col_extent // self.cols)

    @property
    def folds(self) -> int:
        """All pieces: row_folds x col_folds."""
        return self.row_folds * self.col_folds

    @property
    def load_cycles(self) -> int:
        """Cycles to shift the held operand in from the top, row by row; an output-stationary array holds none."""
        return 0 if self.dataflow == "os" else self.rows

    @property
    def compute_cycles(self) -> int:
        """Cycles from the first multiply to the last: the far corner starts rows + cols - 2 cycles late."""
        return self.stream + self.rows + self.cols - 2

    @property
    def drain_cycles(self) -> int:
        """Cycles to shift held outputs out at the bottom; otherwise they leave while the array computes."""
        return self.rows if self.dataflow == "os" else 0


def gemm_cycles(m: int, n: int, k: int, *, rows: int, cols: int, dataflow: str, drain: bool = True) -> int:
    """Return the cycles that C[m, n] = A[m, k] B[k, n] needs on a rows x cols array.

    Per fold, with R rows, C columns and L streamed steps (see `Folding`), every dataflow needs 2R + C + L - 2 cycles:
    L + R + C - 2 to stream, and R more to move the held matrix in ("ws", "is", before) or out ("os", after). So the
    dataflows are counted by the same rule, and nothing of one fold overlaps with the next.

    A fold that fills only part of the array takes as long as a full one: the schedule does not change.

    Args:
        m: Rows of A and C.
        n: Columns of B and C.
        k: Columns of A, rows of B.
        rows: Rows of the array.
        cols: Columns of the array.
        dataflow: "ws", "os" or "is".
        drain: Count the R cycles in which an output-stationary array moves its results out. False leaves them out, as
            the program SCALE-Sim does: then "os" looks faster than "ws" and "is", which still pay for loading, so use
            it only to compare with that program.

    Returns:
        The count of cycles, which is the index of the last cycle plus one.

    Raises:
        InvalidValue: A size that is no positive integer, or an unknown dataflow.

    >>> gemm_cycles(128, 64, 256, rows=32, cols=32, dataflow="os")
    2800
    >>> gemm_cycles(128, 64, 256, rows=32, cols=32, dataflow="os", drain=False)
    2544
    """
    folding = Folding.of(m, n, k, rows=rows, cols=cols, dataflow=dataflow)
    per_fold = folding.load_cycles + folding.compute_cycles + (folding.drain_cycles if drain else 0)
    return folding.folds * per_fold


def utilization(m: int, n: int, k: int, *, rows: int, cols: int, dataflow: str, drain: bool = True) -> float:
    """Return the share of multiply-accumulate slots that do useful work: m n k / (rows cols cycles).

    Arguments and errors are those of `gemm_cycles`.

    >>> round(utilization(4096, 128, 128, rows=128, cols=128, dataflow="ws"), 3)
    0.915
    """
    cycles = gemm_cycles(m, n, k, rows=rows, cols=cols, dataflow=dataflow, drain=drain)
    return m * n * k / (rows * cols * cycles)


def stream_efficiency(stream: int, *, rows: int, cols: int) -> float:
    """Return the busy share of a full array whose held operand is already loaded: L / (L + R + C - 2).

    Args:
        stream: Steps L that pass through, such as the batch of a weight-stationary layer.
        rows: Rows R of the array.
        cols: Columns C of the array.

    Raises:
        InvalidValue: A size that is no positive integer.

    >>> [round(100 * stream_efficiency(batch, rows=128, cols=128), 1) for batch in (1, 8, 128, 1024, 4096)]
    [0.4, 3.1, 33.5, 80.1, 94.2]
    """
    stream = positive_int("stream", stream)
    return stream / (stream + positive_int("rows", rows) + positive_int("cols", cols) - 2)


def fringe_efficiency(extent: int, size: int) -> float:
    """Return the share of an array's side that a matrix side fills: extent / (ceil(extent / size) size).

    Args:
        extent: Side of the matrix.
        size: Side of the array.

    Raises:
        InvalidValue: A size that is no positive integer.

    >>> round(fringe_efficiency(129, 128), 3), fringe_efficiency(300, 128)
    (0.504, 0.78125)
    """
    extent, size = positive_int("extent", extent), positive_int("size", size)
    return extent / (-(-extent // size) * size)
