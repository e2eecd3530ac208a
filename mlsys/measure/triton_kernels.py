"""Kernels that no library offers: chains of arithmetic and of loads, triad, strided reads, a fused norm, no work."""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import torch
import triton
import triton.language as tl

FMA_CHAINS = 1024
"""Independent chains per program: 8 for each thread of 4 warps, so that one can start while others are under way."""

STRIDE_BLOCK = 2048

TRIAD_BLOCK = 1024
"""Elements per program of 8 warps: four for each thread, which it loads and stores at once."""

CHASE_STRIDE = 32
"""Elements of 4 bytes between two places of a pointer chase: a line of 128 bytes."""

WAITING_BLOCK = 1024
"""Elements that a program of 4 warps has under way at once: eight for each thread."""


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
def special_kernel(out_ptr, FUNCTION: tl.constexpr, STEPS: tl.constexpr, CHAINS: tl.constexpr):
    """Advance each chain by STEPS steps x -> 2^-x or x -> 1 / sqrt(x), in registers; one store at the end."""
    chains = tl.program_id(0) * CHAINS + tl.arange(0, CHAINS)
    x = 1.0 / (chains + 1).to(tl.float32)
    for _ in range(0, STEPS, 16):
        for _ in tl.static_range(16):
            x = tl.exp2(-x) if FUNCTION == "exp2" else tl.rsqrt(x)
    tl.store(out_ptr + chains, x)


@triton.jit(do_not_specialize=["steps"])
def chase_kernel(ring_ptr, place_ptr, steps):
    """Go `steps` steps along a ring, in which each place holds the next; store the place for the call after."""
    place = tl.load(place_ptr)
    for _ in range(steps):
        place = tl.load(ring_ptr + place)
    tl.store(place_ptr, place)


