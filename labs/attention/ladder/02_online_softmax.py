"""Rung 2, online softmax: one kernel that goes over the keys once and stores no score.

A program has 32 queries, and keeps for each of them the largest score, the sum and the output so far. When a
larger score turns up, all three are multiplied by one factor. Products are those of the vector units, in
float32, so that this rung shows what fusion alone is worth: `input_precision="ieee"` on float32 operands keeps
them off the tensor cores.
"""

from attention_harness import climb, sizes  # before triton: without a GPU it turns on Triton's interpreter

# isort: split

import torch
import triton
import triton.language as tl

BLOCKS = {"BLOCK_Q": 32, "BLOCK_K": 32}


@triton.jit
def online_kernel(q_ptr, k_ptr, v_ptr, y_ptr, N, scale, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr):
    """One program computes BLOCK_Q queries of one head."""
    i = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    head = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, D)
    mine = (head * N + i)[:, None] * D + c[None, :]
    q = tl.load(q_ptr + mine, mask=(i < N)[:, None], other=0.0).to(tl.float32)
    top = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_Q,), tl.float32)
    y = tl.zeros((BLOCK_Q, D), tl.float32)
    for start in range(0, N, BLOCK_K):
        j = start + tl.arange(0, BLOCK_K)
        theirs = (head * N + j)[:, None] * D + c[None, :]
        k = tl.load(k_ptr + theirs, mask=(j < N)[:, None], other=0.0).to(tl.float32)
        x = tl.dot(q, k.T, input_precision="ieee") * scale
        x = tl.where((j[None, :] <= i[:, None]) & (j < N)[None, :], x, float("-inf"))
        new = tl.maximum(top, tl.max(x, 1))
        factor = tl.exp(top - new)
        p = tl.exp(x - new[:, None])
        total = total * factor + tl.sum(p, 1)
        v = tl.load(v_ptr + theirs, mask=(j < N)[:, None], other=0.0).to(tl.float32)
        y = tl.dot(p, v, y * factor[:, None], input_precision="ieee")
        top = new
    tl.store(y_ptr + mine, (y / total[:, None]).to(tl.float16), mask=(i < N)[:, None])


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor) -> None:
    """Write causal attention of contiguous float16 tensors (heads, tokens, numbers) into `out`."""
    heads, n, d = sizes(q, k, v, out)
    grid = (triton.cdiv(n, BLOCKS["BLOCK_Q"]), heads)
    online_kernel[grid](q, k, v, out, n, d**-0.5, D=d, **BLOCKS, num_warps=8, num_stages=1)


if __name__ == "__main__":
    climb(__file__)
