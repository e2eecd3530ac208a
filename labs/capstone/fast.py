"""Where the capstone leads: greedy decoding with GPT-2 at batch 1, in five kernels a layer or in one kernel a token.

A token of batch 1 reads every weight once and does two FLOPs with it, so its time is that of the bytes, and of whatever
keeps the memory waiting: the start of a kernel, the wait for the last program of the one before, the trip to memory
before the first number arrives. All kernels here therefore do as much as they can between two such waits, and ask first
for all that no kernel computes: weights, gains, shifts, biases. With `Plan.overlap` a kernel of a Hopper GPU does so
while the one before it still runs.

- A program holds its rows of weights as tiles, in which each row lies in one warp, so that the sum of a row needs no
  shared memory, and stores its sums from the threads that have them.
- Normalization is applied behind the product. With the mean m and the scale s of x, gains g and shifts b, a row w gives
  sum w (g s (x - m) + b) = s (sum (w g) x - m sum w g) + sum w b, and the last two sums are computed once for a model.
  So weights meet gains before x arrives, and every warp finds m and s in the same pass as its product.
- `qkv_kernel` puts queries into a buffer, keys and values straight into the cache.
- `attend_kernel` splits the tokens of a head over several programs, for twelve heads alone would leave most of the GPU
  without work. It asks for all keys and values but the newest before those are there. Each program leaves the average
  of its values and the logarithm of their weights' sum.
- `project_kernel` puts these together itself, so no kernel is needed for that.
- The head keeps no scores: a program's best one and its token become one 64-bit number, and `atomic_max` finds the
  largest. The next token's first kernel takes the token out of it, so nothing returns to the host and one CUDA graph
  serves every token: what changes from token to token lies in memory.
- `persistent_kernel` is all of this in one launch, with a barrier between phases. Each program fetches the weights of
  its next phase before it waits at the barrier, so memory works on while the barrier is passed.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton's tuples grow by +, for it has no starred ones.
# ruff: noqa: RUF005

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
import triton
import triton.language as tl

from mlsys.errors import UserError
from mlsys.measure.device import Device, cpu_device, detect_device
from mlsys.models.decoder import EPSILON, Decoder

NEEDS = (8, 0)
"""Compute capability that the kernels are written for."""

OVERLAPS = (9, 0)
"""Compute capability from which a kernel can begin before the one before it has ended."""

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MOST_WIDTH = 2048
"""Largest width: a program holds a row of weights of the next power of two."""

HEAD_SIZES = (16, 32, 64, 128)
MOST_ELEMENTS = 2**31
"""Elements that 32-bit offsets reach."""


class CannotDecode(UserError, ValueError):
    """A model, a text or a device that the kernels do not take."""


@triton.jit
def vector_of(ptr, WIDTH, BLOCK: tl.constexpr):
    """Return a row of WIDTH numbers that no kernel writes, such as gains."""
    i = tl.arange(0, BLOCK)
    return tl.load(ptr + i, mask=i < WIDTH, other=0.0)


@triton.jit
def normalized(x_ptr, gain, shift, WIDTH, BLOCK: tl.constexpr, EPS: tl.constexpr):
    """Return layer normalization of one row."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < WIDTH, other=0.0, cache_modifier=".cg")
    mean = tl.sum(x, 0) / WIDTH
    centered = tl.where(i < WIDTH, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centered * centered, 0) / WIDTH + EPS)
    return centered * scale * gain.to(tl.float32) + shift.to(tl.float32)


@triton.jit
def take_turns(OVERLAP: tl.constexpr):
    """Let the kernel behind this one begin, and wait for what the one before it stores; the interpreter has neither."""
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()


@triton.jit
def rows_of(weight_ptr, n, end, WIDTH, BLOCK: tl.constexpr):
    """Return the weights of rows n, those before `end`."""
    i = tl.arange(0, BLOCK)
    inside = (n < end)[:, None] & (i < WIDTH)[None, :]
    return tl.load(weight_ptr + (n * WIDTH)[:, None] + i[None, :], mask=inside, other=0.0)


@triton.jit
def products(weights, x):
    """Return the product of each row with x, in float32."""
    return tl.sum(weights.to(tl.float32) * x[None, :], 1)


@triton.jit
def pieces_of(weight_ptr, n, end, WIDTH, BLOCK: tl.constexpr):
    """Return the weights of rows n of the MLP's second layer, which have four pieces of WIDTH."""
    i = tl.arange(0, BLOCK)
    inside = (n < end)[:, None] & (i < WIDTH)[None, :]
    place = weight_ptr + (n * 4 * WIDTH)[:, None] + i[None, :]
    return (
        tl.load(place, mask=inside, other=0.0),
        tl.load(place + WIDTH, mask=inside, other=0.0),
        tl.load(place + 2 * WIDTH, mask=inside, other=0.0),
        tl.load(place + 3 * WIDTH, mask=inside, other=0.0),
    )


@triton.jit
def products_of_pieces(first, second, third, fourth, hidden_ptr, WIDTH, BLOCK: tl.constexpr):
    """Return the product of each row with the hidden layer, in float32."""
    i = tl.arange(0, BLOCK)
    hidden = hidden_ptr + i
    acc = first.to(tl.float32) * tl.load(hidden, mask=i < WIDTH, other=0.0, cache_modifier=".cg")[None, :]
    acc += second.to(tl.float32) * tl.load(hidden + WIDTH, mask=i < WIDTH, other=0.0, cache_modifier=".cg")[None, :]
    acc += third.to(tl.float32) * tl.load(hidden + 2 * WIDTH, mask=i < WIDTH, other=0.0, cache_modifier=".cg")[None, :]
    acc += fourth.to(tl.float32) * tl.load(hidden + 3 * WIDTH, mask=i < WIDTH, other=0.0, cache_modifier=".cg")[None, :]
    return tl.sum(acc, 1)


@triton.jit
def biases_of(bias_ptr, n, end):
    """Return the biases of rows n, those before `end`."""
    return tl.load(bias_ptr + n, mask=n < end, other=0.0)


@triton.jit
def biased(total, biases):
    """Add the bias of each row."""
    return total + biases.to(tl.float32)


