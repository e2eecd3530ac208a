"""Closed-form memory accesses of a matrix product on a systolic array, in elements.

Three on-chip memories feed the array, as in SCALE-Sim (Samajdar et al., ISPASS 2020): one for the inputs A, one for the
weights B, one for the outputs C. Folds run column by column: all folds along the array's rows for the first piece of
columns, then the next.
"""

from dataclasses import dataclass

from mlsys.core.arguments import positive_int
from mlsys.errors import InvalidValue
from mlsys.systolic.cycles import Folding


@dataclass(frozen=True, slots=True)
class SramAccesses:
    """Elements that cross between the array and its on-chip memories."""

    input_reads: int
    weight_reads: int
    output_writes: int
    output_reads: int

    @property
    def total(self) -> int:
        """All reads and writes."""
        return self.input_reads + self.weight_reads + self.output_writes + self.output_reads

    @property
    def spilled_sums(self) -> int:
        """Partial sums that left the array unfinished; each is read again, when the next fold adds to it."""
        return self.output_reads


@dataclass(frozen=True, slots=True)
class DramAccesses:
    """Elements that cross between the on-chip memories and DRAM."""

    input_reads: int
    weight_reads: int
    output_writes: int
    output_reads: int

    @property
    def total(self) -> int:
        """All reads and writes."""
        return self.input_reads + self.weight_reads + self.output_writes + self.output_reads


def sram_accesses(m: int, n: int, k: int, *, rows: int, cols: int, dataflow: str) -> SramAccesses:
    """Return the elements that the array reads and writes on chip for C[m, n] = A[m, k] B[k, n].

    A held operand is read once. A streamed operand is read once per fold across it. Where k is cut into folds ("ws",
    "is"), every fold but the last writes unfinished sums, which the next one reads again.

    ====  ==================  ==================  =======================  ===================
    held  reads of A          reads of B          writes of C              reads of C
    ====  ==================  ==================  =======================  ===================
    ws    m k ceil(n / cols)  k n                 m n ceil(k / rows)       writes - m n
    os    m k ceil(n / cols)  k n ceil(m / rows)  m n                      0
    is    m k                 k n ceil(m / cols)  m n ceil(k / rows)       writes - m n
    ====  ==================  ==================  =======================  ===================

    Raises:
        InvalidValue: A size that is no positive integer, or an unknown dataflow.

    >>> sram_accesses(32, 512, 256, rows=128, cols=128, dataflow="ws")
    SramAccesses(input_reads=32768, weight_reads=131072, output_writes=32768, output_reads=16384)
    """
    fold = Folding.of(m, n, k, rows=rows, cols=cols, dataflow=dataflow)
    if dataflow == "os":
        return SramAccesses(m * k * fold.col_folds, k * n * fold.row_folds, m * n, 0)
    sums = m * n * fold.row_folds, m * n * (fold.row_folds - 1)
    if dataflow == "ws":
        return SramAccesses(m * k * fold.col_folds, k * n, *sums)
    return SramAccesses(m * k, k * n * fold.col_folds, *sums)


def dram_accesses(
    m: int,
    n: int,
    k: int,
    *,
    rows: int,
    cols: int,
    dataflow: str,
    input_sram: int,
    weight_sram: int,
    output_sram: int,
) -> DramAccesses:
    """Return the elements that cross to DRAM when each on-chip memory keeps the most recent pieces of its matrix.

    A piece is the part of a matrix that one fold uses. Folds visit the pieces of a matrix in a cycle, and a least
    recently used memory that cannot hold a whole cycle never finds a piece again. So a matrix is read from DRAM on
    every pass unless the data between two uses of a piece fits:

    - the operand streamed past every piece of columns: all of it;
    - the operand of an output-stationary array that stays for a piece of columns: its k cols elements;
    - unfinished sums ("ws", "is"): the stream's length times the columns of a piece.

    Args:
        m: Rows of A and C.
        n: Columns of B and C.
        k: Columns of A, rows of B.
        rows: Rows of the array.
        cols: Columns of the array.
        dataflow: "ws", "os" or "is".
        input_sram: Elements of A that its memory holds.
        weight_sram: Elements of B that its memory holds.
        output_sram: Elements of C that its memory holds.

    Raises:
        InvalidValue: A size that is no positive integer, an unknown dataflow, or a memory smaller than the step that
            enters the array at once; the message names the least size.

    >>> dram_accesses(32, 512, 256, rows=128, cols=128, dataflow="ws",
    ...               input_sram=4096, weight_sram=2 * 128 * 128, output_sram=4096)
    DramAccesses(input_reads=32768, weight_reads=131072, output_writes=16384, output_reads=0)
    """
    fold = Folding.of(m, n, k, rows=rows, cols=cols, dataflow=dataflow)
    held = min(fold.rows, fold.row_extent) * min(fold.cols, fold.col_extent)
    row_step, col_step = min(fold.rows, fold.row_extent), min(fold.cols, fold.col_extent)
    least = {
        "ws": {"input_sram": row_step, "weight_sram": held, "output_sram": col_step},
        "os": {"input_sram": row_step, "weight_sram": col_step, "output_sram": held},
        "is": {"input_sram": held, "weight_sram": row_step, "output_sram": col_step},
    }[dataflow]
    given = {"input_sram": input_sram, "weight_sram": weight_sram, "output_sram": output_sram}
    for name, size in given.items():
        if positive_int(name, size) < least[name]:
            raise InvalidValue(
                f"{name} of {size} elements cannot hold one {dataflow} step of a {rows} x {cols} array, "
                f"{least[name]} elements; give it at least {least[name]}, or use a smaller array"
            )

    pieces = [min(cols, fold.col_extent - first) for first in range(0, fold.col_extent, cols)]
    if dataflow == "os":
        input_reads = m * k if m * k <= input_sram else m * k * fold.col_folds
        weight_reads = sum(k * width * (1 if k * width <= weight_sram else fold.row_folds) for width in pieces)
        return DramAccesses(input_reads, weight_reads, m * n, 0)
    # Sums of a piece of columns leave and come back between its folds unless all of them stay.
    spilled = sum(fold.stream * width for width in pieces if fold.stream * width > output_sram) * (fold.row_folds - 1)
    streamed, streamed_sram = (m * k, input_sram) if dataflow == "ws" else (k * n, weight_sram)
    reads = streamed if streamed <= streamed_sram else streamed * fold.col_folds
    if dataflow == "ws":
        return DramAccesses(reads, k * n, m * n + spilled, spilled)
    return DramAccesses(m * k, reads, m * n + spilled, spilled)
