"""Rung 4, causal skipping: blocks of keys that no query of a program may see are neither read nor multiplied.

The loop ends at the diagonal, which leaves a little more than half of the blocks. Those before the diagonal
need no mask, so they have a loop without one. And programs with most keys begin: with the shortest first, the
last programs to start would be those that take longest, and most multiprocessors would wait for them.
"""

from attention_harness import climb, sizes  # before triton: without a GPU it turns on Triton's interpreter

# isort: split

import torch
import triton
import triton.language as tl

BLOCKS = {"BLOCK_Q": 64, "BLOCK_K": 64}


@triton.jit
def skipping_kernel(
    q_ptr, k_ptr, v_ptr, y_ptr, N, scale, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    """One program computes BLOCK_Q queries of one head, over the keys up to the last of them."""
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * BLOCK_Q
    i = first + tl.arange(0, BLOCK_Q)
    head = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, D)
    mine = (head * N + i)[:, None] * D + c[None, :]
    q = tl.load(q_ptr + mine, mask=(i < N)[:, None], other=0.0)
    top = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_Q,), tl.float32)
    y = tl.zeros((BLOCK_Q, D), tl.float32)
    free = first // BLOCK_K * BLOCK_K
    for masked in tl.static_range(2):
        if masked:
            begin, end = free, tl.minimum(first + BLOCK_Q, N)
        else:
            begin, end = 0, free
        for start in range(begin, end, BLOCK_K):
            j = start + tl.arange(0, BLOCK_K)
            theirs = (head * N + j)[:, None] * D + c[None, :]
            if masked:
                k = tl.load(k_ptr + theirs, mask=(j < N)[:, None], other=0.0)
                v = tl.load(v_ptr + theirs, mask=(j < N)[:, None], other=0.0)
            else:
                k = tl.load(k_ptr + theirs)
                v = tl.load(v_ptr + theirs)
            x = tl.dot(q, k.T) * scale
            if masked:
                x = tl.where((j[None, :] <= i[:, None]) & (j < N)[None, :], x, float("-inf"))
            new = tl.maximum(top, tl.max(x, 1))
            factor = tl.exp(top - new)
            p = tl.exp(x - new[:, None])
            total = total * factor + tl.sum(p, 1)
            y = tl.dot(p.to(tl.float16), v, y * factor[:, None])
            top = new
    tl.store(y_ptr + mine, (y / total[:, None]).to(tl.float16), mask=(i < N)[:, None])


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    blocks: dict[str, int] = BLOCKS,
    num_warps: int = 4,
    num_stages: int = 1,
) -> None:
    """Write causal attention of contiguous float16 tensors (heads, tokens, numbers) into `out`."""
    heads, n, d = sizes(q, k, v, out)
    grid = (heads, triton.cdiv(n, blocks["BLOCK_Q"]))
    skipping_kernel[grid](q, k, v, out, n, d**-0.5, D=d, **blocks, num_warps=num_warps, num_stages=num_stages)


if __name__ == "__main__":
    climb(__file__)
