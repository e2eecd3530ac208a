"""Rung 5, large tiles: 128 x 128 elements of C, so that each number that is read meets 128 partners.

The profile of rung 4 shows tensor cores that are busy 13% of the time, and the unit of L1 and shared memory
94%: warps wait for what they have loaded. Each number meets only 32 partners. Only the sizes change in this
file, but two things follow. At 128 the tiles fetch a quarter as much. And with four warps or more, `tl.dot`
becomes another instruction on Hopper GPUs: `wgmma`, which four warps execute together and which reads its
tiles from shared memory by itself. The gain is of both.
"""

from harness import climb  # before triton: without a GPU it turns on Triton's interpreter

# isort: split

import torch
import triton
import triton.language as tl

TILE = {"TILE_M": 128, "TILE_N": 128, "TILE_K": 64}


@triton.jit
def large_kernel(a_ptr, b_ptr, c_ptr, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """One program computes one tile of C, with float16 products summed in float32."""
    rows = tl.program_id(1) * TILE_M + tl.arange(0, TILE_M)
    cols = tl.program_id(0) * TILE_N + tl.arange(0, TILE_N)
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
    grid = (triton.cdiv(n, TILE["TILE_N"]), triton.cdiv(m, TILE["TILE_M"]))
    large_kernel[grid](a, b, out, m, n, k, **TILE, num_warps=8, num_stages=1)


if __name__ == "__main__":
    climb(__file__)
