"""Which lane of a warp holds which element of the operands of a tensor-core instruction.

The instruction is `mma.m16n8k16` on FP16 or BF16: D = A x B + C, with A of 16 x 16, B of 16 x 8, and C and D of 16 x 8
elements. No lane has a whole matrix. Each of the 32 lanes holds its *fragment*, eight elements of A and four each of B,
C and D, in registers of its own. With g = lane // 4 and t = lane % 4, element i of a lane's fragment is at

- A: row g + 8 if i is 2, 3, 6 or 7, else g; column 2 t + i % 2, and 8 more from i = 4 on,
- B: row 2 t + i % 2, and 8 more from i = 2 on; column g,
- C and D: row g, and 8 more from i = 2 on; column 2 t + i % 2.

Source: NVIDIA, Parallel Thread Execution ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".

>>> from mlsys.hardware.fragments import fragment, holder
>>> fragment("C", lane=5)
((1, 2), (1, 3), (9, 2), (9, 3))
>>> holder("A", 9, 3)
(5, 3)
"""

from types import MappingProxyType
from typing import Literal

from mlsys.core.arguments import non_negative_int
from mlsys.errors import InvalidValue, UnknownName
from mlsys.traffic.coalescing import WARP_LANES

M, N, K = 16, 8, 16
"""Sides of the product that one instruction computes."""
SHAPES = MappingProxyType({"A": (M, K), "B": (K, N), "C": (M, N)})
"""Rows and columns of the operands; D is held as C is."""

Operand = Literal["A", "B", "C"]


def fragment(operand: Operand, lane: int) -> tuple[tuple[int, int], ...]:
    """Return the (row, column) of each element that a lane holds of an operand, in the order of its registers.

    Raises:
        UnknownName: an operand other than "A", "B" and "C".
        InvalidValue: a lane that the warp does not have.
    """
    if non_negative_int("lane", lane) >= WARP_LANES:
        raise InvalidValue(f"lane must be at most {WARP_LANES - 1}, got {lane}: a warp has {WARP_LANES} lanes")
    group, place = divmod(lane, 4)
    match operand:
        case "A":
            return tuple((group + 8 * (i // 2 % 2), 2 * place + i % 2 + 8 * (i // 4)) for i in range(8))
        case "B":
            return tuple((2 * place + i % 2 + 8 * (i // 2), group) for i in range(4))
        case "C":
            return tuple((group + 8 * (i // 2), 2 * place + i % 2) for i in range(4))
    raise UnknownName.of("operand of mma.m16n8k16", operand, SHAPES)


def holder(operand: Operand, row: int, column: int) -> tuple[int, int]:
    """Return the lane that holds an element of an operand, and the element's number in the lane's fragment.

    Raises:
        UnknownName: an operand other than "A", "B" and "C".
        InvalidValue: an element that the operand does not have.
    """
    for lane in range(WARP_LANES):
        held = fragment(operand, lane)
        if (row, column) in held:
            return lane, held.index((row, column))
    rows, columns = SHAPES[operand]
    raise InvalidValue(f"{operand} has {rows} rows and {columns} columns, counted from 0: no element ({row}, {column})")
