"""Rung 8, tensor copies: one instruction of the TMA brings a whole tile.

The profile of rung 7 shows many instructions that multiply nothing: every thread computes addresses and masks
for each piece that it copies. A tensor descriptor says once where a matrix is, how wide it is and how it is
cut. The TMA of Hopper GPUs then computes the addresses, fills what is outside with zeros, and
arranges the tile so that the tensor cores read it with few bank conflicts. The loop has two loads and a
product left, and the kernel a quarter fewer instructions.
"""

from harness import CannotMultiply, climb  # before triton: without a GPU it turns on Triton's interpreter

# isort: split

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

ALIGNED = True
"""Rows of all three matrices start at multiples of 16 bytes, which the TMA asks for."""

NEEDS = (9, 0)
"""Compute capability from which GPUs have a TMA."""

GROUP_M = 8
TILE = {"TILE_M": 128, "TILE_N": 128, "TILE_K": 64}


@triton.jit
def tile_of(number, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column of a tile, numbered down GROUP_M rows and then on to the next column."""
    per_group = GROUP_M * tiles_n
    first_row = number // per_group * GROUP_M
    rows = min(tiles_m - first_row, GROUP_M)
    within = number % per_group
    return first_row + within % rows, within // rows


@triton.jit
def copies_kernel(
    a, b, c, M, N, K,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """One program computes one tile of C; a, b and c are tensor descriptors."""
    tile_row, tile_col = tile_of(tl.program_id(0), tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N), GROUP_M)
    row, col = tile_row * TILE_M, tile_col * TILE_N
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, K, TILE_K):
        total = tl.dot(a.load([row, start]), b.load([start, col]), total)
    c.store([row, col], total.to(tl.float16))


def matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """Write A B into `out`; all three are contiguous, with rows of a multiple of 8 elements."""
    (m, k), n = a.shape, b.shape[1]
    if n % 8 or k % 8:
        raise CannotMultiply(f"N = {n} and K = {k}: the TMA needs multiples of 8; use 07_grouped.py")
    tile_m, tile_n, tile_k = TILE["TILE_M"], TILE["TILE_N"], TILE["TILE_K"]
    descriptors = (
        TensorDescriptor.from_tensor(a, [tile_m, tile_k]),
        TensorDescriptor.from_tensor(b, [tile_k, tile_n]),
        TensorDescriptor.from_tensor(out, [tile_m, tile_n]),
    )
    grid = (triton.cdiv(n, tile_n) * triton.cdiv(m, tile_m),)
    copies_kernel[grid](*descriptors, m, n, k, **TILE, GROUP_M=GROUP_M, num_warps=8, num_stages=3)


if __name__ == "__main__":
    climb(__file__)
