"""N:M sparsity: at most n non-zeros in every group of m neighbors of a row, such as the 2:4 of sparse tensor cores.

Source: Mishra et al., Accelerating Sparse Deep Neural Networks, arXiv:2104.08378 (2021).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.errors import InvalidValue
from mlsys.sparsity.compressed_rows import Matrix, check_divides, check_inner, two_dimensional
from mlsys.sparsity.storage import metadata_bits


@dataclass(frozen=True)
class NMSparse:
    """A matrix whose rows are cut into groups of m, and n values of each group are kept with their places.

    Attributes:
        shape: rows and columns of the whole matrix.
        n: values kept in a group.
        m: values of a group.
        values: the kept values, rows x (columns n / m), in the order of their places.
        metadata: the places within the groups, ceil(log2 m) bits each, packed into bytes from the lowest bit up.
    """

    shape: tuple[int, int]
    n: int
    m: int
    values: Matrix
    metadata: NDArray[np.uint8]

    @classmethod
    def from_dense(cls, matrix: Matrix, n: int = 2, m: int = 4) -> "NMSparse":
        """Compress a matrix that already is n:m sparse; a group with fewer non-zeros keeps some zeros.

        Raises:
            InvalidValue: if the columns do not divide into groups of m, or a group has more than n non-zeros.

        >>> import numpy as np
        >>> sparse = NMSparse.from_dense(np.array([[3, 0, 0, 2, 0, 0, 7, 0]]))
        >>> sparse.values.tolist(), sparse.places().tolist(), sparse.metadata.tolist()
        ([[3, 2, 0, 7]], [[[0, 3], [0, 2]]], [140])
        """
        groups = _groups(matrix, n, m)
        counts = np.count_nonzero(groups, axis=2)
        if (counts > n).any():
            row, group = np.argwhere(counts > n)[0]
            raise InvalidValue(
                f"row {row}, columns {group * m} to {group * m + m - 1} hold {counts[row, group]} non-zeros: "
                f"{n}:{m} allows {n}; prune the matrix first"
            )
        # A stable sort puts the non-zeros first and then the leftmost zeros; sorting again restores their order.
        places = np.sort(np.argsort(groups == 0, axis=2, kind="stable")[:, :, :n], axis=2)
        values = np.take_along_axis(groups, places, axis=2).reshape(groups.shape[0], -1)
        return cls((groups.shape[0], groups.shape[1] * m), n, m, values, _pack(places, metadata_bits(1, m)))

    def places(self) -> NDArray[np.int64]:
        """Places of the kept values within their groups, rows x groups x n, unpacked from the metadata."""
        width = metadata_bits(1, self.m)
        kept = (self.shape[0], self.shape[1] // self.m, self.n)
        bits = np.unpackbits(self.metadata, bitorder="little")[: kept[0] * kept[1] * kept[2] * width]
        weights = 1 << np.arange(width)
        places: NDArray[np.int64] = (bits.reshape(-1, width) @ weights).astype(np.int64).reshape(kept)
        return places

    def to_dense(self) -> Matrix:
        """The whole matrix."""
        groups = np.zeros((self.shape[0], self.shape[1] // self.m, self.m), self.values.dtype)
        np.put_along_axis(groups, self.places(), self.values.reshape(groups.shape[0], -1, self.n), axis=2)
        return groups.reshape(self.shape)

    def matmul(self, dense: Matrix) -> Matrix:
        """The product with a dense matrix: the metadata chooses the rows of `dense` that meet a kept value.

        Only n / m of the multiply-adds of the dense product are done.

        Raises:
            InvalidValue: if the inner sizes differ.
        """
        check_inner(self.shape, dense)
        first = np.arange(0, self.shape[1], self.m)[None, :, None]
        columns = (first + self.places()).reshape(self.values.shape)
        result = np.empty((self.shape[0], dense.shape[1]), np.result_type(self.values, dense))
        for row in range(self.shape[0]):
            result[row] = self.values[row] @ dense[columns[row]]
        return result

    @property
    def nbytes(self) -> int:
        """Bytes of values and metadata."""
        return self.values.nbytes + self.metadata.nbytes


def prune(matrix: Matrix, n: int = 2, m: int = 4) -> Matrix:
    """The matrix with only the n largest magnitudes of every group of m kept; of equals, the leftmost.

    Args:
        matrix: rows x columns.
        n: values kept in a group.
        m: values of a group; it divides the columns.

    Raises:
        InvalidValue: if n is more than m, or the columns do not divide into groups of m.

    >>> import numpy as np
    >>> prune(np.array([[3, 0, -1, 2]])).tolist()
    [[3, 0, 0, 2]]
    """
    groups = _groups(matrix, n, m)
    magnitudes = np.abs(groups.astype(np.float64))  # in narrow integers, 128 and -1 do not exist
    places = np.argsort(-magnitudes, axis=2, kind="stable")[:, :, :n]
    kept = np.zeros_like(groups)
    np.put_along_axis(kept, places, np.take_along_axis(groups, places, axis=2), axis=2)
    return kept.reshape(groups.shape[0], -1)


def _groups(matrix: Matrix, n: int, m: int) -> Matrix:
    matrix = two_dimensional(matrix)
    metadata_bits(n, m)  # refuses an impossible n:m
    check_divides("columns", matrix.shape[1], m)
    return matrix.reshape(matrix.shape[0], -1, m)


def _pack(places: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    bits = (places.reshape(-1, 1) >> np.arange(width) & 1).astype(np.uint8)
    return np.packbits(bits, bitorder="little")
