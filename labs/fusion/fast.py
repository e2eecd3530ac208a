"""Where the lab's races lead: the course's fastest kernels on rows, of any width from 256 to 65,536 columns.

A kernel on rows that is at the speed of a copy for 4096 columns can be at half of it for 5000 or 12288. There are four
reasons, and each kernel below avoids them:

- A block of a power of two is too large. For 12288 columns it has 16384 lanes; a quarter of them have nothing to do and
  take registers and threads. Here a row is a tuple of *pieces* of the same power of two, three of 4096 in this case,
  and only the last piece can reach past the columns.
- The compiler must know that rows start at multiples of 16 bytes, or it loads two bytes at a time. It looks for 16 in
  the strides; for 1000 columns, a multiple of 8 numbers of two bytes, it has to be told: see `multiple`.
- Registers that hold gamma and beta while the statistics are computed are missing elsewhere: fewer programs fit on a
  multiprocessor, and there are fewer loads under way. They are loaded last, from the caches, where all rows find them.
- So are the registers of float32 copies. A wide row stays in registers as the 16-bit numbers that it is, and is
  converted each time: see `again`.

At the widths measured on an H200, softmax and the normalizations reach 95% of a copy's speed or more up to 20,000
columns of 16 bits. Layer normalization of longer rows, softmax beyond 24,576 columns and RMSNorm beyond 32,768 reach
79% to 91%: a row of 128 KB fills a multiprocessor's registers, so nothing is loaded while it is computed, unless the
next row is staged in shared memory; and the traffic of gamma and beta between L2 and multiprocessors is twice that of
x.

In `staged_kernel`, the copy of the next row is under way while the result of this one is computed and stored. Rows that
fit nowhere, like 65,536 numbers of 4 bytes, are read again, from the caches if possible.

`plan_of` chooses by the operation and the bytes of a row.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from mlsys.errors import UserError
from mlsys.measure.device import Device, detect_device

LEAST_COLUMNS, MOST_COLUMNS = 256, 65536
"""Widths that the plans are made for."""

NEEDS_FOR_STAGES = (8, 0)
"""Compute capability from which GPUs copy to shared memory without passing through registers."""

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
EPSILON = 1e-5


class CannotFuse(UserError, ValueError):
    """Rows or vectors that the kernels do not take, or a device that cannot compute it."""


@triton.jit
def multiple(number, VECTOR: tl.constexpr):
    """Return `number`, a multiple of VECTOR, so that the compiler sees that it is one: it may load VECTOR at once."""
    return number // VECTOR * VECTOR


@triton.jit
def again(x, PACKED: tl.constexpr):
    """Return numbers in float32; the compiler does not see that it has converted these before, and kept the result."""
    if PACKED:
        x = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=2)
    return x.to(tl.float32)


@triton.jit
def columns_of(piece: tl.constexpr, PIECE: tl.constexpr):
    """Columns of a piece, (1, PIECE)."""
    return piece * PIECE + tl.arange(0, PIECE)[None, :]


@triton.jit
def inside(row, rows, cols, piece: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr):
    """Which lanes of a piece hold numbers: of the pieces, only the last can reach past the columns."""
    mask = row < rows
    if piece == PIECES - 1:
        mask = mask & (columns_of(piece, PIECE) < cols)
    return mask


@triton.jit
def load_rows(
    x_ptr, row, rows, cols, stride,
    OTHER: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Rows as a tuple of blocks of PIECE columns, in float32 unless PACKED; lanes that hold no number are OTHER."""
    pieces = ()
    for piece in tl.static_range(PIECES):
        mask = inside(row, rows, cols, piece, PIECE, PIECES)
        x = tl.load(x_ptr + row * stride + columns_of(piece, PIECE), mask=mask, other=OTHER)
        pieces += (x if PACKED else x.to(tl.float32),)
    return pieces


@triton.jit
def load_vector(ptr, cols, piece: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr):
    """A piece of a vector that all rows share, which should stay in the caches; in float32."""
    col = columns_of(piece, PIECE)
    if piece == PIECES - 1:
        x = tl.load(ptr + col, mask=col < cols, other=0.0, eviction_policy="evict_last")
    else:
        x = tl.load(ptr + col, eviction_policy="evict_last")
    return x.to(tl.float32)