@triton.jit
def waiting_reads_kernel(x_ptr, place_ptr, steps, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """Read block after block of BLOCK elements; where the next one begins depends on this one, which is all zeros."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for _ in range(steps):
        places += PROGRAMS * BLOCK + tl.load(x_ptr + places)
    tl.store(place_ptr + tl.program_id(0), tl.max(places, 0))


@triton.jit
def add_norm_kernel(x_ptr, r_ptr, g_ptr, h_ptr, y_ptr, cols, epsilon, BLOCK: tl.constexpr):
    """Add two rows, and scale the sum to a mean square of 1 and by g: the kernel of the chapter on fusion."""
    col = tl.arange(0, BLOCK)
    in_row = col < cols
    place = tl.program_id(0) * cols + col
    x = tl.load(x_ptr + place, mask=in_row, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + place, mask=in_row, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + col, mask=in_row, other=0.0).to(tl.float32)
    h = x + r
    tl.store(h_ptr + place, h.to(h_ptr.dtype.element_ty), mask=in_row)
    scale = tl.rsqrt(tl.sum(h * h, 0) / cols + epsilon)
    y = h * scale * g
    tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=in_row)


@triton.jit(do_not_specialize=["steps"])  # the few steps of a check run the machine code that is timed
def mma_kernel(
    sums_ptr,
    a_ptr,
    b_ptr,
    steps,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
    PRECISION: tl.constexpr,
    SUM: tl.constexpr,
):
    """Advance each tile C -> C + A B by `steps` steps, on the chip; then store the sum of each of its rows.

    A is loaded once per program, B once for all. C changes with each step, so no step is the same work as another.
    """
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    columns, depth = tl.arange(0, TILE_N), tl.arange(0, TILE_K)
    a = tl.load(a_ptr + rows[:, None] * TILE_K + depth[None, :])
    b = tl.load(b_ptr + depth[:, None] + columns[None, :] * TILE_K)
    c = tl.zeros((TILE_M, TILE_N), SUM)
    for _ in range(steps):
        c = tl.dot(a, b, c, input_precision=PRECISION, out_dtype=SUM)
    tl.store(sums_ptr + rows, tl.sum(c, 1))


@triton.jit
def triad_kernel(a_ptr, b_ptr, c_ptr, scale, BLOCK: tl.constexpr):
    """Compute a = b + scale c; each program has BLOCK elements."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(a_ptr + i, tl.load(b_ptr + i) + scale * tl.load(c_ptr + i))


@triton.jit
def strided_sum_kernel(x_ptr, sums_ptr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Sum elements at distances of STRIDE; each program has BLOCK of them."""
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


def special(out: torch.Tensor, function: str, steps: int) -> None:
    """Fill `out` with chains of "exp2", x -> 2^-x, or "rsqrt", x -> 1 / sqrt(x); `steps` values of it per element.

    `steps` is a multiple of 16 and the size of `out` one of `FMA_CHAINS`.
    """
    special_kernel[(out.numel() // FMA_CHAINS,)](out, FUNCTION=function, STEPS=steps, CHAINS=FMA_CHAINS)


def chase(ring: torch.Tensor, place: torch.Tensor, steps: int) -> None:
    """Go `steps` steps along `ring`, in which each place holds the index of the next, from `place` on, and update it.

    One load waits for the other, so the time of a step is the latency of a load. Both tensors are of int32.
    """
    chase_kernel[(1,)](ring, place, steps, num_warps=1)


def waiting_reads(x: torch.Tensor, places: torch.Tensor) -> None:
    """Read `x`, int32 zeros, once with `places.numel()` programs, each with `WAITING_BLOCK` elements under way.

    What a program reads next depends on what it has just read. `places` gets where each ended: just behind `x`.
    """
    programs = places.numel()
    steps = x.numel() // (programs * WAITING_BLOCK)
    waiting_reads_kernel[(programs,)](x, places, steps, PROGRAMS=programs, BLOCK=WAITING_BLOCK, num_warps=4)


def mma(sums: torch.Tensor, a: torch.Tensor, b: torch.Tensor, steps: int, tile_m: int, *, tf32: bool = False) -> None:
    """Multiply each tile of `a` by `b`, `steps` times, and add up: `sums` = steps x the row sums of `a @ b.T`.

    That is 2 m n k `steps` FLOP for `a` (m, k) and `b` (n, k), both contiguous. n and k are powers of two of 16 or
    more, and `tile_m`, the rows of a program, is one that divides m. Float32 tensors are multiplied as tf32 or not;
    int8 ones are added up in int32, in `sums` too.
    """
    (m, k), n = a.shape, b.shape[0]
    precision = "tf32" if tf32 else "ieee"
    warps = 8 if tile_m >= 128 else 4
    sum_type = tl.int32 if a.dtype == torch.int8 else tl.float32
    tiles = {"TILE_M": tile_m, "TILE_N": n, "TILE_K": k}
    mma_kernel[(m // tile_m,)](sums, a, b, steps, **tiles, PRECISION=precision, SUM=sum_type, num_warps=warps)


def triad(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, scale: float) -> None:
    """Compute a = b + `scale` c for vectors whose size is a multiple of `TRIAD_BLOCK`."""
    triad_kernel[(a.numel() // TRIAD_BLOCK,)](a, b, c, scale, BLOCK=TRIAD_BLOCK, num_warps=8)


def strided_sum(x: torch.Tensor, sums: torch.Tensor, stride: int) -> None:
    """Sum every `stride`-th element of the start of `x`, `STRIDE_BLOCK` of them into each element of `sums`."""
    strided_sum_kernel[(sums.numel(),)](x, sums, STRIDE=stride, BLOCK=STRIDE_BLOCK)


def add_norm(
    x: torch.Tensor,
    r: torch.Tensor,
    g: torch.Tensor,
    out: tuple[torch.Tensor, torch.Tensor],
    epsilon: float,
    warps: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute h = x + r and y = h / sqrt(mean(h^2) + epsilon) g for every row, into `out`; all are contiguous.

    The matrices have less than 2^31 elements. A row is one block, so its columns are padded to a power of two.
    """
    rows, cols = x.shape
    add_norm_kernel[(rows,)](x, r, g, *out, cols, epsilon, BLOCK=triton.next_power_of_2(cols), num_warps=warps)
    return out


def empty() -> None:
    """Launch a kernel that does nothing."""
    empty_kernel[(1,)]()
