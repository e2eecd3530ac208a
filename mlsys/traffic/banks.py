"""Passes that a warp's access to shared memory needs, and orders of a tile that need fewer.

Shared memory is cut into 32 banks. Words of 4 bytes go to the banks in turn, and a bank delivers one word per pass.
Lanes that need different words of the same bank wait for each other; lanes that need the same word share it (NVIDIA,
CUDA C++ Programming Guide, "Shared Memory").

>>> column = [4 * padded_offset(row, 0, cols=32, padding=0) for row in range(32)]
>>> bank_passes(column, element_bytes=4)
32
>>> column = [4 * padded_offset(row, 0, cols=32, padding=1) for row in range(32)]
>>> bank_passes(column, element_bytes=4)
1
"""

from collections import defaultdict
from collections.abc import Iterable

from mlsys.core.arguments import non_negative_int, positive_int
from mlsys.errors import InvalidValue

BANKS = 32
WORD_BYTES = 4
PASS_BYTES = BANKS * WORD_BYTES


def bank_of(address: int) -> int:
    """Return the bank that holds a byte of shared memory: floor(address / 4) mod 32.

    >>> [bank_of(address) for address in (0, 3, 4, 124, 128)]
    [0, 0, 1, 31, 0]
    """
    return non_negative_int("address", address) // WORD_BYTES % BANKS


def bank_passes(addresses: Iterable[int], *, element_bytes: int) -> int:
    """Count the passes in which shared memory serves the lanes of one request.

    In each pass every bank delivers at most one word, so the fullest bank decides: the largest number of different
    words that the lanes need from one bank.

    Args:
        addresses: Byte address of each active lane's element, a multiple of `element_bytes`. All
            banks together deliver 128 bytes in a pass, so count a wider read in groups: 16 lanes of 8 bytes, or 8 lanes
            of 16.
        element_bytes: Bytes that each lane reads: 1, 2, 4, 8 or 16.

    Raises:
        InvalidValue: No lanes, more bytes than the banks deliver in a pass, an element of another size, or an address
            that is negative or not a multiple of the element's size.

    >>> bank_passes([0] * 32, element_bytes=4)
    1
    >>> bank_passes([8 * lane for lane in range(32)], element_bytes=4)
    2
    """
    size = positive_int("element_bytes", element_bytes)
    if size not in (1, 2, 4, 8, 16):
        raise InvalidValue(f"a lane reads 1, 2, 4, 8 or 16 bytes, got element_bytes = {size}; split the access")
    starts = [non_negative_int("address", address) for address in addresses]
    most = min(BANKS, PASS_BYTES // size)
    if not 1 <= len(starts) <= most:
        raise InvalidValue(f"a request has 1 to {most} lanes of {size} bytes, got {len(starts)}; count it in groups")
    for start in starts:
        if start % size:
            raise InvalidValue(f"address {start} is not a multiple of the {size} bytes that a lane reads; align it")
    words = defaultdict(set)
    for start in starts:
        for word in range(start // WORD_BYTES, (start + size - 1) // WORD_BYTES + 1):
            words[word % BANKS].add(word)
    return max(len(needed) for needed in words.values())


def padded_offset(row: int, col: int, *, cols: int, padding: int) -> int:
    """Return the place of a tile's element in shared memory when each row is followed by unused elements.

    offset = row (cols + padding) + col, in elements.

    Raises:
        InvalidValue: A column outside the row, a negative row, or a negative padding.

    >>> padded_offset(2, 3, cols=32, padding=1)
    69
    """
    row, col, cols = _inside(row, col, cols)
    return row * (cols + non_negative_int("padding", padding)) + col


def swizzled_offset(row: int, col: int, *, cols: int) -> int:
    """Return the place of a tile's element in shared memory when each row is permuted by its own number.

    offset = row cols + (col XOR (row mod cols)), in elements. Each row keeps its elements, in another order, and no
    place is left unused.

    Raises:
        InvalidValue: A number of columns that is not a power of two, a column outside the row, or a negative row.

    >>> [swizzled_offset(1, col, cols=4) for col in range(4)]
    [5, 4, 7, 6]
    """
    row, col, cols = _inside(row, col, cols)
    if cols & (cols - 1):
        raise InvalidValue(f"cols must be a power of two, so that XOR stays inside the row, got {cols}; pad the row")
    return row * cols + (col ^ row % cols)


def _inside(row: int, col: int, cols: int) -> tuple[int, int, int]:
    row, col, cols = non_negative_int("row", row), non_negative_int("col", col), positive_int("cols", cols)
    if col >= cols:
        raise InvalidValue(f"col must be below {cols}, got {col}; the last is {cols - 1}")
    return row, col, cols
