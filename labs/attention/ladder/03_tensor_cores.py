"""Rung 3, tensor cores: both products take float16 operands, and only sums and softmax are float32.

Nothing else changes but the types: q, k and v stay as they come, and the shares are rounded to float16 before
the second product. Blocks are 64 x 64, since a tensor core wants larger tiles than a vector unit.
"""

from attention_harness import climb, sizes  # before triton: without a GPU it turns on Triton's interpreter

# isort: split

import torch
import triton
import triton.language as tl

BLOCKS = {"BLOCK_Q": 64, "BLOCK_K": 64}


@triton.jit
def tensor_kernel(q_ptr, k_ptr, v_ptr, y_ptr, N, scale, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr):
    """One program computes BLOCK_Q queries of one head, with products of float16."""
    i = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    head = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, D)
    mine = (head * N + i)[:, None] * D + c[None, :]
    q = tl.load(q_ptr + mine, mask=(i < N)[:, None], other=0.0)
    top = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_Q,), tl.float32)
    y = tl.zeros((BLOCK_Q, D), tl.float32)
    for start in range(0, N, BLOCK_K):
        j = start + tl.arange(0, BLOCK_K)
        theirs = (head * N + j)[:, None] * D + c[None, :]
        k = tl.load(k_ptr + theirs, mask=(j < N)[:, None], other=0.0)
        x = tl.dot(q, k.T) * scale
        x = tl.where((j[None, :] <= i[:, None]) & (j < N)[None, :], x, float("-inf"))
        new = tl.maximum(top, tl.max(x, 1))
        factor = tl.exp(top - new)
        p = tl.exp(x - new[:, None])
        total = total * factor + tl.sum(p, 1)
        v = tl.load(v_ptr + theirs, mask=(j < N)[:, None], other=0.0)
        y = tl.dot(p.to(tl.float16), v, y * factor[:, None])
        top = new
    tl.store(y_ptr + mine, (y / total[:, None]).to(tl.float16), mask=(i < N)[:, None])


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor) -> None:
    """Write causal attention of contiguous float16 tensors (heads, tokens, numbers) into `out`."""
    heads, n, d = sizes(q, k, v, out)
    grid = (triton.cdiv(n, BLOCKS["BLOCK_Q"]), heads)
    tensor_kernel[grid](q, k, v, out, n, d**-0.5, D=d, **BLOCKS, num_warps=4, num_stages=1)


if __name__ == "__main__":
    climb(__file__)
