"""Bytes that a sparse matrix takes in each format, without building it."""

import math

from mlsys.core.arguments import non_negative_int, positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.units import Quantity, ureg


def csr_bytes(*, rows: int, cols: int, nonzeros: int, dtype: str = "fp16", index_bytes: int = 4) -> Quantity:
    """Size of a CSR matrix: nonzeros (size + index_bytes) + (rows + 1) index_bytes.

    Args:
        rows: rows of the matrix.
        cols: columns of the matrix.
        nonzeros: stored entries, at most rows x cols.
        dtype: format of the values.
        index_bytes: bytes of a column index and of a row pointer.

    Raises:
        InvalidValue: if a size is not a positive integer, or there are more entries than places.
        UnknownName: if the dtype is unknown.

    >>> round(csr_bytes(rows=4096, cols=4096, nonzeros=4096 * 4096 // 10).to("MB"), 1)
    <Quantity(10.1, 'megabyte')>
    """
    places = positive_int("rows", rows) * positive_int("cols", cols)
    if non_negative_int("nonzeros", nonzeros) > places:
        raise InvalidValue(f"nonzeros is {nonzeros}: a {rows} x {cols} matrix has {places} places")
    entry = bytes_per_element(dtype) + positive_int("index_bytes", index_bytes)
    return ureg.Quantity(nonzeros * entry + (rows + 1) * index_bytes, "byte")


def csr_break_even_density(dtype: str = "fp16", index_bytes: int = 4) -> float:
    """Density below which CSR is smaller than the dense matrix, row pointers aside: size / (size + index_bytes).

    Args:
        dtype: format of the values.
        index_bytes: bytes of a column index.

    Raises:
        InvalidValue: if the index has no bytes.
        UnknownName: if the dtype is unknown.

    >>> round(csr_break_even_density("fp16"), 3)
    0.333
    """
    size = bytes_per_element(dtype)
    return size / (size + positive_int("index_bytes", index_bytes))


def bsr_bytes(
    *, block_rows: int, blocks: int, block: tuple[int, int], dtype: str = "fp16", index_bytes: int = 4
) -> Quantity:
    """Size of a BSR matrix: blocks (size block_h block_w + index_bytes) + (block_rows + 1) index_bytes.

    Args:
        block_rows: rows of blocks.
        blocks: stored blocks.
        block: height and width of a block.
        dtype: format of the values.
        index_bytes: bytes of a block's column index and of a row pointer.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> bsr_bytes(block_rows=4, blocks=6, block=(2, 2)).to("byte")
    <Quantity(92, 'byte')>
    """
    height, width = (positive_int("block", side) for side in block)
    entry = bytes_per_element(dtype) * height * width + positive_int("index_bytes", index_bytes)
    pointers = (positive_int("block_rows", block_rows) + 1) * index_bytes
    return ureg.Quantity(non_negative_int("blocks", blocks) * entry + pointers, "byte")


def metadata_bits(n: int, m: int) -> int:
    """Bits of metadata for one group of N:M sparsity: n indices of ceil(log2 m) bits.

    Source: Mishra et al., Accelerating Sparse Deep Neural Networks, arXiv:2104.08378 (2021).

    Args:
        n: values kept in a group.
        m: values of a group.

    Raises:
        InvalidValue: if n and m are not integers with 1 <= n <= m.

    >>> metadata_bits(2, 4)
    4
    """
    if positive_int("n", n) > positive_int("m", m):
        raise InvalidValue(f"{n}:{m} keeps more than there is: n must be at most m = {m}")
    return n * math.ceil(math.log2(m))


def nm_compression(n: int, m: int, dtype: str = "fp16") -> float:
    """Dense size over compressed size under N:M sparsity: m size / (n size + metadata), the most traffic can shrink.

    Args:
        n: values kept in a group.
        m: values of a group.
        dtype: format of the values.

    Raises:
        InvalidValue: if n and m are not integers with 1 <= n <= m.
        UnknownName: if the dtype is unknown.

    >>> round(nm_compression(2, 4, "fp16"), 2), nm_compression(2, 4, "int8")
    (1.78, 1.6)
    """
    size = bytes_per_element(dtype)
    return m * size / (n * size + metadata_bits(n, m) / 8)
