"""Rung 7, grouped: tiles of C that are computed at the same time are near each other, so that the L2 serves all.

The profile of rung 6 shows the L2 80% busy. The programs that run at the same time cover a few whole rows of
tiles: they share their bands of A and need all of B. Here the numbers of the programs go down eight rows and
then on to the next column, so the programs that run together cover a patch that is nearly square and needs
less of A and B: a tile of tiles. At a side of 4096 it gains nothing: device memory delivers as many bytes as
before, or a few more, for the L2 keeps enough of A and B in either order. It is for larger matrices.
"""

from harness import climb  # before triton: without a GPU it turns on Triton's interpreter

# isort: split

import torch
import triton
import triton.language as tl

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
def grouped_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """One program computes one tile of C, in the order of `tile_of`."""
    tile_row, tile_col = tile_of(tl.program_id(0), tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N), GROUP_M)
    rows = tile_row * TILE_M + tl.arange(0, TILE_M)
    cols = tile_col * TILE_N + tl.arange(0, TILE_N)
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, K, TILE_K):
        ks = start + tl.arange(0, TILE_K)
        a_inside = (rows[:, None] < M) & (ks[None, :] < K)
        b_inside = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=a_inside, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=b_inside, other=0.0)
        total = tl.dot(a, b, total)
    c_inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=c_inside)


def matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """Write A B into `out`; all three are contiguous."""
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(n, TILE["TILE_N"]) * triton.cdiv(m, TILE["TILE_M"]),)
    grouped_kernel[grid](a, b, out, m, n, k, **TILE, GROUP_M=GROUP_M, num_warps=8, num_stages=3)


if __name__ == "__main__":
    climb(__file__)
