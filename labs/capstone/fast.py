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
- `persistent_kernel` is all of this in one launch, without barriers between phases. A number that programs hand on is
  stored as a word of 32 bits: a float32 whose last six bits are a tag, the number of the layer. A program that needs
  the number loads its word until the tag is there, so that one trip to memory both waits and fetches. Before a program
  waits, it loads its weights of the phase, and asks the L2 cache for those of the same phase in the next layer.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton's tuples grow by +, for it has no starred ones.
# ruff: noqa: RUF005

from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from mlsys.errors import UserError
from mlsys.measure.device import Device, cpu_device, detect_device
from mlsys.models.decoder import EPSILON, Decoder

NEEDS = (8, 0)
"""Compute capability that the kernels are written for."""

OVERLAPS = (9, 0)
"""Compute capability from which a kernel can begin before the one before it ends, and fetch bytes into the L2 cache."""

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MOST_WIDTH = 2048
"""Largest width: a program holds whole rows of weights."""

HEAD_SIZES = (16, 32, 64, 128)
MOST_LAYERS = 62
"""Layers that the tags of words tell apart: of 64 tags, 0 stands for no word, and the last result has its own."""

MOST_ELEMENTS = 2**31
"""Elements that 32-bit offsets reach."""


class CannotDecode(UserError, ValueError):
    """A model, a text or a device that the kernels do not take."""


@triton.jit
def take_turns(OVERLAP: tl.constexpr):
    """Let the kernel behind this one begin, and wait for what the one before it stores; the interpreter has neither."""
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()