@triton.jit
def gelu(x):
    """Return x/2 (1 + tanh(c (x + a x^3))), which is x times a sigmoid."""
    return x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


@triton.jit
def store_qkv(total, n, end, q_ptr, kv_ptr, WIDTH):
    """Store queries in one place, keys and values in another."""
    tl.store(q_ptr + n, total, mask=(n < end) & (n < WIDTH))
    kept = total.to(kv_ptr.dtype.element_ty)
    tl.store(kv_ptr + n - WIDTH, kept, mask=(n < end) & (n >= WIDTH))


@triton.jit
def attended(
    item, q_ptr, cache_ptr, part_ptr, length, WIDTH, HEAD: tl.constexpr, SPLITS: tl.constexpr, KEYS: tl.constexpr
):
    """Attend to one share of the tokens of one head: the sums, the maximum and the total of its exponentials."""
    head, split = item // SPLITS, item % SPLITS
    d = tl.arange(0, HEAD)
    share = tl.cdiv(length, SPLITS)
    end = tl.minimum((split + 1) * share, length)
    q = tl.load(q_ptr + head * HEAD + d, cache_modifier=".cg") * (HEAD**-0.5)
    top = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    acc = tl.zeros((HEAD,), tl.float32)
    for start in range(split * share, end, KEYS):
        t = start + tl.arange(0, KEYS)
        place = cache_ptr + (t * 2 * WIDTH)[:, None] + head * HEAD + d[None, :]
        inside = (t < end)[:, None]
        k = tl.load(place, mask=inside, other=0.0, cache_modifier=".cg").to(tl.float32)
        v = tl.load(place + WIDTH, mask=inside, other=0.0, cache_modifier=".cg").to(tl.float32)
        scores = tl.where(t < end, tl.sum(k * q[None, :], 1), -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 0))
        shares = tl.exp(scores - higher)
        old = tl.exp(top - higher)
        total = total * old + tl.sum(shares, 0)
        acc = acc * old + tl.sum(shares[:, None] * v, 0)
        top = higher
    part = part_ptr + item * (HEAD + 2)
    tl.store(part + d, acc)
    tl.store(part + HEAD, top)
    tl.store(part + HEAD + 1, total)


