"""The kernels that no library offers: chains of multiply-adds, reads with a stride, and nothing at all."""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import torch
import triton
import triton.language as tl

FMA_CHAINS = 1024
"""Independent chains per program: 8 for each thread of 4 warps, so that one can start while others are under way."""

STRIDE_BLOCK = 2048


@triton.jit
def fma_kernel(out_ptr, scale, shift, STEPS: tl.constexpr, CHAINS: tl.constexpr):
    """Advance each chain x -> scale x + shift by STEPS steps, in registers; one store at the end."""
    chains = tl.program_id(0) * CHAINS + tl.arange(0, CHAINS)
    x = chains.to(tl.float32)
    for _ in range(0, STEPS, 16):
        for _ in tl.static_range(16):
            x = x * scale + shift
    tl.store(out_ptr + chains, x)


@triton.jit
def strided_sum_kernel(x_ptr, sums_ptr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Each program sums BLOCK elements that lie STRIDE apart."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i.to(tl.int64) * STRIDE)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(x, 0))


@triton.jit
def empty_kernel():
    """Do nothing: all that is left is the launch."""


def fma(out: torch.Tensor, steps: int) -> None:
    """Fill `out` with chains x -> 0.9999 x + 0.5 that start at their own index; 2 `steps` FLOP per element.

    The chains approach 5000 so slowly that their digits keep changing, as in real work.

    `steps` is a multiple of 16 and the size of `out` one of `FMA_CHAINS`.
    """
    fma_kernel[(out.numel() // FMA_CHAINS,)](out, 0.9999, 0.5, STEPS=steps, CHAINS=FMA_CHAINS)


def strided_sum(x: torch.Tensor, sums: torch.Tensor, stride: int) -> None:
    """Sum every `stride`-th element of the start of `x`, `STRIDE_BLOCK` of them into each element of `sums`."""
    strided_sum_kernel[(sums.numel(),)](x, sums, STRIDE=stride, BLOCK=STRIDE_BLOCK)


def empty() -> None:
    """Launch a kernel that does nothing."""
    empty_kernel[(1,)]()
