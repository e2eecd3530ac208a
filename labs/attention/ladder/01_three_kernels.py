"""Rung 1, three kernels: scores, softmax, average, each as it is written down, with a matrix between them.

The scores are stored in float16, heads x tokens x tokens of them: the first kernel writes them, the second
reads them and writes shares in their place, and the third reads these. All scores are computed, also those that
the mask then removes. Each kernel is a fair one: the products are tiled and run on tensor cores, and the
softmax keeps its row in registers.
"""

from attention_harness import climb, sizes  # before triton: without a GPU it turns on Triton's interpreter

# isort: split

import torch
import triton
import triton.language as tl

TILE = 64


@triton.jit
def scores_kernel(q_ptr, k_ptr, x_ptr, N, scale, D: tl.constexpr, TILE: tl.constexpr):
    """One program computes a tile of the scores of one head."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    head = tl.program_id(2).to(tl.int64)
    c = tl.arange(0, D)
    q = tl.load(q_ptr + (head * N + i)[:, None] * D + c[None, :], mask=(i < N)[:, None], other=0.0)
    k = tl.load(k_ptr + (head * N + j)[:, None] * D + c[None, :], mask=(j < N)[:, None], other=0.0)
    x = tl.dot(q, k.T) * scale
    x = tl.where(j[None, :] <= i[:, None], x, float("-inf"))
    inside = (i < N)[:, None] & (j < N)[None, :]
    tl.store(x_ptr + (head * N + i)[:, None] * N + j[None, :], x.to(tl.float16), mask=inside)


@triton.jit
def softmax_kernel(x_ptr, N, WIDE: tl.constexpr):
    """One program turns a row of scores into shares."""
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, WIDE)
    x = tl.load(x_ptr + row * N + j, mask=j < N, other=float("-inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x, 0))
    tl.store(x_ptr + row * N + j, (p / tl.sum(p, 0)).to(tl.float16), mask=j < N)


@triton.jit
def average_kernel(p_ptr, v_ptr, y_ptr, N, D: tl.constexpr, TILE: tl.constexpr):
    """One program computes the average of the values for a tile of queries."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    head = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, D)
    total = tl.zeros((TILE, D), tl.float32)
    for start in range(0, N, TILE):
        j = start + tl.arange(0, TILE)
        inside = (i < N)[:, None] & (j < N)[None, :]
        p = tl.load(p_ptr + (head * N + i)[:, None] * N + j[None, :], mask=inside, other=0.0)
        v = tl.load(v_ptr + (head * N + j)[:, None] * D + c[None, :], mask=(j < N)[:, None], other=0.0)
        total = tl.dot(p, v, total)
    y = y_ptr + (head * N + i)[:, None] * D + c[None, :]
    tl.store(y, total.to(tl.float16), mask=(i < N)[:, None])


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor) -> None:
    """Write causal attention of contiguous float16 tensors (heads, tokens, numbers) into `out`."""
    heads, n, d = sizes(q, k, v, out)
    tiles = triton.cdiv(n, TILE)
    scores = torch.empty(heads, n, n, dtype=torch.float16, device=q.device)
    scores_kernel[(tiles, tiles, heads)](q, k, scores, n, d**-0.5, D=d, TILE=TILE, num_warps=4)
    softmax_kernel[(heads * n,)](scores, n, WIDE=triton.next_power_of_2(n), num_warps=8)
    average_kernel[(tiles, heads)](scores, v, out, n, D=d, TILE=TILE, num_warps=4, num_stages=2)


if __name__ == "__main__":
    climb(__file__)