@triton.jit
def joined(part_ptr, WIDTH, HEAD: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    """Return attention's result of all heads from the shares of their tokens."""
    i = tl.arange(0, BLOCK)
    inside = i < WIDTH
    part = part_ptr + i // HEAD * SPLITS * (HEAD + 2)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK,), tl.float32)
    for split in tl.static_range(SPLITS):
        one = part + split * (HEAD + 2)
        m = tl.load(one + HEAD, mask=inside, other=0.0, cache_modifier=".cg")
        higher = tl.maximum(top, m)
        old, new = tl.exp(top - higher), tl.exp(m - higher)
        total = total * old + tl.load(one + HEAD + 1, mask=inside, other=1.0, cache_modifier=".cg") * new
        acc = acc * old + tl.load(one + i % HEAD, mask=inside, other=0.0, cache_modifier=".cg") * new
        top = higher
    return acc / total


@triton.jit
def packed(scores, n, end):
    """Return the best score and its token as one integer, which is larger if the score is, or the token is lower."""
    bits = scores.to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    keys = (ordered << 32) | (0x7FFFFFFF - n).to(tl.int64)
    return tl.max(tl.where(n < end, keys, -(2**63)), 0)


@triton.jit
def started(
    text_ptr,
    length_ptr,
    best_ptr,
    prompt,
    tokens_ptr,
    positions_ptr,
    x_ptr,
    WIDTH,
    BLOCK: tl.constexpr,
    HOLD: tl.constexpr,
):
    """Take the token that comes next, from the text or from the best score, and store its embedding.

    With HOLD the text does not grow: the newest token is computed again.
    """
    length = tl.load(length_ptr) - HOLD
    token = tl.load(text_ptr + length)
    best = tl.load(best_ptr)
    token = tl.where(length >= prompt, 0x7FFFFFFF - (best & 0x7FFFFFFF).to(tl.int32), token)
    tl.store(text_ptr + length, token)
    tl.debug_barrier()  # every thread has read what is stored now
    tl.store(length_ptr, length + 1)
    tl.store(best_ptr, -(2**63))
    i = tl.arange(0, BLOCK)
    x = tl.load(tokens_ptr + token * WIDTH + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    x += tl.load(positions_ptr + length * WIDTH + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    tl.store(x_ptr + i, x, mask=i < WIDTH)


@triton.jit
def start_kernel(
    text_ptr,
    length_ptr,
    best_ptr,
    prompt,
    tokens_ptr,
    positions_ptr,
    x_ptr,
    WIDTH,
    BLOCK: tl.constexpr,
    HOLD: tl.constexpr,
    OVERLAP: tl.constexpr,
):
    """Begin a token; one program.

    The other way round than `take_turns`: no kernel of this token may ask for keys before the last token has ended.
    """
    if OVERLAP:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    started(text_ptr, length_ptr, best_ptr, prompt, tokens_ptr, positions_ptr, x_ptr, WIDTH, BLOCK, HOLD)


@triton.jit
def tile_rows(weight_ptr, first, end, LONG: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr):
    """Return ROWS rows of LONG weights from row `first` on, those before `end`, as tiles of PIECE columns."""
    n, k = first + tl.arange(0, ROWS), tl.arange(0, PIECE)
    tiles = ()
    for piece in tl.static_range(LONG // PIECE):
        place = weight_ptr + (n * LONG)[:, None] + (piece * PIECE + k)[None, :]
        tiles = tiles + (tl.load(place, mask=(n < end)[:, None], other=0.0),)
    return tiles


@triton.jit
def tile_rows_with_gain(weight_ptr, gain_ptr, first, end, LONG: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr):
    """Return the same rows in float32, each column times its gain."""
    tiles = tile_rows(weight_ptr, first, end, LONG, ROWS, PIECE)
    place = gain_ptr + (tl.arange(0, ROWS) * 0)[:, None] + tl.arange(0, PIECE)[None, :]  # in the threads of the weights
    gains = ()
    for piece in tl.static_range(LONG // PIECE):
        gains = gains + (tl.load(place + piece * PIECE).to(tl.float32),)
    scaled = ()
    for piece in tl.static_range(LONG // PIECE):
        scaled = scaled + (tiles[piece].to(tl.float32) * gains[piece],)
    return scaled


@triton.jit
def tile_of_row(ptr, PIECES: tl.constexpr, PIECE: tl.constexpr):
    """Return PIECES pieces of a row that the kernel before this one has stored."""
    pieces = ()
    for piece in tl.static_range(PIECES):
        pieces = pieces + (tl.load(ptr + piece * PIECE + tl.arange(0, PIECE), cache_modifier=".cg"),)
    return pieces


@triton.jit
def summands(tiles, x, PIECES: tl.constexpr):
    """Return the products of weights and x, of which each row is still to be summed."""
    acc = tiles[0].to(tl.float32) * x[0][None, :]
    for piece in tl.static_range(1, PIECES):
        acc += tiles[piece].to(tl.float32) * x[piece][None, :]
    return acc


@triton.jit
def normalized_products(
    tiles, x_ptr, sums, rest, WIDTH: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr, EPS: tl.constexpr
):
    """Return the products of rows with a normalized x; `tiles` have the gains, `sums` and `rest` are from `folded`."""
    PIECES: tl.constexpr = WIDTH // PIECE
    x = tile_of_row(x_ptr, PIECES, PIECE)
    everywhere = tl.zeros((ROWS, PIECE), tl.float32)
    total, squares = everywhere, everywhere
    for piece in tl.static_range(PIECES):
        one = x[piece][None, :] + everywhere
        total += one
        squares += one * one
    product, mean = tl.sum(summands(tiles, x, PIECES), 1), tl.sum(total, 1) / WIDTH
    scale = tl.rsqrt(tl.maximum(tl.sum(squares, 1) / WIDTH - mean * mean, 0.0) + EPS)
    return scale * (product - mean * sums) + rest


@triton.jit
def number_of_row(ptr, mask, IN_PLACE: tl.constexpr):
    """Return a float32 for each row; with IN_PLACE the threads that have the row's sum load it, not others for them."""
    if IN_PLACE:
        number = tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p, $2, 0; mov.b32 $0, 0; @p ld.relaxed.gpu.global.b32 $0, [$1]; }",
            "=&r,l,r", [ptr, mask.to(tl.int32)], dtype=tl.int32, is_pure=False, pack=1,
        ).to(tl.float32, bitcast=True)  # fmt: skip
    else:
        number = tl.load(ptr, mask=mask, other=0.0)
    return number


@triton.jit
def store_number_of_row(ptr, value, mask, IN_PLACE: tl.constexpr):
    """Store a number for each row; with IN_PLACE the threads that have the row's sum do so."""
    kept = value.to(ptr.dtype.element_ty)
    if IN_PLACE and kept.dtype.primitive_bitwidth == 32:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p, $3, 0; @p st.global.b32 [$1], $2; mov.b32 $0, 0; }",
            "=r,l,r,r", [ptr, kept.to(tl.int32, bitcast=True), mask.to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    elif IN_PLACE:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p, $3, 0; @p st.global.b16 [$1], $2; mov.b32 $0, 0; }",
            "=r,l,h,r", [ptr, kept.to(tl.int16, bitcast=True), mask.to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        tl.store(ptr, kept, mask=mask)


@triton.jit
def qkv_kernel(
    x_ptr, gain_ptr, weight_ptr, sums_ptr, rest_ptr, length_ptr, q_ptr, cache_ptr,
    WIDTH: tl.constexpr, PIECE: tl.constexpr, ROWS: tl.constexpr, EPS: tl.constexpr, IN_PLACE: tl.constexpr,
    OVERLAP: tl.constexpr,
):  # fmt: skip
    """Normalize, and compute ROWS queries, keys or values; keys and values go to the newest place of the cache."""
    first, end = tl.program_id(0) * ROWS, 3 * WIDTH
    n = first + tl.arange(0, ROWS)
    tiles = tile_rows_with_gain(weight_ptr, gain_ptr, first, end, WIDTH, ROWS, PIECE)
    sums, rest = number_of_row(sums_ptr + n, n < end, IN_PLACE), number_of_row(rest_ptr + n, n < end, IN_PLACE)
    take_turns(OVERLAP)
    kv_ptr = cache_ptr + (tl.load(length_ptr) - 1) * 2 * WIDTH
    total = normalized_products(tiles, x_ptr, sums, rest, WIDTH, ROWS, PIECE, EPS)
    store_number_of_row(q_ptr + n, total, n < WIDTH, IN_PLACE)
    store_number_of_row(kv_ptr + n - WIDTH, total, (n < end) & (n >= WIDTH), IN_PLACE)


@triton.jit
def attend_kernel(
    q_ptr, cache_ptr, averages_ptr, logs_ptr, length_ptr, positions,
    WIDTH: tl.constexpr, HEAD: tl.constexpr, SPLITS: tl.constexpr, KEYS: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Attend to a share of the tokens of a head: the average of its values, and the logarithm of their weights' sum.

    A share is each SPLITS-th group of KEYS tokens. Those of the first group are asked for before the length is known.
    """
    head, split = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS
    d = tl.arange(0, HEAD)
    t = split * KEYS + tl.arange(0, KEYS)
    place = cache_ptr + (t * 2 * WIDTH)[:, None] + head * HEAD + d[None, :]
    k = tl.load(place, mask=(t < positions)[:, None], other=0.0, cache_modifier=".cg")
    v = tl.load(place + WIDTH, mask=(t < positions)[:, None], other=0.0, cache_modifier=".cg")
    take_turns(OVERLAP)
    length = tl.load(length_ptr)
    newest = cache_ptr + (length - 1) * 2 * WIDTH + head * HEAD + d
    k_newest = tl.load(newest, cache_modifier=".cg").to(tl.float32)
    v_newest = tl.load(newest + WIDTH, cache_modifier=".cg").to(tl.float32)
    q = tl.load(q_ptr + head * HEAD + d, cache_modifier=".cg") * (HEAD**-0.5)
    top = tl.full((), -1e30, tl.float32)
    total = tl.zeros((), tl.float32)
    acc = tl.zeros((HEAD,), tl.float32)
    for first in range(split * KEYS, length, SPLITS * KEYS):
        t = first + tl.arange(0, KEYS)
        if first >= SPLITS * KEYS:
            place = cache_ptr + (t * 2 * WIDTH)[:, None] + head * HEAD + d[None, :]
            k = tl.load(place, mask=(t < length)[:, None], other=0.0, cache_modifier=".cg")
            v = tl.load(place + WIDTH, mask=(t < length)[:, None], other=0.0, cache_modifier=".cg")
        is_newest, seen = (t == length - 1)[:, None], (t < length)[:, None]
        keys = tl.where(is_newest, k_newest[None, :], k.to(tl.float32))
        values = tl.where(is_newest, v_newest[None, :], tl.where(seen, v.to(tl.float32), 0.0))
        scores = tl.where(t < length, tl.sum(keys * q[None, :], 1), -1e30)
        higher = tl.maximum(top, tl.max(scores, 0))
        shares = tl.exp(scores - higher)
        less = tl.exp(top - higher)
        total = total * less + tl.sum(shares, 0)
        acc = acc * less + tl.sum(shares[:, None] * values, 0)
        top = higher
    total_or_one = tl.where(total > 0, total, 1.0)  # a share without tokens has none
    tl.store(averages_ptr + split * WIDTH + head * HEAD + d, acc / total_or_one)
    tl.store(logs_ptr + split * (WIDTH // HEAD) + head, tl.where(total > 0, top + tl.log(total_or_one), -1e30))


@triton.jit
def attended_row(
    averages_ptr, logs_ptr, WIDTH: tl.constexpr, HEAD: tl.constexpr, SPLITS: tl.constexpr, PIECE: tl.constexpr
):
    """Return attention's result of all heads, in pieces, from the shares of their tokens."""
    PIECES: tl.constexpr = WIDTH // PIECE
    averages = tile_of_row(averages_ptr, SPLITS * PIECES, PIECE)
    logs = ()
    for number in tl.static_range(SPLITS * PIECES):
        head = (number * PIECE + tl.arange(0, PIECE)) // HEAD
        logs = logs + (tl.load(logs_ptr + head, cache_modifier=".cg"),)
    pieces = ()
    for piece in tl.static_range(PIECES):
        top = logs[piece]
        for split in tl.static_range(1, SPLITS):
            top = tl.maximum(top, logs[split * PIECES + piece])
        total, acc = tl.zeros((PIECE,), tl.float32), tl.zeros((PIECE,), tl.float32)
        for split in tl.static_range(SPLITS):
            share = tl.exp(logs[split * PIECES + piece] - top)
            total += share
            acc += share * averages[split * PIECES + piece]
        pieces = pieces + (acc / total,)
    return pieces


@triton.jit
def project_kernel(
    averages_ptr, logs_ptr, weight_ptr, bias_ptr, x_ptr,
    WIDTH: tl.constexpr, HEAD: tl.constexpr, SPLITS: tl.constexpr, PIECE: tl.constexpr, ROWS: tl.constexpr,
    IN_PLACE: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Join the shares of attention, and add ROWS rows of its projection to x."""
    first = tl.program_id(0) * ROWS
    n = first + tl.arange(0, ROWS)
    tiles = tile_rows(weight_ptr, first, WIDTH, WIDTH, ROWS, PIECE)
    biases = number_of_row(bias_ptr + n, n < WIDTH, IN_PLACE)
    take_turns(OVERLAP)
    x = number_of_row(x_ptr + n, n < WIDTH, IN_PLACE)
    attended_pieces = attended_row(averages_ptr, logs_ptr, WIDTH, HEAD, SPLITS, PIECE)
    total = tl.sum(summands(tiles, attended_pieces, WIDTH // PIECE), 1)
    store_number_of_row(x_ptr + n, x + total + biases, n < WIDTH, IN_PLACE)


@triton.jit
def up_kernel(
    x_ptr, gain_ptr, weight_ptr, sums_ptr, rest_ptr, hidden_ptr,
    WIDTH: tl.constexpr, PIECE: tl.constexpr, ROWS: tl.constexpr, EPS: tl.constexpr, IN_PLACE: tl.constexpr,
    OVERLAP: tl.constexpr,
):  # fmt: skip
    """Normalize, and compute ROWS numbers of the MLP's hidden layer, with GELU."""
    first, end = tl.program_id(0) * ROWS, 4 * WIDTH
    n = first + tl.arange(0, ROWS)
    tiles = tile_rows_with_gain(weight_ptr, gain_ptr, first, end, WIDTH, ROWS, PIECE)
    sums, rest = number_of_row(sums_ptr + n, n < end, IN_PLACE), number_of_row(rest_ptr + n, n < end, IN_PLACE)
    take_turns(OVERLAP)
    total = normalized_products(tiles, x_ptr, sums, rest, WIDTH, ROWS, PIECE, EPS)
    store_number_of_row(hidden_ptr + n, gelu(total), n < end, IN_PLACE)


@triton.jit
def down_kernel(
    hidden_ptr, weight_ptr, bias_ptr, x_ptr,
    WIDTH: tl.constexpr, PIECE: tl.constexpr, ROWS: tl.constexpr, IN_PLACE: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Add ROWS rows of the MLP's second layer to x."""
    PIECES: tl.constexpr = 4 * WIDTH // PIECE
    first = tl.program_id(0) * ROWS
    n = first + tl.arange(0, ROWS)
    tiles = tile_rows(weight_ptr, first, WIDTH, 4 * WIDTH, ROWS, PIECE)
    biases = number_of_row(bias_ptr + n, n < WIDTH, IN_PLACE)
    take_turns(OVERLAP)
    x = number_of_row(x_ptr + n, n < WIDTH, IN_PLACE)
    total = tl.sum(summands(tiles, tile_of_row(hidden_ptr, PIECES, PIECE), PIECES), 1)
    store_number_of_row(x_ptr + n, x + total + biases, n < WIDTH, IN_PLACE)


@triton.jit
def head_kernel(
    x_ptr, gain_ptr, tokens_ptr, sums_ptr, rest_ptr, best_ptr, scores_ptr, VOCABULARY,
    WIDTH: tl.constexpr, PIECE: tl.constexpr, ROWS: tl.constexpr, EPS: tl.constexpr, SCORES: tl.constexpr,
    IN_PLACE: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Normalize, score ROWS tokens, and keep the best; with SCORES all of them are stored."""
    first = tl.program_id(0) * ROWS
    n = first + tl.arange(0, ROWS)
    known = n < VOCABULARY
    tiles = tile_rows_with_gain(tokens_ptr, gain_ptr, first, VOCABULARY, WIDTH, ROWS, PIECE)
    sums, rest = number_of_row(sums_ptr + n, known, IN_PLACE), number_of_row(rest_ptr + n, known, IN_PLACE)
    take_turns(OVERLAP)
    scores = normalized_products(tiles, x_ptr, sums, rest, WIDTH, ROWS, PIECE, EPS)
    if SCORES:
        tl.store(scores_ptr + n, scores, mask=known)
    tl.atomic_max(best_ptr, packed(scores, n, VOCABULARY))


@triton.jit
def barrier(count_ptr, due):
    """Wait until all programs have come here; `due` is how often they have in all."""
    tl.debug_barrier()  # all threads of this program have stored
    tl.atomic_add(count_ptr, 1, sem="acq_rel")
    while tl.atomic_add(count_ptr, 0, sem="acquire") < due:
        pass
    tl.debug_barrier()


@triton.jit
def persistent_kernel(
    text_ptr, length_ptr, best_ptr, count_ptr, prompt, tokens_ptr, positions_ptr,
    norm1_gain_ptr, norm1_shift_ptr, qkv_weight_ptr, qkv_bias_ptr, projection_weight_ptr, projection_bias_ptr,
    norm2_gain_ptr, norm2_shift_ptr, up_weight_ptr, up_bias_ptr, down_weight_ptr, down_bias_ptr,
    norm_gain_ptr, norm_shift_ptr,
    cache_ptr, x_ptr, q_ptr, part_ptr, hidden_ptr, scores_ptr,
    layers, heads, positions, WIDTH, VOCABULARY,
    HEAD: tl.constexpr, SPLITS: tl.constexpr, KEYS: tl.constexpr, BLOCK: tl.constexpr, EPS: tl.constexpr,
    WIDE: tl.constexpr, NARROW: tl.constexpr, HEAD_ROWS: tl.constexpr, SCORES: tl.constexpr, HOLD: tl.constexpr,
):  # fmt: skip
    """Compute one token; WIDE and NARROW are blocks that hold a program's rows of 4 WIDTH and of WIDTH results."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    wide, narrow = tl.arange(0, WIDE), tl.arange(0, NARROW)
    each = tl.cdiv(3 * WIDTH, programs)
    qkv_rows, qkv_end = program * each + wide, tl.minimum((program + 1) * each, 3 * WIDTH)
    each = tl.cdiv(4 * WIDTH, programs)
    up_rows, up_end = program * each + wide, tl.minimum((program + 1) * each, 4 * WIDTH)
    each = tl.cdiv(WIDTH, programs)
    x_rows, x_end = program * each + narrow, tl.minimum((program + 1) * each, WIDTH)
    length = tl.load(length_ptr) + 1 - HOLD
    due = programs
    # What no program computes is fetched before the barrier behind which it is needed: weights, gains, shifts, biases.
    weights = rows_of(qkv_weight_ptr, qkv_rows, qkv_end, WIDTH, BLOCK)
    gain, shift = vector_of(norm1_gain_ptr, WIDTH, BLOCK), vector_of(norm1_shift_ptr, WIDTH, BLOCK)
    biases = biases_of(qkv_bias_ptr, qkv_rows, qkv_end)
    barrier(count_ptr, due)  # all have read the length, which the first program changes now
    if program == 0:
        started(text_ptr, length_ptr, best_ptr, prompt, tokens_ptr, positions_ptr, x_ptr, WIDTH, BLOCK, HOLD)
    due += programs
    barrier(count_ptr, due)
    x_own = tl.load(x_ptr + x_rows, mask=x_rows < x_end, other=0.0, cache_modifier=".cg")  # no other program adds to it
    for layer in range(layers):
        kv_ptr = cache_ptr + (layer * positions + length - 1) * 2 * WIDTH
        total = biased(products(weights, normalized(x_ptr, gain, shift, WIDTH, BLOCK, EPS)), biases)
        store_qkv(total, qkv_rows, qkv_end, q_ptr, kv_ptr, WIDTH)
        weights_x = rows_of(projection_weight_ptr + layer * WIDTH * WIDTH, x_rows, x_end, WIDTH, BLOCK)
        biases_x = biases_of(projection_bias_ptr + layer * WIDTH, x_rows, x_end)
        due += programs
        barrier(count_ptr, due)
        for item in range(program, heads * SPLITS, programs):
            attended(
                item, q_ptr, cache_ptr + layer * positions * 2 * WIDTH, part_ptr, length, WIDTH, HEAD, SPLITS, KEYS
            )
        due += programs
        barrier(count_ptr, due)
        x_own += biased(products(weights_x, joined(part_ptr, WIDTH, HEAD, SPLITS, BLOCK)), biases_x)
        tl.store(x_ptr + x_rows, x_own, mask=x_rows < x_end)
        weights = rows_of(up_weight_ptr + layer * 4 * WIDTH * WIDTH, up_rows, up_end, WIDTH, BLOCK)
        gain = vector_of(norm2_gain_ptr + layer * WIDTH, WIDTH, BLOCK)
        shift = vector_of(norm2_shift_ptr + layer * WIDTH, WIDTH, BLOCK)
        biases = biases_of(up_bias_ptr + layer * 4 * WIDTH, up_rows, up_end)
        due += programs
        barrier(count_ptr, due)
        total = biased(products(weights, normalized(x_ptr, gain, shift, WIDTH, BLOCK, EPS)), biases)
        tl.store(hidden_ptr + up_rows, gelu(total), mask=up_rows < up_end)
        down = down_weight_ptr + layer * 4 * WIDTH * WIDTH
        first, second, third, fourth = pieces_of(down, x_rows, x_end, WIDTH, BLOCK)
        biases_x = biases_of(down_bias_ptr + layer * WIDTH, x_rows, x_end)
        due += programs
        barrier(count_ptr, due)
        total = products_of_pieces(first, second, third, fourth, hidden_ptr, WIDTH, BLOCK)
        x_own += biased(total, biases_x)
        tl.store(x_ptr + x_rows, x_own, mask=x_rows < x_end)
        following = tl.minimum(layer + 1, layers - 1)  # behind the last layer there is nothing to fetch
        weights = rows_of(qkv_weight_ptr + following * 3 * WIDTH * WIDTH, qkv_rows, qkv_end, WIDTH, BLOCK)
        gain = vector_of(norm1_gain_ptr + following * WIDTH, WIDTH, BLOCK)
        shift = vector_of(norm1_shift_ptr + following * WIDTH, WIDTH, BLOCK)
        biases = biases_of(qkv_bias_ptr + following * 3 * WIDTH, qkv_rows, qkv_end)
        due += programs
        barrier(count_ptr, due)
    gain, shift = vector_of(norm_gain_ptr, WIDTH, BLOCK), vector_of(norm_shift_ptr, WIDTH, BLOCK)
    x = normalized(x_ptr, gain, shift, WIDTH, BLOCK, EPS)
    each = tl.cdiv(VOCABULARY, programs)
    end = tl.minimum((program + 1) * each, VOCABULARY)
    best = tl.full((), -(2**63), tl.int64)
    n = program * each + tl.arange(0, HEAD_ROWS)
    weights_head = rows_of(tokens_ptr, n, end, WIDTH, BLOCK)
    for _ in range(0, each, HEAD_ROWS):
        following = rows_of(tokens_ptr, n + HEAD_ROWS, end, WIDTH, BLOCK)  # on their way during the products
        scores = products(weights_head, x)
        if SCORES:
            tl.store(scores_ptr + n, scores, mask=n < end)
        best = tl.maximum(best, packed(scores, n, end))
        n += HEAD_ROWS
        weights_head = following
    tl.atomic_max(best_ptr, best)


@triton.jit
def barriers_kernel(count_ptr, barriers):
    """Do nothing but wait for each other."""
    for number in range(barriers):
        barrier(count_ptr, (number + 1) * tl.num_programs(0))


@triton.jit
def weightless(x_ptr, y_ptr, n, end, WIDTH, BLOCK: tl.constexpr, EPS: tl.constexpr):
    """Do what a step does besides its weights: read the row that all programs stored, normalize it, store rows n."""
    gain, shift = tl.full((BLOCK,), 1.0, tl.float32), tl.zeros((BLOCK,), tl.float32)
    total = tl.sum(normalized(x_ptr, gain, shift, WIDTH, BLOCK, EPS), 0)
    tl.store(y_ptr + n, total + n, mask=n < end)


@triton.jit
def weightless_kernel(
    x_ptr, y_ptr, WIDTH, ROWS: tl.constexpr, BLOCK: tl.constexpr, EPS: tl.constexpr, OVERLAP: tl.constexpr
):
    """Do one step without weights."""
    take_turns(OVERLAP)
    weightless(x_ptr, y_ptr, tl.program_id(0) * ROWS + tl.arange(0, ROWS), WIDTH, WIDTH, BLOCK, EPS)


@triton.jit
def weightless_phases_kernel(
    rows_ptr, count_ptr, phases, WIDTH, ROWS: tl.constexpr, BLOCK: tl.constexpr, EPS: tl.constexpr
):
    """Do steps without weights in one kernel, from one of two rows to the other and back."""
    programs = tl.num_programs(0)
    each = tl.cdiv(WIDTH, programs)
    n, end = tl.program_id(0) * each + tl.arange(0, ROWS), tl.minimum((tl.program_id(0) + 1) * each, WIDTH)
    for phase in range(phases):
        x_ptr, y_ptr = rows_ptr + phase % 2 * WIDTH, rows_ptr + (phase + 1) % 2 * WIDTH
        weightless(x_ptr, y_ptr, n, end, WIDTH, BLOCK, EPS)
        barrier(count_ptr, (phase + 1) * programs)


@dataclass(frozen=True)
class Plan:
    """Rows of a program in each kernel, columns of a tile, shares of attention, and warps.

    Attributes:
        qkv: rows of queries, keys and values.
        project: rows of the projection behind attention.
        up: rows of the MLP's first layer.
        down: rows of its second.
        head: tokens that a program scores.
        piece: columns of a tile of weights, at most.
        long_piece: the same in the MLP's second layer.
        splits: shares of the tokens of a head.
        keys: tokens that attention takes at once.
        num_warps: warps of a program.
        persistent_warps: warps of a program of the persistent kernel.
        persistent_head: tokens that a program of the persistent kernel scores at once.
        overlap: whether a kernel begins, and fetches its weights, while the one before it ends; for that a GPU must
            have compute capability `OVERLAPS` or more.
    """

    qkv: int = 16
    project: int = 8
    up: int = 16
    down: int = 4
    head: int = 16
    piece: int = 256
    long_piece: int = 1024
    splits: int = 4
    keys: int = 128
    num_warps: int = 8
    persistent_warps: int = 8
    persistent_head: int = 16
    overlap: bool = False


class FastDecoder:
    """Greedy decoding with the kernels above.

    Args:
        decoder: the weights, in one dtype and on one device; float16 and bfloat16 halve the bytes.
        plan: rows, shares and warps; by default kernels overlap where the GPU can.
        programs: of the persistent kernel: at most as many as run at once, by default one per multiprocessor.

    Raises:
        CannotDecode: a dtype, a size or a device that the kernels do not take, with what they take.
    """

    def __init__(self, decoder: Decoder, plan: Plan | None = None, *, programs: int | None = None) -> None:
        check(decoder)
        device = decoder.tokens.device
        here = detect_device() if device.type == "cuda" else cpu_device()
        self.decoder, self.plan = decoder, plan or Plan(overlap=can_overlap(here))
        if self.plan.overlap:
            check_overlap(here)
        self.programs = programs or here.multiprocessors or 1
        self.head = decoder.width // decoder.heads
        self.block = triton.next_power_of_2(decoder.width)
        width, parts = decoder.width, decoder.heads * self.plan.splits
        self.text = torch.zeros(decoder.longest + 1, dtype=torch.int32, device=device)
        self.length, self.count = (torch.zeros(1, dtype=torch.int32, device=device) for _ in range(2))
        self.best = torch.zeros(1, dtype=torch.int64, device=device)
        self.cache = decoder.empty_cache()
        self.x, self.q = (torch.zeros(width, device=device) for _ in range(2))
        self.hidden = torch.zeros(4 * width, device=device)
        self.part = torch.zeros(parts, self.head + 2, device=device)
        self.averages = torch.zeros(self.plan.splits, width, device=device)
        self.logs = torch.zeros(self.plan.splits, decoder.heads, device=device)
        self.scores = torch.zeros(decoder.vocabulary, device=device)
        self.two_rows = torch.zeros(2, width, device=device)
        self.prompt = 0
        self.folded_qkv = folded(decoder.qkv_weight, decoder.norm1_gain, decoder.norm1_shift, decoder.qkv_bias)
        self.folded_up = folded(decoder.up_weight, decoder.norm2_gain, decoder.norm2_shift, decoder.up_bias)
        self.folded_head = folded(decoder.tokens, decoder.norm_gain, decoder.norm_shift)
        self.projection_bias, self.down_bias = decoder.projection_bias.float(), decoder.down_bias.float()

    def begin(self, text: list[int]) -> None:
        """Put a text in place; the next steps read it, and then continue it.

        Raises:
            CannotDecode: an empty or too long text, or a token that the model does not have.
        """
        if not text or len(text) > self.decoder.longest:
            raise CannotDecode(f"a text of {len(text)} tokens: give from 1 to {self.decoder.longest}")
        unknown = [token for token in text if not 0 <= token < self.decoder.vocabulary]
        if unknown:
            raise CannotDecode(f"token {unknown[0]}: the model has tokens 0 to {self.decoder.vocabulary - 1}")
        self.text[: len(text)] = torch.tensor(text, dtype=torch.int32)
        self.text[len(text) :] = 0
        self.length.zero_()
        self.prompt = len(text)

    @property
    def kernels(self) -> int:
        """Kernels of a token: five a layer, one before and one behind; one kernel has as many barriers instead."""
        return 5 * self.decoder.layers + 2

    @property
    def launch_options(self) -> dict[str, int]:
        """How each of these kernels is launched."""
        options = {"num_warps": self.plan.num_warps, "OVERLAP": self.plan.overlap}
        return options | {"launch_pdl": True} if self.plan.overlap else options

    @property
    def persistent_options(self) -> dict[str, int]:
        """How a kernel with barriers is launched: the driver refuses programs that cannot run together."""
        options = {"num_warps": self.plan.persistent_warps}
        return options | {"launch_cooperative_grid": True} if self.count.is_cuda else options

    def step(self, *, scores: bool = False, hold: bool = False) -> None:
        """Read the next token of the text, or the likeliest one behind it, by five kernels a layer.

        Args:
            scores: also store the scores of all tokens.
            hold: compute the newest token again, so that every step has the same length, as a measurement needs it.
        """
        model, plan, width = self.decoder, self.plan, self.decoder.width
        how, eps = self.launch_options, {"EPS": EPSILON}
        rows = {"WIDTH": width, "PIECE": piece_of(width, plan.piece), "IN_PLACE": self.x.is_cuda}
        long_rows = rows | {"PIECE": piece_of(4 * width, plan.long_piece)}
        attention = {"HEAD": self.head, "SPLITS": plan.splits}
        start_kernel[(1,)](
            self.text, self.length, self.best, self.prompt, model.tokens, model.positions, self.x, width,
            BLOCK=self.block, HOLD=int(hold), **how,
        )  # fmt: skip
        for layer in range(model.layers):
            qkv_kernel[(triton.cdiv(3 * width, plan.qkv),)](
                self.x, model.norm1_gain[layer], model.qkv_weight[layer], *(one[layer] for one in self.folded_qkv),
                self.length, self.q, self.cache[layer], ROWS=plan.qkv, **rows, **eps, **how,
            )  # fmt: skip
            attend_kernel[(model.heads * plan.splits,)](
                self.q, self.cache[layer], self.averages, self.logs, self.length, model.longest,
                WIDTH=width, KEYS=plan.keys, **attention, **how,
            )  # fmt: skip
            project_kernel[(triton.cdiv(width, plan.project),)](
                self.averages, self.logs, model.projection_weight[layer], self.projection_bias[layer], self.x,
                ROWS=plan.project, **attention, **rows, **how,
            )  # fmt: skip
            up_kernel[(triton.cdiv(4 * width, plan.up),)](
                self.x, model.norm2_gain[layer], model.up_weight[layer], *(one[layer] for one in self.folded_up),
                self.hidden, ROWS=plan.up, **rows, **eps, **how,
            )  # fmt: skip
            down_kernel[(triton.cdiv(width, plan.down),)](
                self.hidden, model.down_weight[layer], self.down_bias[layer], self.x,
                ROWS=plan.down, **long_rows, **how,
            )  # fmt: skip
        head_kernel[(triton.cdiv(model.vocabulary, plan.head),)](
            self.x, model.norm_gain, model.tokens, *self.folded_head, self.best, self.scores, model.vocabulary,
            ROWS=plan.head, SCORES=scores, **rows, **eps, **how,
        )  # fmt: skip

    def persistent_step(self, *, scores: bool = False, hold: bool = False) -> None:
        """Do what `step` does in one kernel, in which all programs must run at the same time."""
        model, plan, width = self.decoder, self.plan, self.decoder.width
        self.count.zero_()
        persistent_kernel[(self.programs,)](
            self.text, self.length, self.best, self.count, self.prompt, *model.tensors.values(),
            self.cache, self.x, self.q, self.part, self.hidden, self.scores,
            model.layers, model.heads, model.longest, width, model.vocabulary,
            HEAD=self.head, SPLITS=plan.splits, KEYS=plan.keys, BLOCK=self.block, EPS=EPSILON,
            **self.persistent_rows, HEAD_ROWS=plan.persistent_head, SCORES=scores, HOLD=int(hold),
            **self.persistent_options,
        )  # fmt: skip

    def weightless_step(self) -> None:
        """Launch as many kernels as `step` does, which pass a row on to each other and have no weights.

        Bytes aside, that is what a token takes at least.
        """
        rows, width, how = self.plan.project, self.decoder.width, self.launch_options
        for number in range(self.kernels):
            weightless_kernel[(triton.cdiv(width, rows),)](
                self.two_rows[number % 2], self.two_rows[(number + 1) % 2], width,
                ROWS=rows, BLOCK=self.block, EPS=EPSILON, **how,
            )  # fmt: skip

    def weightless_persistent_step(self) -> None:
        """Do the same in one kernel, with as many barriers as `persistent_step` has."""
        self.count.zero_()
        weightless_phases_kernel[(self.programs,)](
            self.two_rows, self.count, self.kernels, self.decoder.width,
            ROWS=self.persistent_rows["NARROW"], BLOCK=self.block, EPS=EPSILON, **self.persistent_options,
        )  # fmt: skip

    @cached_property
    def persistent_rows(self) -> dict[str, int]:
        """Blocks that hold the rows of one program of the persistent kernel."""
        each = {"WIDE": 4 * self.decoder.width, "NARROW": self.decoder.width}
        return {name: triton.next_power_of_2(triton.cdiv(rows, self.programs)) for name, rows in each.items()}

    def next_token(self) -> int:
        """The likeliest token behind what has been read."""
        return 0x7FFFFFFF - (int(self.best) & 0x7FFFFFFF)

    def greedy(self, text: list[int], count: int, step: Callable[[], object] | None = None) -> list[int]:
        """Continue a text with the likeliest token, `count` times; `step` is another step, such as a graph's replay.

        Raises:
            CannotDecode: a text that `begin` refuses, or fewer positions than tokens.
        """
        if type(count) is not int or count < 1 or len(text) + count > self.decoder.longest:
            raise CannotDecode(
                f"{len(text)} tokens and {count!r} more: give 1 or more, and at most {self.decoder.longest} in all"
            )
        self.begin(text)
        for _ in range(len(text) + count - 1):
            (step or self.step)()
        return [*self.text[len(text) : len(text) + count - 1].tolist(), self.next_token()]


def piece_of(width: int, most: int) -> int:
    """Return the largest power of two up to `most` that divides a width.

    >>> piece_of(768, 256), piece_of(1600, 256)
    (256, 64)
    """
    return min(most, width & -width)


def folded(
    weight: torch.Tensor, gain: torch.Tensor, shift: torch.Tensor, bias: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return for each row of weights the sum of weights times gains, and bias plus that of weights times shifts.

    With these, normalization can be applied behind the product; see above.

    Args:
        weight: (..., rows, width).
        gain: (..., width).
        shift: (..., width).
        bias: (..., rows); none is 0.

    Returns:
        Two tensors (..., rows) in float32.
    """
    sums, rest = ((weight.float() * one.float()[..., None, :]).sum(-1) for one in (gain, shift))
    return sums, rest if bias is None else rest + bias.float()


def check(decoder: Decoder) -> None:
    """Refuse a model that the kernels do not take, before anything is launched.

    Raises:
        CannotDecode: with the value, and what they take.
    """
    first = decoder.tokens
    for name, tensor in decoder.tensors.items():
        if tensor.dtype not in DTYPES or tensor.dtype != first.dtype or tensor.device != first.device:
            raise CannotDecode(
                f"{name} is {tensor.dtype} on {tensor.device}, tokens is {first.dtype} on {first.device}: give all "
                "alike, as float32, float16 or bfloat16"
            )
        if not tensor.is_contiguous():
            raise CannotDecode(f"{name} has strides {tensor.stride()}: call .contiguous()")
        if tensor.numel() >= MOST_ELEMENTS:
            raise CannotDecode(f"{name} has {tensor.numel():,} elements: at most {MOST_ELEMENTS - 1:,}")
    if decoder.width > MOST_WIDTH:
        raise CannotDecode(f"the width is {decoder.width}: at most {MOST_WIDTH}, for a program holds whole rows")
    if decoder.width // decoder.heads not in HEAD_SIZES:
        raise CannotDecode(
            f"a head has {decoder.width // decoder.heads} numbers: {', '.join(map(str, HEAD_SIZES))} are possible"
        )


def can_overlap(device: Device) -> bool:
    """Return whether a kernel can begin before the one before it has ended."""
    return device.kind == "gpu" and (device.capability or (0, 0)) >= OVERLAPS


def check_overlap(device: Device) -> None:
    """Refuse a device on which no kernel can begin before the one before it has ended.

    Raises:
        CannotDecode: with the device, and what to do.
    """
    if not can_overlap(device):
        raise CannotDecode(
            f"kernels cannot overlap on {device.name}, but on GPUs of compute capability "
            f"{'.'.join(map(str, OVERLAPS))} or more: give a plan with overlap=False"
        )


def check_device(device: Device, dtype: torch.dtype) -> None:
    """Refuse a device that cannot replay a graph of these kernels.

    Raises:
        CannotDecode: with the device, and what to do.
    """
    if device.kind != "gpu":
        raise CannotDecode("no CUDA GPU found here, and a CUDA graph needs one: call the step itself")
    if (device.capability or (0, 0)) < NEEDS or (dtype == torch.bfloat16 and not device.has_bf16):
        raise CannotDecode(
            f"{device.name} has compute capability {'.'.join(map(str, device.capability or (0, 0)))}: these "
            f"kernels are for {'.'.join(map(str, NEEDS))} or more"
        )


def captured(fast: FastDecoder, step: Callable[[], object]) -> Callable[[], object]:
    """Return a call that replays a step from a CUDA graph; a token then costs the host one launch.

    The length of the text after this call is what it was before it.

    Raises:
        CannotDecode: there is no GPU that can, with what to do.
    """
    check_device(detect_device(), fast.decoder.tokens.dtype)
    length = fast.length.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()  # compiles
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    fast.length.copy_(length)
    replay: Callable[[], object] = graph.replay
    return replay