@triton.jit
def gelu(x):
    """Return x/2 (1 + tanh(c (x + a x^3))), which is x times a sigmoid."""
    return x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


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
def tile_rows(
    weight_ptr, first, end, LONG: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr, BLOCKS: tl.constexpr = 1
):
    """Return BLOCKS of ROWS rows of LONG weights from row `first` on, those before `end`, as tiles of PIECE columns."""
    k = tl.arange(0, PIECE)
    tiles = ()
    for block in tl.static_range(BLOCKS):
        n = first + block * ROWS + tl.arange(0, ROWS)
        for piece in tl.static_range(LONG // PIECE):
            place = weight_ptr + (n * LONG)[:, None] + (piece * PIECE + k)[None, :]
            tiles = tiles + (tl.load(place, mask=(n < end)[:, None], other=0.0),)
    return tiles


@triton.jit
def tile_rows_with_gain(
    weight_ptr, gain_ptr, first, end,
    LONG: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr, BLOCKS: tl.constexpr = 1,
):  # fmt: skip
    """Return the same rows in float32, each column times its gain."""
    tiles = tile_rows(weight_ptr, first, end, LONG, ROWS, PIECE, BLOCKS)
    place = gain_ptr + (tl.arange(0, ROWS) * 0)[:, None] + tl.arange(0, PIECE)[None, :]  # in the threads of the weights
    gains = ()
    for piece in tl.static_range(LONG // PIECE):
        gains = gains + (tl.load(place + piece * PIECE).to(tl.float32),)
    scaled = ()
    for number in tl.static_range(BLOCKS * (LONG // PIECE)):
        scaled = scaled + (tiles[number].to(tl.float32) * gains[number % (LONG // PIECE)],)
    return scaled


@triton.jit
def tile_of_row(ptr, PIECES: tl.constexpr, PIECE: tl.constexpr):
    """Return PIECES pieces of a row that the kernel before this one has stored."""
    pieces = ()
    for piece in tl.static_range(PIECES):
        pieces = pieces + (tl.load(ptr + piece * PIECE + tl.arange(0, PIECE), cache_modifier=".cg"),)
    return pieces


@triton.jit
def summands(tiles, x, PIECES: tl.constexpr, BLOCK: tl.constexpr = 0):
    """Return the products of a block of weights and x, of which each row is still to be summed."""
    acc = tiles[BLOCK * PIECES].to(tl.float32) * x[0][None, :]
    for piece in tl.static_range(1, PIECES):
        acc += tiles[BLOCK * PIECES + piece].to(tl.float32) * x[piece][None, :]
    return acc


@triton.jit
def products_and_moments(tiles, x, WIDTH: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr, EPS: tl.constexpr):
    """Return the products of the first block of rows with x, and for each row the mean and the scale of x."""
    PIECES: tl.constexpr = WIDTH // PIECE
    everywhere = tl.zeros((ROWS, PIECE), tl.float32)
    total, squares = everywhere, everywhere
    for piece in tl.static_range(PIECES):
        one = x[piece][None, :] + everywhere
        total += one
        squares += one * one
    product, mean = tl.sum(summands(tiles, x, PIECES), 1), tl.sum(total, 1) / WIDTH
    return product, mean, tl.rsqrt(tl.maximum(tl.sum(squares, 1) / WIDTH - mean * mean, 0.0) + EPS)


@triton.jit
def normalized_products(
    tiles, x_ptr, sums, rest, WIDTH: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr, EPS: tl.constexpr
):
    """Return the products of rows with a normalized x; `tiles` have the gains, `sums` and `rest` are from `folded`."""
    x = tile_of_row(x_ptr, WIDTH // PIECE, PIECE)
    product, mean, scale = products_and_moments(tiles, x, WIDTH, ROWS, PIECE, EPS)
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
    k = tl.load(place, mask=(t < positions)[:, None], other=0.0)
    v = tl.load(place + WIDTH, mask=(t < positions)[:, None], other=0.0)
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


@triton.constexpr_function
def take_text(count, pack, of):
    """Return PTX that loads words until all carry the tag or a later one, with all loads on their way at once.

    A load has `of` words, one or two. Outputs are the words; inputs the first address, the bytes between loads, and the
    tag, each `pack` times, for as many elements of a thread.
    """
    loads = count * pack
    lines = [".reg .pred more, left;", ".reg .b32 low, one, polls;", f".reg .b64 a<{loads}>;", "mov.b32 polls, 65536;"]
    for load in range(loads):
        first, step = f"${loads * of + load % pack}", f"${loads * of + pack}"
        lines.append(f"mov.b64 a{load}, {first};" if load < pack else f"add.s64 a{load}, a{load - pack}, {step};")
    lines.append("again:")
    for load in range(loads):
        if of == 1:
            lines.append(f"ld.relaxed.gpu.global.b32 ${load}, [a{load}];")
        else:
            lines.append(f"ld.relaxed.gpu.global.v2.b32 {{${load}, ${loads + load}}}, [a{load}];")
    lines.append("and.b32 low, $0, 63;")
    for word in range(1, loads * of):
        lines += [f"and.b32 one, ${word}, 63;", "min.u32 low, low, one;"]
    lines += [
        f"setp.lo.u32 more, low, ${loads * of + 2 * pack};",
        "sub.s32 polls, polls, 1;",  # a word that never comes must not hang the GPU
        "setp.gt.s32 left, polls, 0;",
        "and.pred more, more, left;",
        "@more bra again;",
    ]
    return "{ " + " ".join(lines) + " }"


@triton.constexpr_function
def take_operands(count, pack, of):
    """Return the constraints of `take_text`."""
    return ",".join(["=&r"] * (count * pack * of) + ["l"] * (2 * pack) + ["r"] * pack)


@triton.constexpr_function
def int32s(count):
    """Return the types of `count` words."""
    return (tl.int32,) * count


@triton.jit
def take(ptr, step, tag, COUNT: tl.constexpr, SPIN: tl.constexpr, PACK: tl.constexpr = 1, OF: tl.constexpr = 1):
    """Wait for COUNT words at ptr, `step` words apart, and return their numbers; with OF = 2, then those behind them.

    The interpreter has one program, which need not wait.
    """
    words = ()
    for number in tl.static_range(COUNT * OF):
        words = words + (tl.full(ptr.shape, number, tl.int32),)
    if SPIN:
        wanted = tag
        while wanted > 0:  # once: the compiler moves no loop, and so does not wait again in every layout of the words
            words = tl.inline_asm_elementwise(
                take_text(COUNT, PACK, OF), take_operands(COUNT, PACK, OF),
                [ptr, tl.cast(step * 4, tl.int64), tag], dtype=int32s(COUNT * OF), is_pure=False, pack=PACK,
            )  # fmt: skip
            wanted = 0
    else:
        words = ()
        for behind in tl.static_range(OF):
            for number in tl.static_range(COUNT):
                words = words + (tl.load(ptr + number * step + behind),)
    numbers = ()
    for number in tl.static_range(COUNT * OF):
        numbers = numbers + ((words[number] & -64).to(tl.float32, bitcast=True),)
    return numbers


@triton.jit
def word_of(value, tag):
    """Return a float32 whose last six bits are the tag: whoever finds the tag has the number too."""
    return ((value.to(tl.int32, bitcast=True) + 32) & -64) | tag


@triton.jit
def give(ptr, value, tag, mask, SPIN: tl.constexpr):
    """Store a word for each row, from the threads that have the row's sum."""
    word = word_of(value, tag)
    if SPIN:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p, $3, 0; @p st.relaxed.gpu.global.b32 [$1], $2; mov.b32 $0, 0; }",
            "=r,l,r,r", [ptr, word, mask.to(tl.int32)], dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        tl.store(ptr, word, mask=mask)


@triton.jit
def fetch_ahead(ptr, size, FETCH: tl.constexpr):
    """Ask for `size` bytes to come to the L2 cache; nobody waits for them. Older GPUs cannot."""
    if FETCH:
        tl.inline_asm_elementwise(
            "{ .reg .pred one; .reg .b32 t; mov.u32 t, %tid.x; setp.eq.u32 one, t, 0; "
            "setp.gt.and.s32 one, $2, 0, one; "
            "@one cp.async.bulk.prefetch.L2.global [$1], $2; mov.b32 $0, 0; }",
            "=r,l,r", [ptr, size], dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def arrived(count_ptr):
    """Count this program in."""
    tl.debug_barrier()  # all threads of this program have loaded and stored
    tl.atomic_add(count_ptr, 1, sem="acq_rel")


@triton.jit
def all_arrived(count_ptr, due):
    """Wait until the count is `due`."""
    while tl.atomic_add(count_ptr, 0, sem="acquire") < due:
        pass
    tl.debug_barrier()


@triton.jit
def attend_words(
    item, words_ptr, cache_ptr, pairs_ptr, length, tag,
    WIDTH: tl.constexpr, HEAD: tl.constexpr, SPLITS: tl.constexpr, KEYS: tl.constexpr, SPIN: tl.constexpr,
):  # fmt: skip
    """Attend to one share of the tokens of one head: pairs of an average of values and the logarithm of their weights.

    All keys and values but the newest are asked for before the query is there. The logarithm, one for a head, stands
    beside each of its numbers: were there only one, all programs would look for it at one place, one after the other.
    """
    head, split = item // SPLITS, item % SPLITS
    d = tl.arange(0, HEAD)
    share = tl.cdiv(length, SPLITS)
    start, end = split * share, tl.minimum((split + 1) * share, length)
    t = start + tl.arange(0, KEYS)
    place = cache_ptr + (t * 2 * WIDTH)[:, None] + head * HEAD + d[None, :]
    old = ((t < end) & (t < length - 1))[:, None]
    k, v = tl.load(place, mask=old, other=0.0), tl.load(place + WIDTH, mask=old, other=0.0)
    newest = take(words_ptr + head * HEAD + d, WIDTH, tag, 3, SPIN)
    q = newest[0] * (HEAD**-0.5)
    top = tl.full((), -1e30, tl.float32)
    total = tl.zeros((), tl.float32)
    acc = tl.zeros((HEAD,), tl.float32)
    for first in range(start, end, KEYS):
        t = first + tl.arange(0, KEYS)
        if first > start:
            place = cache_ptr + (t * 2 * WIDTH)[:, None] + head * HEAD + d[None, :]
            old = ((t < end) & (t < length - 1))[:, None]
            k, v = tl.load(place, mask=old, other=0.0), tl.load(place + WIDTH, mask=old, other=0.0)
        is_newest = (t == length - 1)[:, None]
        keys = tl.where(is_newest, newest[1][None, :], k.to(tl.float32))
        values = tl.where(is_newest, newest[2][None, :], v.to(tl.float32))
        scores = tl.where(t < end, tl.sum(keys * q[None, :], 1), -1e30)
        higher = tl.maximum(top, tl.max(scores, 0))
        shares = tl.where(t < end, tl.exp(scores - higher), 0.0)
        less = tl.exp(top - higher)
        total = total * less + tl.sum(shares, 0)
        acc = acc * less + tl.sum(shares[:, None] * values, 0)
        top = higher
    total_or_one = tl.where(total > 0, total, 1.0)  # a share without tokens has none
    log = tl.where(total > 0, top + tl.log(total_or_one), -1e30) + tl.zeros((HEAD,), tl.float32)
    pair = word_of(acc / total_or_one, tag).to(tl.int64) & 0xFFFFFFFF | word_of(log, tag).to(tl.int64) << 32
    place = (pairs_ptr + 2 * (split * WIDTH + head * HEAD)).to(tl.pointer_type(tl.int64)) + d
    tl.atomic_xchg(place, pair, sem="relaxed")  # unlike `give`, by one of the threads that have the number


@triton.jit
def attended_words(pairs_ptr, tag, WIDTH: tl.constexpr, SPLITS: tl.constexpr, PIECE: tl.constexpr, SPIN: tl.constexpr):
    """Return attention's result of all heads, in pieces, from the shares of their tokens."""
    PIECES: tl.constexpr = WIDTH // PIECE
    got = take(pairs_ptr + 2 * tl.arange(0, PIECE), 2 * PIECE, tag, SPLITS * PIECES, SPIN, OF=2)
    pieces = ()
    for piece in tl.static_range(PIECES):
        top = got[SPLITS * PIECES + piece]
        for split in tl.static_range(1, SPLITS):
            top = tl.maximum(top, got[(SPLITS + split) * PIECES + piece])
        total, acc = tl.zeros((PIECE,), tl.float32), tl.zeros((PIECE,), tl.float32)
        for split in tl.static_range(SPLITS):
            share = tl.exp(got[(SPLITS + split) * PIECES + piece] - top)
            total += share
            acc += share * got[split * PIECES + piece]
        pieces = pieces + (acc / total,)
    return pieces


@triton.jit
def persistent_kernel(
    text_ptr, length_ptr, best_ptr, count_ptr, prompt, tokens_ptr, positions_ptr,
    norm1_gain_ptr, qkv_weight_ptr, qkv_sums_ptr, qkv_rest_ptr, projection_weight_ptr, projection_bias_ptr,
    norm2_gain_ptr, up_weight_ptr, up_sums_ptr, up_rest_ptr, down_weight_ptr, down_bias_ptr,
    norm_gain_ptr, norm_shift_ptr, cache_ptr, words_ptr, scores_ptr,
    layers, positions, VOCABULARY,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, SPLITS: tl.constexpr, KEYS: tl.constexpr, PIECE: tl.constexpr,
    LONG_PIECE: tl.constexpr, PACK: tl.constexpr, EPS: tl.constexpr, ROWS: tl.constexpr,
    QKV_BLOCKS: tl.constexpr, UP_BLOCKS: tl.constexpr, HEAD_ROWS: tl.constexpr, HEAD_AHEAD: tl.constexpr,
    SCORES: tl.constexpr, HOLD: tl.constexpr, SPIN: tl.constexpr, FETCH: tl.constexpr,
):  # fmt: skip
    """Compute one token, without barriers between phases: a program waits for the words that it needs.

    Each phase asks the L2 cache for its own weights of the next layer: asked for all at once, they would compete with
    the loads of this layer. PACK is how many words of LONG_PIECE a thread has.
    """
    program, programs = tl.program_id(0), tl.num_programs(0)
    HEAD: tl.constexpr = WIDTH // HEADS
    PIECES: tl.constexpr = WIDTH // PIECE
    LONG_PIECES: tl.constexpr = 4 * WIDTH // LONG_PIECE
    ITEM: tl.constexpr = tokens_ptr.dtype.element_ty.primitive_bitwidth // 8
    mid_ptr, new_ptr, hidden_ptr = words_ptr + WIDTH, words_ptr + 2 * WIDTH, words_ptr + 5 * WIDTH
    pairs_ptr = words_ptr + 9 * WIDTH
    i, row = tl.arange(0, PIECE), tl.arange(0, ROWS)
    each_qkv, each_up = tl.cdiv(3 * WIDTH, programs), tl.cdiv(4 * WIDTH, programs)
    each_x, each_last = tl.cdiv(WIDTH, programs), tl.cdiv(VOCABULARY, programs)
    qkv_first, up_first, x_first = program * each_qkv, program * each_up, program * each_x
    qkv_end = tl.minimum(qkv_first + each_qkv, 3 * WIDTH)
    up_end = tl.minimum(up_first + each_up, 4 * WIDTH)
    x_end = tl.minimum(x_first + each_x, WIDTH)
    last_first = program * each_last
    last_end = tl.minimum(last_first + each_last, VOCABULARY)
    qkv_bytes, up_bytes = (qkv_end - qkv_first) * (WIDTH * ITEM), (up_end - up_first) * (WIDTH * ITEM)
    x_bytes = (x_end - x_first) * (WIDTH * ITEM)
    fetch_ahead(qkv_weight_ptr + qkv_first * WIDTH, qkv_bytes, FETCH)
    fetch_ahead(projection_weight_ptr + x_first * WIDTH, x_bytes, FETCH)
    fetch_ahead(up_weight_ptr + up_first * WIDTH, up_bytes, FETCH)
    fetch_ahead(down_weight_ptr + x_first * 4 * WIDTH, 4 * x_bytes, FETCH)
    length = tl.load(length_ptr) + 1 - HOLD
    token = tl.load(text_ptr + length - 1)
    best = tl.load(best_ptr)
    token = tl.where(length - 1 >= prompt, 0x7FFFFFFF - (best & 0x7FFFFFFF).to(tl.int32), token)
    x_rows = x_first + row
    own = x_rows < x_end
    x_own = tl.load(tokens_ptr + token * WIDTH + x_rows, mask=own, other=0.0).to(tl.float32)
    x_own += tl.load(positions_ptr + (length - 1) * WIDTH + x_rows, mask=own, other=0.0).to(tl.float32)
    give(words_ptr + x_rows, x_own, 1, own, SPIN)
    arrived(count_ptr)
    each_t = tl.cdiv(length, programs)
    t_first = tl.minimum(program * each_t, length - 1)
    t_bytes = (tl.minimum(t_first + each_t, length - 1) - t_first) * (2 * WIDTH * ITEM)
    for layer in range(layers):
        tag, following = layer + 1, layer + 1
        if following < layers:
            fetch_ahead(qkv_weight_ptr + (following * 3 * WIDTH + qkv_first) * WIDTH, qkv_bytes, FETCH)
            fetch_ahead(cache_ptr + (following * positions + t_first) * 2 * WIDTH, t_bytes, FETCH)
        else:
            ahead = tl.minimum(HEAD_AHEAD, last_end - last_first)
            fetch_ahead(tokens_ptr + last_first * WIDTH, ahead * WIDTH * ITEM, FETCH)
        # Weights are asked for, and multiplied by gains, before x is there.
        qkv_ptr = qkv_weight_ptr + layer * 3 * WIDTH * WIDTH
        gain_ptr = norm1_gain_ptr + layer * WIDTH
        tiles = tile_rows_with_gain(qkv_ptr, gain_ptr, qkv_first, qkv_end, WIDTH, ROWS, PIECE, QKV_BLOCKS)
        sums, rest = (), ()
        for block in tl.static_range(QKV_BLOCKS):
            n = qkv_first + block * ROWS + row
            sums = sums + (number_of_row(qkv_sums_ptr + layer * 3 * WIDTH + n, n < qkv_end, SPIN),)
            rest = rest + (number_of_row(qkv_rest_ptr + layer * 3 * WIDTH + n, n < qkv_end, SPIN),)
        x = take(words_ptr + i, PIECE, tag, PIECES, SPIN)
        product, mean, scale = products_and_moments(tiles, x, WIDTH, ROWS, PIECE, EPS)
        kv_ptr = cache_ptr + (layer * positions + length - 1) * 2 * WIDTH
        for block in tl.static_range(QKV_BLOCKS):
            n = qkv_first + block * ROWS + row
            if block > 0:
                product = tl.sum(summands(tiles, x, PIECES, block), 1)
            total = scale * (product - mean * sums[block]) + rest[block]
            kept = total.to(kv_ptr.dtype.element_ty).to(tl.float32)
            give(new_ptr + n, tl.where(n < WIDTH, total, kept), tag, n < qkv_end, SPIN)
            store_number_of_row(kv_ptr + n - WIDTH, total, (n < qkv_end) & (n >= WIDTH), SPIN)
        if following < layers:
            fetch_ahead(projection_weight_ptr + (following * WIDTH + x_first) * WIDTH, x_bytes, FETCH)
        tiles = tile_rows(projection_weight_ptr + layer * WIDTH * WIDTH, x_first, x_end, WIDTH, ROWS, PIECE)
        biases = number_of_row(projection_bias_ptr + layer * WIDTH + x_rows, own, SPIN)
        for item in range(program, HEADS * SPLITS, programs):
            attend_words(
                item, new_ptr, cache_ptr + layer * positions * 2 * WIDTH, pairs_ptr, length, tag,
                WIDTH, HEAD, SPLITS, KEYS, SPIN,
            )  # fmt: skip
        seen = attended_words(pairs_ptr, tag, WIDTH, SPLITS, PIECE, SPIN)
        x_own += tl.sum(summands(tiles, seen, PIECES), 1) + biases
        give(mid_ptr + x_rows, x_own, tag, own, SPIN)
        if following < layers:
            fetch_ahead(up_weight_ptr + (following * 4 * WIDTH + up_first) * WIDTH, up_bytes, FETCH)
        up_ptr = up_weight_ptr + layer * 4 * WIDTH * WIDTH
        gain_ptr = norm2_gain_ptr + layer * WIDTH
        tiles = tile_rows_with_gain(up_ptr, gain_ptr, up_first, up_end, WIDTH, ROWS, PIECE, UP_BLOCKS)
        sums, rest = (), ()
        for block in tl.static_range(UP_BLOCKS):
            n = up_first + block * ROWS + row
            sums = sums + (number_of_row(up_sums_ptr + layer * 4 * WIDTH + n, n < up_end, SPIN),)
            rest = rest + (number_of_row(up_rest_ptr + layer * 4 * WIDTH + n, n < up_end, SPIN),)
        x = take(mid_ptr + i, PIECE, tag, PIECES, SPIN)
        product, mean, scale = products_and_moments(tiles, x, WIDTH, ROWS, PIECE, EPS)
        for block in tl.static_range(UP_BLOCKS):
            n = up_first + block * ROWS + row
            if block > 0:
                product = tl.sum(summands(tiles, x, PIECES, block), 1)
            total = scale * (product - mean * sums[block]) + rest[block]
            give(hidden_ptr + n, gelu(total), tag, n < up_end, SPIN)
        if following < layers:
            fetch_ahead(down_weight_ptr + (following * WIDTH + x_first) * 4 * WIDTH, 4 * x_bytes, FETCH)
        tiles = tile_rows(down_weight_ptr + layer * 4 * WIDTH * WIDTH, x_first, x_end, 4 * WIDTH, ROWS, LONG_PIECE)
        biases = number_of_row(down_bias_ptr + layer * WIDTH + x_rows, own, SPIN)
        hidden = take(hidden_ptr + tl.arange(0, LONG_PIECE), LONG_PIECE, tag, LONG_PIECES, SPIN, PACK)
        x_own += tl.sum(summands(tiles, hidden, LONG_PIECES), 1) + biases
        give(words_ptr + x_rows, x_own, tag + 1, own, SPIN)
    if program == 0:
        all_arrived(count_ptr, programs)  # all have read what is stored now; they have long since
        tl.store(text_ptr + length - 1, token)
        tl.store(length_ptr, length)
        tl.store(best_ptr, -(2**63))
        arrived(count_ptr)
    tiles = tile_rows(tokens_ptr, last_first, last_end, WIDTH, HEAD_ROWS, PIECE)
    x = take(words_ptr + i, PIECE, layers + 1, PIECES, SPIN)
    total, squares = x[0], x[0] * x[0]
    for piece in tl.static_range(1, PIECES):
        total += x[piece]
        squares += x[piece] * x[piece]
    mean = tl.sum(total, 0) / WIDTH
    scale = tl.rsqrt(tl.maximum(tl.sum(squares, 0) / WIDTH - mean * mean, 0.0) + EPS)
    normed = ()
    for piece in tl.static_range(PIECES):
        gain = tl.load(norm_gain_ptr + piece * PIECE + i).to(tl.float32)
        shift = tl.load(norm_shift_ptr + piece * PIECE + i).to(tl.float32)
        normed = normed + ((x[piece] - mean) * scale * gain + shift,)
    best = tl.full((), -(2**63), tl.int64)
    for begin in range(0, each_last, HEAD_ROWS):
        n = last_first + begin + tl.arange(0, HEAD_ROWS)
        ahead = last_first + begin + HEAD_AHEAD
        some = tl.minimum(last_end - ahead, HEAD_ROWS)
        fetch_ahead(tokens_ptr + ahead * WIDTH, some * WIDTH * ITEM, FETCH)
        following = tile_rows(tokens_ptr, last_first + begin + HEAD_ROWS, last_end, WIDTH, HEAD_ROWS, PIECE)
        scores = tl.sum(summands(tiles, normed, PIECES), 1)
        if SCORES:
            tl.store(scores_ptr + n, scores, mask=n < last_end)
        best = tl.maximum(best, packed(scores, n, last_end))
        tiles = following
    all_arrived(count_ptr, programs + 1)  # the best score of the token before is gone
    tl.atomic_max(best_ptr, best)


@triton.jit
def barrier(count_ptr, due):
    """Wait until all programs have come here; `due` is how often they have in all."""
    arrived(count_ptr)
    all_arrived(count_ptr, due)


@triton.jit
def barriers_kernel(count_ptr, barriers):
    """Do nothing but wait for each other."""
    for number in range(barriers):
        barrier(count_ptr, (number + 1) * tl.num_programs(0))


@triton.jit
def weightless(x_ptr, y_ptr, n, end, WIDTH, BLOCK: tl.constexpr, EPS: tl.constexpr):
    """Do what a step does besides its weights: read the row that all programs stored, normalize it, store rows n."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < WIDTH, other=0.0, cache_modifier=".cg")
    centered = tl.where(i < WIDTH, x - tl.sum(x, 0) / WIDTH, 0.0)
    total = tl.sum(centered * tl.rsqrt(tl.sum(centered * centered, 0) / WIDTH + EPS), 0)
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
        persistent_ahead: tokens whose weights it asks the L2 cache for before it scores them.
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
    num_warps: int = 4
    persistent_warps: int = 8
    persistent_head: int = 16
    persistent_ahead: int = 64
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
        self.can_fetch = can_overlap(here)
        self.programs = programs or here.multiprocessors or 1
        self.head = decoder.width // decoder.heads
        self.block = triton.next_power_of_2(decoder.width)
        width = decoder.width
        self.text = torch.zeros(decoder.longest + 1, dtype=torch.int32, device=device)
        self.length, self.count = (torch.zeros(1, dtype=torch.int32, device=device) for _ in range(2))
        self.best = torch.zeros(1, dtype=torch.int64, device=device)
        self.cache = decoder.empty_cache()
        self.x, self.q = (torch.zeros(width, device=device) for _ in range(2))
        self.hidden = torch.zeros(4 * width, device=device)
        # x, x behind attention, queries, keys, values, 4 of the hidden layer, pairs of attention's shares; then a count
        self.words = torch.zeros((9 + 2 * self.plan.splits) * width + 4, dtype=torch.int32, device=device)
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
        """Kernels of a token: five a layer, one before and one behind."""
        return 5 * self.decoder.layers + 2

    @property
    def launch_options(self) -> dict[str, int]:
        """How each of these kernels is launched."""
        options = {"num_warps": self.plan.num_warps, "OVERLAP": self.plan.overlap}
        return options | {"launch_pdl": True} if self.plan.overlap else options

    @property
    def persistent_options(self) -> dict[str, int]:
        """How a kernel is launched whose programs wait for each other: all must run at once, or the driver refuses."""
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
        self.words.zero_()  # no word of the token before may pass for one of this token
        rows, long_piece = self.persistent_rows, piece_of(4 * width, plan.long_piece)
        persistent_kernel[(self.programs,)](
            self.text, self.length, self.best, self.words[-4:], self.prompt, model.tokens, model.positions,
            model.norm1_gain, model.qkv_weight, *self.folded_qkv, model.projection_weight, self.projection_bias,
            model.norm2_gain, model.up_weight, *self.folded_up, model.down_weight, self.down_bias,
            model.norm_gain, model.norm_shift, self.cache, self.words, self.scores,
            model.layers, model.longest, model.vocabulary,
            WIDTH=width, HEADS=model.heads, SPLITS=plan.splits, KEYS=plan.keys, PIECE=piece_of(width, plan.piece),
            LONG_PIECE=long_piece, PACK=max(1, long_piece // (32 * plan.persistent_warps)), EPS=EPSILON, ROWS=rows,
            QKV_BLOCKS=triton.cdiv(triton.cdiv(3 * width, self.programs), rows),
            UP_BLOCKS=triton.cdiv(triton.cdiv(4 * width, self.programs), rows),
            HEAD_ROWS=max(rows, plan.persistent_head), HEAD_AHEAD=plan.persistent_ahead,
            SCORES=scores, HOLD=int(hold), SPIN=self.words.is_cuda, FETCH=self.can_fetch,
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
        """Do the same in one kernel, with a barrier where a kernel ends.

        `persistent_step` has no barriers: its programs wait as often, but each only for what it needs.
        """
        self.count.zero_()
        weightless_phases_kernel[(self.programs,)](
            self.two_rows, self.count, self.kernels, self.decoder.width,
            ROWS=self.persistent_rows, BLOCK=self.block, EPS=EPSILON, **self.persistent_options,
        )  # fmt: skip

    @property
    def persistent_rows(self) -> int:
        """Rows of a block of the persistent kernel, which holds the rows of WIDTH results that one program computes."""
        return int(triton.next_power_of_2(triton.cdiv(self.decoder.width, self.programs)))

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
    if decoder.layers > MOST_LAYERS:
        raise CannotDecode(f"the model has {decoder.layers} layers: at most {MOST_LAYERS}")
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
