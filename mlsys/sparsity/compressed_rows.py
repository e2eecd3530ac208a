"""CSR and BSR: matrices stored as their non-zero entries, or non-zero blocks, row by row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.core.arguments import positive_int
from mlsys.errors import InvalidValue

Matrix = NDArray[Any]


@dataclass(frozen=True)
class CSR:
    """Compressed sparse rows: row i holds entries row_pointers[i] up to row_pointers[i + 1].

    Attributes:
        shape: rows and columns.
        row_pointers: where each row begins, one more than there are rows.
        columns: column of each entry.
        values: the entries.
    """

    shape: tuple[int, int]
    row_pointers: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: Matrix

    @classmethod
    def from_dense(cls, matrix: Matrix) -> "CSR":
        """Keep what is not zero.

        Raises:
            InvalidValue: if the matrix has not two dimensions.

        >>> import numpy as np
        >>> csr = CSR.from_dense(np.array([[5, 0], [0, 0], [7, 8]]))
        >>> csr.row_pointers.tolist(), csr.columns.tolist(), csr.values.tolist()
        ([0, 1, 1, 3], [0, 0, 1], [5, 7, 8])
        """
        matrix = two_dimensional(matrix)
        rows, columns = np.nonzero(matrix)
        return cls(matrix.shape, _pointers(rows, matrix.shape[0]), columns.astype(np.int32), matrix[rows, columns])

    def to_dense(self) -> Matrix:
        """The whole matrix."""
        dense = np.zeros(self.shape, self.values.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.row_pointers))
        dense[rows, self.columns] = self.values
        return dense

    def matmul(self, dense: Matrix) -> Matrix:
        """The product with a dense matrix: each row gathers the rows of `dense` that its columns name.

        Raises:
            InvalidValue: if the inner sizes differ.
        """
        check_inner(self.shape, dense)
        result = np.zeros((self.shape[0], dense.shape[1]), np.result_type(self.values, dense))
        for row in range(self.shape[0]):
            entries = slice(self.row_pointers[row], self.row_pointers[row + 1])
            result[row] = self.values[entries] @ dense[self.columns[entries]]
        return result

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return self.row_pointers.nbytes + self.columns.nbytes + self.values.nbytes


@dataclass(frozen=True)
class BSR:
    """Block compressed sparse rows: as CSR, with a dense block for each entry.

    Attributes:
        shape: rows and columns of the whole matrix.
        row_pointers: where each row of blocks begins.
        columns: column of blocks of each stored block.
        blocks: the blocks, count x height x width.
    """

    shape: tuple[int, int]
    row_pointers: NDArray[np.int32]
    columns: NDArray[np.int32]
    blocks: Matrix

    @classmethod
    def from_dense(cls, matrix: Matrix, block: tuple[int, int]) -> "BSR":
        """Keep the blocks that hold anything but zeros.

        Args:
            matrix: rows x columns.
            block: height and width of a block; they divide rows and columns.

        Raises:
            InvalidValue: if the matrix has not two dimensions or the blocks do not divide it.

        >>> import numpy as np
        >>> bsr = BSR.from_dense(np.diag([1, 2, 3, 4]), (2, 2))
        >>> bsr.row_pointers.tolist(), bsr.columns.tolist(), bsr.blocks.shape
        ([0, 1, 2], [0, 1], (2, 2, 2))
        """
        matrix = two_dimensional(matrix)
        height, width = (positive_int("block", side) for side in block)
        check_divides("rows", matrix.shape[0], height)
        check_divides("columns", matrix.shape[1], width)
        tiles = matrix.reshape(matrix.shape[0] // height, height, matrix.shape[1] // width, width).swapaxes(1, 2)
        rows, columns = np.nonzero(tiles.any(axis=(2, 3)))
        return cls(matrix.shape, _pointers(rows, tiles.shape[0]), columns.astype(np.int32), tiles[rows, columns])

    def to_dense(self) -> Matrix:
        """The whole matrix."""
        _, height, width = self.blocks.shape
        tiles = np.zeros((self.shape[0] // height, self.shape[1] // width, height, width), self.blocks.dtype)
        rows = np.repeat(np.arange(tiles.shape[0]), np.diff(self.row_pointers))
        tiles[rows, self.columns] = self.blocks
        return tiles.swapaxes(1, 2).reshape(self.shape)

    def matmul(self, dense: Matrix) -> Matrix:
        """The product with a dense matrix: one small dense product per stored block.

        Raises:
            InvalidValue: if the inner sizes differ.
        """
        check_inner(self.shape, dense)
        _, height, width = self.blocks.shape
        result = np.zeros((self.shape[0], dense.shape[1]), np.result_type(self.blocks, dense))
        for row in range(self.shape[0] // height):
            for entry in range(self.row_pointers[row], self.row_pointers[row + 1]):
                first = self.columns[entry] * width
                result[row * height : (row + 1) * height] += self.blocks[entry] @ dense[first : first + width]
        return result

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return self.row_pointers.nbytes + self.columns.nbytes + self.blocks.nbytes


def two_dimensional(matrix: Matrix) -> Matrix:
    """The argument as an array, refused unless it has rows and columns.

    Raises:
        InvalidValue: if it has not two dimensions.
    """
    matrix = np.asarray(matrix)
    if matrix.ndim != 2:
        raise InvalidValue(f"the matrix has shape {matrix.shape}: it must have rows and columns")
    return matrix


def check_divides(what: str, size: int, part: int) -> None:
    """Refuse a size that is no multiple of `part`.

    Raises:
        InvalidValue: naming the nearest multiples.
    """
    if size % part:
        below, above = size // part * part, (size // part + 1) * part
        nearest = f"{below} or {above}" if below else f"{above}"
        raise InvalidValue(f"{size} {what} do not divide into groups of {part}: the nearest sizes are {nearest}")


def check_inner(shape: tuple[int, int], dense: Matrix) -> None:
    """Refuse a right factor whose rows are not the left one's columns.

    Raises:
        InvalidValue: if the inner sizes differ.
    """
    if dense.ndim != 2 or dense.shape[0] != shape[1]:
        raise InvalidValue(f"{shape} times {dense.shape}: the second matrix needs {shape[1]} rows")


def _pointers(rows: NDArray[np.intp], count: int) -> NDArray[np.int32]:
    return np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count)))).astype(np.int32)
