"""Rung 1, naive: every element of C is computed by one thread, which reads a row of A and a column of B.

Neighboring threads compute neighboring *rows* of C, as in the first kernel that many people write. At each
step the 32 threads of a warp read 32 elements of A that are a whole row apart, so memory answers with 32 pieces
of 32 bytes where 64 bytes are needed. B's element is the same for all of them. Nothing that is read is kept for
another element of C.
"""

from harness import climb  # before triton: without a GPU it turns on Triton's interpreter

# isort: split

import torch
import triton
import triton.language as tl

ELEMENTS = 128


@triton.jit
def naive_kernel(a_ptr, b_ptr, c_ptr, M, N, K, ELEMENTS: tl.constexpr):
    """One program computes ELEMENTS elements of one column of C."""
    rows = tl.program_id(1) * ELEMENTS + tl.arange(0, ELEMENTS)
    col = tl.program_id(0)
    inside = rows < M
    total = tl.zeros((ELEMENTS,), dtype=tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + rows * K + k, mask=inside, other=0.0)  # K elements apart
        b = tl.load(b_ptr + k * N + col)
        total += a.to(tl.float32) * b.to(tl.float32)
    tl.store(c_ptr + rows * N + col, total.to(tl.float16), mask=inside)


def matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """Write A B into `out`; all three are contiguous."""
    (m, k), n = a.shape, b.shape[1]
    naive_kernel[(n, triton.cdiv(m, ELEMENTS))](a, b, out, m, n, k, ELEMENTS=ELEMENTS, num_warps=4)


if __name__ == "__main__":
    climb(__file__)