@triton.jit
def store_rows(y_ptr, y, row, rows, cols, stride, piece: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr):
    """Store a piece of the result, but no row past the end."""
    mask = inside(row, rows, cols, piece, PIECE, PIECES)
    tl.store(y_ptr + row * stride + columns_of(piece, PIECE), y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_kernel(
    x_ptr, y_ptr, rows, cols, stride_x, stride_y,
    VECTOR: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Softmax of ROWS rows per program. Without PACKED, the exponentials are computed once, and kept in float32."""
    cols, stride_x, stride_y = multiple(cols, VECTOR), multiple(stride_x, VECTOR), multiple(stride_y, VECTOR)
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    x = load_rows(x_ptr, row, rows, cols, stride_x, -float("inf"), PIECE, PIECES, PACKED)
    highest = x[0]
    for piece in tl.static_range(1, PIECES):
        highest = tl.maximum(highest, x[piece])
    top = tl.max(highest.to(tl.float32), 1)[:, None]
    total = tl.zeros((ROWS, PIECE), tl.float32)
    e = ()
    for piece in tl.static_range(PIECES):
        here = tl.exp(again(x[piece], PACKED) - top)
        total += here
        if not PACKED:
            e += (here,)
    share = 1.0 / tl.sum(total, 1)[:, None]
    for piece in tl.static_range(PIECES):
        here = tl.exp(again(x[piece], PACKED) - top) if PACKED else e[piece]
        store_rows(y_ptr, here * share, row, rows, cols, stride_y, piece, PIECE, PIECES)


@triton.jit
def layernorm_kernel(
    x_ptr, gamma_ptr, beta_ptr, y_ptr, rows, cols, epsilon, stride_x, stride_y,
    VECTOR: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Layer normalization of ROWS rows per program, which share each load of gamma and beta."""
    cols, stride_x, stride_y = multiple(cols, VECTOR), multiple(stride_x, VECTOR), multiple(stride_y, VECTOR)
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    x = load_rows(x_ptr, row, rows, cols, stride_x, 0.0, PIECE, PIECES, PACKED)
    total = tl.zeros((ROWS, PIECE), tl.float32)
    for piece in tl.static_range(PIECES):
        total += again(x[piece], PACKED)
    mean = tl.sum(total, 1)[:, None] / cols
    squares = tl.zeros((ROWS, PIECE), tl.float32)
    for piece in tl.static_range(PIECES):
        centred = again(x[piece], PACKED) - mean
        if piece == PIECES - 1:
            centred = tl.where(columns_of(piece, PIECE) < cols, centred, 0.0)
        squares += centred * centred
    r = tl.rsqrt(tl.sum(squares, 1)[:, None] / cols + epsilon)
    for piece in tl.static_range(PIECES):
        gamma = load_vector(gamma_ptr, cols, piece, PIECE, PIECES)
        beta = load_vector(beta_ptr, cols, piece, PIECE, PIECES)
        y = (again(x[piece], PACKED) - mean) * r * gamma + beta
        store_rows(y_ptr, y, row, rows, cols, stride_y, piece, PIECE, PIECES)


@triton.jit
def rmsnorm_kernel(
    x_ptr, gamma_ptr, y_ptr, rows, cols, epsilon, stride_x, stride_y,
    VECTOR: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """RMSNorm, x gamma / sqrt(mean of x^2 + epsilon), of ROWS rows per program, which share each load of gamma."""
    cols, stride_x, stride_y = multiple(cols, VECTOR), multiple(stride_x, VECTOR), multiple(stride_y, VECTOR)
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    x = load_rows(x_ptr, row, rows, cols, stride_x, 0.0, PIECE, PIECES, PACKED)
    squares = tl.zeros((ROWS, PIECE), tl.float32)
    for piece in tl.static_range(PIECES):
        here = again(x[piece], PACKED)
        squares += here * here
    r = tl.rsqrt(tl.sum(squares, 1)[:, None] / cols + epsilon)
    for piece in tl.static_range(PIECES):
        y = again(x[piece], PACKED) * r * load_vector(gamma_ptr, cols, piece, PIECE, PIECES)
        store_rows(y_ptr, y, row, rows, cols, stride_y, piece, PIECE, PIECES)


@triton.jit
def long_softmax_kernel(
    x_ptr, y_ptr, rows, cols, stride_x, stride_y, VECTOR: tl.constexpr, PIECE: tl.constexpr
):  # fmt: skip
    """Softmax of one row per program, which reads it three times."""
    cols, stride_x, stride_y = multiple(cols, VECTOR), multiple(stride_x, VECTOR), multiple(stride_y, VECTOR)
    x_row = x_ptr + tl.program_id(0).to(tl.int64) * stride_x
    y_row = y_ptr + tl.program_id(0).to(tl.int64) * stride_y
    highest = tl.full((PIECE,), -float("inf"), tl.float32)
    for start in tl.range(0, cols, PIECE):
        col = start + tl.arange(0, PIECE)
        highest = tl.maximum(highest, tl.load(x_row + col, mask=col < cols, other=-float("inf")).to(tl.float32))
    top = tl.max(highest, 0)
    total = tl.zeros((PIECE,), tl.float32)
    for start in tl.range(0, cols, PIECE):
        col = start + tl.arange(0, PIECE)
        total += tl.exp(tl.load(x_row + col, mask=col < cols, other=-float("inf")).to(tl.float32) - top)
    share = 1.0 / tl.sum(total, 0)
    for start in tl.range(0, cols, PIECE):
        col = start + tl.arange(0, PIECE)
        y = tl.exp(tl.load(x_row + col, mask=col < cols, other=0.0).to(tl.float32) - top) * share
        tl.store(y_row + col, y.to(y_ptr.dtype.element_ty), mask=col < cols)


@triton.jit
def long_layernorm_kernel(
    x_ptr, gamma_ptr, beta_ptr, y_ptr, rows, cols, epsilon, stride_x, stride_y,
    VECTOR: tl.constexpr, PIECE: tl.constexpr,
):  # fmt: skip
    """Layer normalization of one row per program, which reads it three times."""
    cols, stride_x, stride_y = multiple(cols, VECTOR), multiple(stride_x, VECTOR), multiple(stride_y, VECTOR)
    x_row = x_ptr + tl.program_id(0).to(tl.int64) * stride_x
    y_row = y_ptr + tl.program_id(0).to(tl.int64) * stride_y
    total = tl.zeros((PIECE,), tl.float32)
    for start in tl.range(0, cols, PIECE):
        col = start + tl.arange(0, PIECE)
        total += tl.load(x_row + col, mask=col < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / cols
    squares = tl.zeros((PIECE,), tl.float32)
    for start in tl.range(0, cols, PIECE):
        col = start + tl.arange(0, PIECE)
        x = tl.load(x_row + col, mask=col < cols, other=0.0).to(tl.float32)
        centred = tl.where(col < cols, x - mean, 0.0)
        squares += centred * centred
    r = tl.rsqrt(tl.sum(squares, 0) / cols + epsilon)
    for start in tl.range(0, cols, PIECE):
        col = start + tl.arange(0, PIECE)
        x = tl.load(x_row + col, mask=col < cols, other=0.0).to(tl.float32)
        gamma = tl.load(gamma_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
        beta = tl.load(beta_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
        y = (x - mean) * r * gamma + beta
        tl.store(y_row + col, y.to(y_ptr.dtype.element_ty), mask=col < cols)


@triton.jit
def long_rmsnorm_kernel(
    x_ptr, gamma_ptr, y_ptr, rows, cols, epsilon, stride_x, stride_y, VECTOR: tl.constexpr, PIECE: tl.constexpr
):  # fmt: skip
    """RMSNorm of one row per program, which reads it twice."""
    cols, stride_x, stride_y = multiple(cols, VECTOR), multiple(stride_x, VECTOR), multiple(stride_y, VECTOR)
    x_row = x_ptr + tl.program_id(0).to(tl.int64) * stride_x
    y_row = y_ptr + tl.program_id(0).to(tl.int64) * stride_y
    squares = tl.zeros((PIECE,), tl.float32)
    for start in tl.range(0, cols, PIECE):
        col = start + tl.arange(0, PIECE)
        x = tl.load(x_row + col, mask=col < cols, other=0.0).to(tl.float32)
        squares += x * x
    r = tl.rsqrt(tl.sum(squares, 0) / cols + epsilon)
    for start in tl.range(0, cols, PIECE):
        col = start + tl.arange(0, PIECE)
        x = tl.load(x_row + col, mask=col < cols, other=0.0).to(tl.float32)
        gamma = tl.load(gamma_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
        tl.store(y_row + col, (x * r * gamma).to(y_ptr.dtype.element_ty), mask=col < cols)


@gluon.jit
def two(words, HALF: gl.constexpr):
    """The two 16-bit numbers of each word, in float32: float16 with HALF, else bfloat16, the upper half of a float32.

    As for `again`, the compiler does not see that it has converted these words before.
    """
    if HALF:
        ptx: gl.constexpr = "{ .reg .b16 l, h; mov.b32 {l, h}, $2; cvt.f32.f16 $0, l; cvt.f32.f16 $1, h; }"
    else:
        ptx: gl.constexpr = "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;"
    return gl.inline_asm_elementwise(ptx, "=r,=r,r", [words], dtype=(gl.float32, gl.float32), is_pure=False, pack=1)


@gluon.jit
def word(low, high, HALF: gl.constexpr):
    """Two numbers rounded to 16 bits, in a word."""
    ptx: gl.constexpr = "cvt.rn.f16x2.f32 $0, $2, $1;" if HALF else "cvt.rn.bf16x2.f32 $0, $2, $1;"
    return gl.inline_asm_elementwise(ptx, "=r,r,r", [low, high], dtype=gl.int32, is_pure=True, pack=1)


@gluon.jit
def start_copy(stage, x_row, words, piece: gl.constexpr, PIECE: gl.constexpr, layout: gl.constexpr):
    """Start to copy a piece of a row to shared memory; every thread copies the words that it will read."""
    place = piece * PIECE + gl.arange(0, PIECE, layout)
    async_copy.async_copy_global_to_shared(stage.index(piece), x_row + place, mask=place < words)


@gluon.jit
def store_words(
    x, gamma_ptr, beta_ptr, y_row, offset, share, words,
    piece: gl.constexpr, PIECE: gl.constexpr, OP: gl.constexpr, HALF: gl.constexpr, layout: gl.constexpr,
):  # fmt: skip
    """Compute a piece of the result from words of a row and its statistics, and store it."""
    place = piece * PIECE + gl.arange(0, PIECE, layout)
    low, high = two(x, HALF)
    low -= offset
    high -= offset
    if OP == "softmax":
        low = gl.exp(low)
        high = gl.exp(high)
    low *= share
    high *= share
    if OP != "softmax":
        gamma = gl.load(gamma_ptr + place, mask=place < words, other=0, eviction_policy="evict_last")
        gamma_low, gamma_high = two(gamma, HALF)
        low *= gamma_low
        high *= gamma_high
    if OP == "layernorm":
        beta = gl.load(beta_ptr + place, mask=place < words, other=0, eviction_policy="evict_last")
        beta_low, beta_high = two(beta, HALF)
        low += beta_low
        high += beta_high
    gl.store(y_row + place, word(low, high, HALF), mask=place < words)


@gluon.jit
def staged_kernel(
    x_ptr, gamma_ptr, beta_ptr, y_ptr, rows, cols, epsilon, stride_x, stride_y,
    OP: gl.constexpr, HALF: gl.constexpr, PIECE: gl.constexpr, PIECES: gl.constexpr, HELD: gl.constexpr,
    num_warps: gl.constexpr,
):  # fmt: skip
    """Softmax, layer normalization or RMSNorm, as OP says, of every num_programs-th row, in words of two numbers.

    Columns and strides are multiples of 8. A row waits in shared memory. The first HELD pieces are read from there
    once, and stay in registers, so the next row can come to their place at once; the place of the others becomes free
    as the result is stored. A piece is PIECE words.
    """
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [num_warps], [0])
    stage_layout: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    LAST: gl.constexpr = PIECES - 1
    words, step_x, step_y = cols // 8 * 4, (stride_x // 8 * 4).to(gl.int64), (stride_y // 8 * 4).to(gl.int64)
    x_ptr, y_ptr = x_ptr.to(gl.pointer_type(gl.int32)), y_ptr.to(gl.pointer_type(gl.int32))
    gamma_ptr, beta_ptr = gamma_ptr.to(gl.pointer_type(gl.int32)), beta_ptr.to(gl.pointer_type(gl.int32))
    stage = gl.allocate_shared_memory(gl.int32, [PIECES, PIECE], stage_layout)
    in_last = LAST * PIECE + gl.arange(0, PIECE, layout) < words
    for piece in gl.static_range(PIECES):
        start_copy(stage, x_ptr + gl.program_id(0) * step_x, words, piece, PIECE, layout)
    async_copy.commit_group()
    for row in range(gl.program_id(0), rows, gl.num_programs(0)):
        following = x_ptr + min(row + gl.num_programs(0), rows - 1) * step_x  # copied in vain after the last row
        async_copy.wait_group(0)
        x = ()
        for piece in gl.static_range(HELD):
            x += (stage.index(piece).load(layout),)
        for piece in gl.static_range(HELD):
            start_copy(stage, following, words, piece, PIECE, layout)
        offset = 0.0
        total = gl.zeros((PIECE,), gl.float32, layout)
        if OP == "softmax":
            highest = gl.full((PIECE,), -float("inf"), gl.float32, layout)
            for piece in gl.static_range(PIECES):
                low, high = two(x[piece] if piece < HELD else stage.index(piece).load(layout), HALF)
                larger = gl.maximum(low, high)
                highest = gl.maximum(highest, larger if piece < LAST else gl.where(in_last, larger, -float("inf")))
            offset = gl.max(highest, 0)
            for piece in gl.static_range(PIECES):
                low, high = two(x[piece] if piece < HELD else stage.index(piece).load(layout), HALF)
                both = gl.exp(low - offset) + gl.exp(high - offset)
                total += both if piece < LAST else gl.where(in_last, both, 0.0)
            share = 1.0 / gl.sum(total, 0)
        else:
            if OP == "layernorm":
                for piece in gl.static_range(PIECES):
                    low, high = two(x[piece] if piece < HELD else stage.index(piece).load(layout), HALF)
                    total += low + high if piece < LAST else gl.where(in_last, low + high, 0.0)
                offset = gl.sum(total, 0) / cols
            squares = gl.zeros((PIECE,), gl.float32, layout)
            for piece in gl.static_range(PIECES):
                low, high = two(x[piece] if piece < HELD else stage.index(piece).load(layout), HALF)
                low -= offset
                high -= offset
                both = low * low + high * high
                squares += both if piece < LAST else gl.where(in_last, both, 0.0)
            share = gl.rsqrt(gl.sum(squares, 0) / cols + epsilon)
        y_row = y_ptr + row * step_y
        for piece in gl.static_range(HELD, PIECES):
            here = stage.index(piece).load(layout)
            start_copy(stage, following, words, piece, PIECE, layout)
            store_words(here, gamma_ptr, beta_ptr, y_row, offset, share, words, piece, PIECE, OP, HALF, layout)
        for piece in gl.static_range(HELD):
            store_words(x[piece], gamma_ptr, beta_ptr, y_row, offset, share, words, piece, PIECE, OP, HALF, layout)
        async_copy.commit_group()
    async_copy.wait_group(0)


@triton.jit
def chain_kernel(
    x_ptr, mean_ptr, var_ptr, gamma_ptr, beta_ptr, scale_ptr, y_ptr, rows, cols, epsilon, stride_x, stride_y,
    VECTOR: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr,
):  # fmt: skip
    """ReLU, batch normalization and scale of one tile per program; factor and shift are computed once per column."""
    cols, stride_x, stride_y = multiple(cols, VECTOR), multiple(stride_x, VECTOR), multiple(stride_y, VECTOR)
    across = tl.cdiv(cols, PIECE)
    row = (tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    col = (tl.program_id(0) % across * PIECE + tl.arange(0, PIECE))[None, :]
    in_cols = col < cols
    x = tl.load(x_ptr + row * stride_x + col, mask=(row < rows) & in_cols, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + col, mask=in_cols, other=0.0).to(tl.float32)
    var = tl.load(var_ptr + col, mask=in_cols, other=1.0).to(tl.float32)
    gamma = tl.load(gamma_ptr + col, mask=in_cols, other=0.0).to(tl.float32)
    beta = tl.load(beta_ptr + col, mask=in_cols, other=0.0).to(tl.float32)
    scale = tl.load(scale_ptr + col, mask=in_cols, other=0.0).to(tl.float32)
    factor = gamma * tl.rsqrt(var + epsilon)
    shift = scale * (beta - mean * factor)
    y = tl.maximum(x, 0.0) * (scale * factor) + shift
    tl.store(y_ptr + row * stride_y + col, y.to(y_ptr.dtype.element_ty), mask=(row < rows) & in_cols)


@triton.jit
def bias_gelu_kernel(
    x_ptr, bias_ptr, y_ptr, rows, cols, stride_x, stride_y,
    VECTOR: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr,
):  # fmt: skip
    """Bias and GELU of one tile per program; the lab's kernel explains the polynomial."""
    cols, stride_x, stride_y = multiple(cols, VECTOR), multiple(stride_x, VECTOR), multiple(stride_y, VECTOR)
    across = tl.cdiv(cols, PIECE)
    row = (tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    col = (tl.program_id(0) % across * PIECE + tl.arange(0, PIECE))[None, :]
    x = tl.load(x_ptr + row * stride_x + col, mask=(row < rows) & (col < cols), other=0.0).to(tl.float32)
    v = x + tl.load(bias_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
    t = tl.minimum(tl.abs(v), 6.0)
    tail = 3.309397075523801e-05
    tail = tail * t - 7.692297525885294e-04
    tail = tail * t + 8.080749140700616e-03
    tail = tail * t - 5.341215376250197e-02
    tail = tail * t - 4.587709370745757e-01
    tail = tail * t - 1.1512017136655655
    tail = tail * t - 9.999930598098795e-01
    y = tl.maximum(v, 0.0) - t * tl.exp2(tail)
    tl.store(y_ptr + row * stride_y + col, y.to(y_ptr.dtype.element_ty), mask=(row < rows) & (col < cols))


@dataclass(frozen=True)
class Held:
    """One program keeps `rows` rows in registers: as 16-bit numbers if `packed`, else as float32 where it can.

    A thread has 8 numbers of a piece unless `piece`, its columns, says otherwise. With `maxnreg`, a packed row has at
    most that many registers per thread: with 32, two programs of 32 warps share a multiprocessor.
    """

    rows: int
    num_warps: int
    packed: bool = False
    piece: int = 0
    maxnreg: int = 0

    def columns(self, columns: int) -> int:
        """Columns of a piece."""
        return self.piece or min(8 * 32 * self.num_warps, triton.next_power_of_2(columns))


@dataclass(frozen=True)
class Staged:
    """Rows wait in shared memory for `programs` programs per multiprocessor; see `staged_kernel` for `held`."""

    num_warps: int
    programs: int
    held: int = 0

    @property
    def words(self) -> int:
        """Words of a piece: four for each thread."""
        return 4 * 32 * self.num_warps

    def shared_bytes(self, columns: int) -> int:
        """Shared memory of a program, of which the reductions take up to a word for every two warps and operand."""
        return triton.cdiv(columns, 2 * self.words) * self.words * 4 + 8 * self.num_warps


@dataclass(frozen=True)
class Long:
    """A program reads its row several times, in pieces."""

    piece: int = 8192
    num_warps: int = 32


@dataclass(frozen=True)
class Tile:
    """A program computes a tile of `rows` by `piece`: for operations on single elements."""

    rows: int
    piece: int
    num_warps: int = 4


Plan = Held | Staged | Long | Tile

PLANS: dict[str, dict[int, Plan]] = {
    "softmax": {
        512: Held(4, 2), 1024: Held(2, 2), 2048: Held(2, 4), 8192: Held(1, 4), 20480: Held(1, 8), 24576: Held(1, 16),
        40960: Held(1, 8, packed=True), 49152: Held(1, 32, packed=True, maxnreg=32), 65536: Staged(16, 2, 8),
        262144: Staged(32, 1, 4),
    },
    "layernorm": {
        512: Held(4, 2), 1024: Held(2, 2), 2048: Held(2, 4), 6144: Held(1, 4), 8192: Held(2, 8), 10240: Held(1, 4),
        20480: Held(1, 8), 24576: Held(1, 8, packed=True), 40960: Held(1, 16, packed=True), 49152: Staged(16, 2, 3),
        262144: Staged(32, 1, 2),
    },
    "rmsnorm": {
        512: Held(4, 2), 1024: Held(2, 2), 2048: Held(2, 4), 10240: Held(1, 4), 40960: Held(1, 16),
        65536: Held(1, 16, packed=True), 262144: Staged(32, 1, 2),
    },
    "chain": {2047: Tile(8, 256), 262144: Tile(4, 1024)},
    "bias_gelu": {262144: Tile(8, 256)},
}  # fmt: skip
"""Plan of each operation for rows of up to a number of bytes, measured with 16-bit numbers on an H200."""

MOST_HELD_FLOAT32 = 16384
"""Columns of float32 up to which a row stays in registers."""

KERNELS = {
    (Held, "softmax"): softmax_kernel,
    (Held, "layernorm"): layernorm_kernel,
    (Held, "rmsnorm"): rmsnorm_kernel,
    (Long, "softmax"): long_softmax_kernel,
    (Long, "layernorm"): long_layernorm_kernel,
    (Long, "rmsnorm"): long_rmsnorm_kernel,
    (Tile, "chain"): chain_kernel,
    (Tile, "bias_gelu"): bias_gelu_kernel,
}

VECTORS = {
    "softmax": (),
    "layernorm": ("gamma", "beta"),
    "rmsnorm": ("gamma",),
    "chain": ("mean", "var", "gamma", "beta", "scale"),
    "bias_gelu": ("bias",),
}
"""Names of the vectors that an operation takes, a number per column."""


def plan_of(op: str, columns: int, itemsize: int = 2, vector: int = 8, device: Device | None = None) -> Plan:
    """Return the plan for an operation on rows of `columns` numbers of `itemsize` bytes.

    Staged rows need numbers of 16 bits that are loaded 8 at a time (`vector`), and a GPU whose shared memory has room
    for the programs. Others are held if they fit, and else read again.

    >>> plan_of("softmax", 5000)
    Held(rows=1, num_warps=8, packed=False, piece=0, maxnreg=0)
    >>> plan_of("softmax", 2500, itemsize=4) == plan_of("softmax", 5000)
    True
    >>> plan_of("rmsnorm", 65536, itemsize=4)
    Long(piece=8192, num_warps=32)
    """
    plan = next(plan for most, plan in sorted(PLANS[op].items()) if columns * itemsize <= most)
    if not isinstance(plan, Staged):
        return plan
    if itemsize == 4:
        return Held(1, 16) if columns <= MOST_HELD_FLOAT32 else Long()
    room = device is None or (
        (device.capability or (0, 0)) >= NEEDS_FOR_STAGES and device.shared_bytes >= plan.shared_bytes(columns)
    )
    return plan if vector == 8 and room else Long()


def vector_of(*numbers: int) -> int:
    """Return how many neighbors all rows can load at once, up to 8: a divisor of the columns and of all strides.

    >>> vector_of(1000, 1000), vector_of(1000, 1002), vector_of(257)
    (8, 2, 1)
    """
    return next(size for size in (8, 4, 2, 1) if all(number % size == 0 for number in numbers))


def check(op: str, x: torch.Tensor, vectors: tuple[torch.Tensor, ...], out: torch.Tensor) -> None:
    """Refuse what the kernels do not take, before anything is launched.

    Raises:
        CannotFuse: with the value, and what to do.
    """
    if x.dim() != 2 or x.dtype not in DTYPES:
        raise CannotFuse(f"x is {x.dtype} of shape {tuple(x.shape)}: give rows of float16, bfloat16 or float32")
    columns = x.shape[1]
    if not LEAST_COLUMNS <= columns <= MOST_COLUMNS:
        raise CannotFuse(
            f"x has {columns} columns: give {LEAST_COLUMNS} to {MOST_COLUMNS:,}; the lab's kernels take less"
        )
    if out.shape != x.shape:
        raise CannotFuse(f"out has shape {tuple(out.shape)}: the result has {tuple(x.shape)}")
    for name, matrix in (("x", x), ("out", out)):
        if matrix.stride(1) != 1:
            raise CannotFuse(f"{name} has strides {matrix.stride()}: give rows of neighboring numbers")
        if matrix.data_ptr() % 16:
            raise CannotFuse(f"{name} starts at address {matrix.data_ptr():#x}: give a multiple of 16 bytes")
    for name, vector in zip(VECTORS[op], vectors, strict=True):
        if vector.shape != (columns,) or not vector.is_contiguous() or vector.data_ptr() % 16:
            raise CannotFuse(
                f"{name} has shape {tuple(vector.shape)}: give {columns} neighbors from a multiple of 16 bytes"
            )
    for name, tensor in (("out", out), *zip(VECTORS[op], vectors, strict=True)):
        if tensor.dtype != x.dtype or tensor.device != x.device:
            raise CannotFuse(
                f"{name} is {tensor.dtype} on {tensor.device}, x is {x.dtype} on {x.device}: give both alike"
            )


def check_device(device: Device, dtype: torch.dtype) -> None:
    """Refuse a device that cannot compute it.

    Raises:
        CannotFuse: with the device, and what to do.
    """
    if device.kind != "gpu":
        raise CannotFuse("no CUDA GPU found here, and these kernels are for one: use torch's own functions")
    if dtype == torch.bfloat16 and not device.has_bf16:
        raise CannotFuse(f"{device.name} has no bfloat16: give float16 or float32")


def launch(
    op: str,
    x: torch.Tensor,
    vectors: tuple[torch.Tensor, ...],
    out: torch.Tensor,
    plan: Plan,
    device: Device,
    epsilon: float = EPSILON,
) -> None:
    """Launch the kernel of a plan."""
    rows, columns = x.shape
    if not rows:
        return
    strides = (x.stride(0), out.stride(0))
    if isinstance(plan, Staged):
        gamma, beta = (*vectors, x, x)[:2]  # addresses at least
        pieces = triton.cdiv(columns, 2 * plan.words)
        staged_kernel[(min(rows, plan.programs * (device.multiprocessors or 1)),)](
            x, gamma, beta, out, rows, columns, epsilon, *strides,
            OP=op, HALF=x.dtype == torch.float16, PIECE=plan.words, PIECES=pieces,
            HELD=min(plan.held, pieces), num_warps=plan.num_warps,
        )  # fmt: skip
        return
    numbers = (rows, columns, *(() if op in ("softmax", "bias_gelu") else (epsilon,)), *strides)
    constants = {"VECTOR": vector_of(columns, *strides), "num_warps": plan.num_warps}
    if isinstance(plan, Held):
        piece = plan.columns(columns)
        constants |= {"ROWS": plan.rows, "PIECE": piece, "PIECES": triton.cdiv(columns, piece)}
        packed = plan.packed and device.kind == "gpu" and x.itemsize == 2  # Triton's interpreter has no PTX
        constants |= {"PACKED": packed} | ({"maxnreg": plan.maxnreg} if packed and plan.maxnreg else {})
        programs = triton.cdiv(rows, plan.rows)
    elif isinstance(plan, Tile):
        constants |= {"ROWS": plan.rows, "PIECE": plan.piece}
        programs = triton.cdiv(rows, plan.rows) * triton.cdiv(columns, plan.piece)
    else:
        constants |= {"PIECE": plan.piece}
        programs = rows
    KERNELS[type(plan), op][(programs,)](x, *vectors, out, *numbers, **constants)


def run(
    op: str, x: torch.Tensor, vectors: tuple[torch.Tensor, ...], out: torch.Tensor | None, epsilon: float = EPSILON
) -> torch.Tensor:
    """Check the input, choose a plan and launch it; return `out`, made here if there is none.

    Raises:
        CannotFuse: shapes, strides, dtypes or a device that the kernels do not take.
    """
    if out is None:
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    check(op, x, vectors, out)
    device = detect_device()
    check_device(device, x.dtype)
    vector = vector_of(x.shape[1], x.stride(0), out.stride(0))
    launch(op, x, vectors, out, plan_of(op, x.shape[1], x.itemsize, vector, device), device, epsilon)
    return out


def softmax(x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return the softmax of every row of x, (rows, columns); see `run` for what it raises."""
    return run("softmax", x, (), out)


def layernorm(
    x: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor,
    out: torch.Tensor | None = None,
    epsilon: float = EPSILON,
) -> torch.Tensor:
    """Return (x - mean) / sqrt(variance + epsilon) gamma + beta, by rows; see `run` for what it raises."""
    return run("layernorm", x, (gamma, beta), out, epsilon)


def rmsnorm(
    x: torch.Tensor, gamma: torch.Tensor, out: torch.Tensor | None = None, epsilon: float = EPSILON
) -> torch.Tensor:
    """Return x / sqrt(mean of x^2 + epsilon) gamma, by rows; see `run` for what it raises."""
    return run("rmsnorm", x, (gamma,), out, epsilon)


def chain(
    x: torch.Tensor,
    mean: torch.Tensor,
    var: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor,
    scale: torch.Tensor,
    out: torch.Tensor | None = None,
    epsilon: float = EPSILON,
) -> torch.Tensor:
    """Return ((relu(x) - mean) / sqrt(var + epsilon) gamma + beta) scale; see `run` for what it raises."""
    return run("chain", x, (mean, var, gamma, beta, scale), out, epsilon)


def bias_gelu(x: torch.Tensor, bias: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return gelu(x + bias); see `run` for what it raises."""
    return run("bias_gelu", x, (bias,), out)
