"""Where the lab's races lead: the course's fastest products of fp8, int8 and int4 weights, for Hopper GPUs.

Weights are (n, k), a row for each output, as a linear layer keeps them. Both operands are then contiguous along k,
which is the only order in which the tensor cores take numbers of 8 bits.

- `product_kernel` multiplies fp8 by fp8 or int8 by int8. The TMA brings tiles whose rows are 128 bytes,
  the widest that it swizzles. A persistent program computes one tile after the other, and Triton flattens the two
  loops, so the copies for the next tile start while this one is multiplied and stored. The scales, a number per row of
  each operand, are applied to the sum, once per element of the result and not once per product.
- The tensor cores of a Hopper GPU keep sums of fp8 products in fewer bits than float32 has. With `precise`, the sum of
  128 products is added to a sum in float32 by the ordinary cores; without, it stays where it is, which is faster.
- `int4_kernel` multiplies weights of 4 bits by activations of 16. The weights become 16-bit numbers in registers, and
  registers can feed the tensor cores only on the left. So the kernel computes the transposed product, weights times
  activations, and a batch of 1 to 16 fills the short side of the instruction, 16 columns, in place of 64 rows.
- Its weights are packed for it: four to a word of 16 bits, 32 words for a group of 128 weights with one scale. The
  words of a group are 64 contiguous bytes, and those of neighboring rows follow. So a tile of 128 rows is one piece of
  8 KiB. Word j of a group holds weights j, j + 32, j + 64 and j + 96, so each of the four nibbles of all words is a
  matrix of its own that meets 32 contiguous activations. Two of them side by side meet 64, which are 128 bytes, and no
  nibble has to move to another thread.
- No conversion instruction makes the numbers, and each instruction makes two: see `weights_of`.
- Up to a batch of 32, memory sets the pace. With more, the tensor cores do, so `overlapped_kernel` makes the next
  weights while the tensor cores multiply by the last ones, and starts the next product before the last one ends.
  Triton does not do that by itself, so this kernel is in Gluon, the language below Triton's own. It also multiplies the
  weights by their scales before the product, which rounds them to 16 bits: one sum then takes in all groups, and stays
  where the tensor cores add to it.
- With a small batch there are fewer tiles than the GPU needs to keep its memory busy, so several programs share the k
  of one tile (`splits`). One of them adds up, always in the same order: equal inputs give equal bits.

A rule chooses the plan by shape: `product_plan` and `int4_plan`.

No interpreter runs Gluon: the tests compile `overlapped_kernel`, and `mlsys bench` checks its results on a GPU before
it times them.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor

from mlsys.errors import UserError
from mlsys.measure.device import Device, detect_device
from mlsys.runtime.launches import remembered

NEEDS = (9, 0)
"""Compute capability from which GPUs have a TMA, and tensor cores for fp8."""

ALIGNMENT_BYTES = 16
"""Where each row of a descriptor's matrix must start."""

GROUP_M = 8
"""Rows of tiles that neighboring programs share, so that the L2 holds what they read."""

GROUP = 128
"""Weights of 4 bits that share a scale."""

WORD_WEIGHTS = 4
"""Weights of 4 bits in a word."""

WORDS = GROUP // WORD_WEIGHTS
"""Words of a group."""

MOST_ELEMENTS = 2**31
"""Elements that 32-bit offsets reach."""

EIGHT_BITS = (torch.float8_e4m3fn, torch.int8)
SIXTEEN_BITS = (torch.float16, torch.bfloat16)


class CannotMultiply(UserError, ValueError):
    """Matrices that a product does not take, or a device that cannot compute it."""


@triton.jit
def tile_of(number, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column of a tile, numbered down GROUP_M rows and then on to the next column."""
    per_group = GROUP_M * tiles_n
    first_row = number // per_group * GROUP_M
    rows = min(tiles_m - first_row, GROUP_M)
    within = number % per_group
    return first_row + within % rows, within // rows


@triton.jit
def store_tile(out, row, col, tile, PARTS: tl.constexpr):
    """Store a tile from (row, col) on in PARTS pieces, side by side."""
    if PARTS == 1:
        out.store([row, col], tile.to(out.dtype))
    else:
        HALF: tl.constexpr = tile.shape[1] // 2
        left, right = tl.split(tl.permute(tl.reshape(tile, (tile.shape[0], 2, HALF)), (0, 2, 1)))
        store_tile(out, row, col, left, PARTS // 2)
        store_tile(out, row, col + HALF, right, PARTS // 2)


@triton.jit
def product_tile(
    a, b, out, a_scale_ptr, b_scale_ptr, number, M, N, K,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr, PARTS: tl.constexpr,
    SCALED: tl.constexpr, PRECISE: tl.constexpr, INTEGER: tl.constexpr,
):  # fmt: skip
    """Compute one tile of A times B transposed, and scale its rows and columns."""
    tile_row, tile_col = tile_of(number, tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N), GROUP_M)
    row, col = tile_row * TILE_M, tile_col * TILE_N
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.int32 if INTEGER else tl.float32)
    for step in range(0, K, TILE_K):
        left, right = a.load([row, step]), b.load([col, step]).T
        if INTEGER:
            acc = tl.dot(left, right, acc, out_dtype=tl.int32)
        elif PRECISE:
            acc = tl.dot(left, right, acc, max_num_imprecise_acc=TILE_K)
        else:
            acc = tl.dot(left, right, acc)
    if SCALED:
        rows, cols = row + tl.arange(0, TILE_M), col + tl.arange(0, TILE_N)
        a_scale = tl.load(a_scale_ptr + rows, mask=rows < M, other=0.0)
        b_scale = tl.load(b_scale_ptr + cols, mask=cols < N, other=0.0)
        store_tile(out, row, col, acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :], PARTS)
    else:
        store_tile(out, row, col, acc, PARTS)


@triton.jit
def product_kernel(
    a, b, out, a_scale_ptr, b_scale_ptr, M, N, K,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr, PARTS: tl.constexpr,
    SCALED: tl.constexpr, PRECISE: tl.constexpr, INTEGER: tl.constexpr, PERSISTENT: tl.constexpr,
):  # fmt: skip
    """Multiply A, (M, K), by B, (N, K), transposed, by descriptors; a persistent program takes tile after tile."""
    if PERSISTENT:
        tiles = tl.cdiv(M, TILE_M) * tl.cdiv(N, TILE_N)
        for number in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
            product_tile(
                a, b, out, a_scale_ptr, b_scale_ptr, number, M, N, K,
                TILE_M, TILE_N, TILE_K, GROUP_M, PARTS, SCALED, PRECISE, INTEGER,
            )  # fmt: skip
    else:
        product_tile(
            a, b, out, a_scale_ptr, b_scale_ptr, tl.program_id(0), M, N, K,
            TILE_M, TILE_N, TILE_K, GROUP_M, PARTS, SCALED, PRECISE, INTEGER,
        )  # fmt: skip


def weights_ptx(place: int, *, half: bool, scaled: bool = False) -> str:
    """PTX that makes a pair of weights from the nibbles at a place of two words: see `weights_of`.

    float16 1032 has the bits 0x6408, 1/16 has 0x2C00 and -72 has 0xD480; bfloat16 136 has 0x4308. The last operand of
    lop3, 0xEA, says (a & b) | c.

    Args:
        place: 0 to 3.
        half: float16, not bfloat16.
        scaled: times the scales in $2.
    """
    kind = "f16x2" if half else "bf16x2"
    upper = half and place % 2 == 1
    shift = place // 2 * 8 if half else place * 4
    taken = f"shr.b32 t, $1, {shift};" if shift else "mov.b32 t, $1;"
    mask, one = "0xf000f0" if upper else "0xf000f", "0x64006400" if half else "0x43004300"
    if upper:
        number = "mov.b32 a, 0x2C002C00; mov.b32 c, 0xD480D480; fma.rn.f16x2 t, t, a, c;"
    else:
        number = f"mov.b32 c, {'0x64086408' if half else '0x43084308'}; sub.rn.{kind} t, t, c;"
    last = f"mul.rn.{kind} $0, t, $2;" if scaled else "mov.b32 $0, t;"
    return f"{{ .reg .b32 a, c, t; {taken} lop3.b32 t, t, {mask}, {one}, 0xEA; {number} {last} }}"


HALF_PAIRS = tl.constexpr(tuple(weights_ptx(place, half=True) for place in range(WORD_WEIGHTS)))
BF16_PAIRS = tl.constexpr(tuple(weights_ptx(place, half=False) for place in range(WORD_WEIGHTS)))
SCALED_HALF_PAIRS = tl.constexpr(tuple(weights_ptx(place, half=True, scaled=True) for place in range(WORD_WEIGHTS)))
SCALED_BF16_PAIRS = tl.constexpr(tuple(weights_ptx(place, half=False, scaled=True) for place in range(WORD_WEIGHTS)))


@triton.jit
def weights_of(words, PLACE: tl.constexpr, HALF: tl.constexpr, PAIRS: tl.constexpr):
    """The weights at one of the four places of words, -8 to 7, as numbers of 16 bits.

    float16 1024 has the bits 0x6400, and the last of its ten bits of mantissa counts 1. So a nibble n in the last four
    bits makes 1024 + n; in the four bits before, 1024 + 16 n, which times 1/16 is 64 + n. A nibble holds the weight
    plus 8, which the subtraction takes off too. bfloat16 has seven bits of mantissa: 0x4300 is 128, and each nibble is
    shifted to the end. All of it is exact.

    A register holds two words. With PAIRS, each instruction works on both, which the compiler alone does not find; the
    interpreter has no such instructions.
    """
    if PAIRS:
        if HALF:
            weights = tl.inline_asm_elementwise(HALF_PAIRS[PLACE], "=r,r", [words], tl.float16, is_pure=True, pack=2)
        else:
            weights = tl.inline_asm_elementwise(BF16_PAIRS[PLACE], "=r,r", [words], tl.bfloat16, is_pure=True, pack=2)
    elif HALF:
        halves = words >> 8 if PLACE >= 2 else words
        if PLACE % 2 == 0:
            weights = ((halves & 0xF) | 0x6400).to(tl.float16, bitcast=True) - 1032.0
        else:
            weights = ((halves & 0xF0) | 0x6400).to(tl.float16, bitcast=True) * 0.0625 - 72.0
    else:
        weights = (((words >> (4 * PLACE)) & 0xF) | 0x4300).to(tl.bfloat16, bitcast=True) - 136.0
    return weights


@triton.jit
def int4_kernel(
    x, w, scale_ptr, out_ptr, part_ptr, arrived_ptr, M, N, K,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, SPLITS: tl.constexpr, GROUP: tl.constexpr, HALF: tl.constexpr,
    PAIRS: tl.constexpr,
):  # fmt: skip
    """Multiply x, (M, K), by packed weights, (N, K), transposed; SPLITS programs share the groups of a tile.

    `w` is a descriptor of the words, (K / GROUP x N, WORDS), the group counting slowest; scales are (K / GROUP, N).
    """
    tiles_m = tl.cdiv(M, TILE_M)
    tile = tl.program_id(0)
    split = tl.program_id(1)
    row, col = tile % tiles_m * TILE_M, tile // tiles_m * TILE_N  # neighbors share their weights
    rows, cols = row + tl.arange(0, TILE_M), col + tl.arange(0, TILE_N)
    groups = tl.cdiv(K // GROUP, SPLITS)
    first = split * groups
    last = min(first + groups, K // GROUP)

    acc = tl.zeros((TILE_N, TILE_M), tl.float32)
    scale = tl.load(scale_ptr + first * N + cols, mask=(cols < N) & (first < last), other=0.0)
    for group in range(first, last):
        # Fetched a step ahead: the compiler does so by itself only for what a product needs.
        following = tl.load(scale_ptr + (group + 1) * N + cols, mask=(cols < N) & (group + 1 < last), other=0.0)
        words = w.load([group * N + col, 0])
        sums = tl.zeros((TILE_N, TILE_M), tl.float32)
        for half in tl.static_range(2):
            # Side by side in the registers in which the tensor cores read them: nothing is moved.
            both = tl.join(weights_of(words, 2 * half, HALF, PAIRS), weights_of(words, 2 * half + 1, HALF, PAIRS))
            weights = both.permute(0, 2, 1).reshape(TILE_N, GROUP // 2)
            sums = tl.dot(weights, x.load([row, group * GROUP + half * (GROUP // 2)]).T, sums)
        acc += sums * scale.to(tl.float32)[:, None]
        scale = following

    result = acc.T
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    place = rows[:, None] * N + cols[None, :]
    if SPLITS == 1:
        tl.store(out_ptr + place, result.to(out_ptr.dtype.element_ty), mask=inside)
    else:
        tl.store(part_ptr + split * M * N + place, result, mask=inside)
        tl.debug_barrier()  # all threads have stored their part before one of them says so
        if tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel") == SPLITS - 1:
            total = tl.zeros((TILE_M, TILE_N), tl.float32)
            for one in range(SPLITS):  # from the L2, in which the parts of other programs are
                total += tl.load(part_ptr + one * M * N + place, mask=inside, other=0.0, cache_modifier=".cg")
            tl.store(out_ptr + place, total.to(out_ptr.dtype.element_ty), mask=inside)
            tl.store(arrived_ptr + tile, 0)  # for the next launch


wait_for_all_threads = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier
"""Its name has changed with Triton 3.7."""


@gluon.jit
def fetch(x, w, row, col, group, N, x_tiles, w_tiles, arrived, slot):
    """Have the TMA bring the words and activations of a group to a slot; its barrier says when they are there."""
    HALF_GROUP: gl.constexpr = x.block_type.shape[1]
    there = arrived.index(slot)
    mbarrier.expect(there, w.block_type.nbytes + 2 * x.block_type.nbytes)
    tma.async_copy_global_to_shared(w, [group * N + col, 0], there, w_tiles.index(slot))
    tma.async_copy_global_to_shared(x, [row, 2 * group * HALF_GROUP], there, x_tiles.index(2 * slot))
    tma.async_copy_global_to_shared(x, [row, (2 * group + 1) * HALF_GROUP], there, x_tiles.index(2 * slot + 1))


@gluon.jit
def scaled_weights(words, scales, PLACE: gl.constexpr, HALF: gl.constexpr):
    """The weights at one of the four places of words, times their scales."""
    if HALF:
        ptx: gl.constexpr = SCALED_HALF_PAIRS[PLACE]
        weights = gl.inline_asm_elementwise(ptx, "=r,r,r", [words, scales], gl.float16, is_pure=True, pack=2)
    else:
        ptx: gl.constexpr = SCALED_BF16_PAIRS[PLACE]
        weights = gl.inline_asm_elementwise(ptx, "=r,r,r", [words, scales], gl.bfloat16, is_pure=True, pack=2)
    return weights


@gluon.jit
def half_group(words, scales, PART: gl.constexpr, LEFT: gl.constexpr, HALF: gl.constexpr):
    """Part 0 or 1 of a group of weights, times their scales, in the registers in which the tensor cores read them."""
    first = scaled_weights(words, scales, 2 * PART, HALF)
    both = gl.join(first, scaled_weights(words, scales, 2 * PART + 1, HALF)).permute(0, 2, 1)
    return gl.convert_layout(both.reshape(both.shape[0], 2 * both.shape[2]), LEFT, assert_trivial=True)


@gluon.jit
def overlapped_kernel(
    x, w, scale_ptr, out_ptr, part_ptr, arrived_ptr, M, N, K,
    SPLITS: gl.constexpr, STAGES: gl.constexpr, HALF: gl.constexpr,
):  # fmt: skip
    """The same as `int4_kernel`, for larger batches: each half of a group is made while the other is multiplied.

    `x` and `w` are descriptors of (TILE_M, GROUP / 2) activations and (TILE_N, WORDS) words. The tensor cores always
    have work in line, since each product is issued before the one ahead of it is waited for. Scales are read two groups
    ahead. The TMA is up to STAGES groups ahead; it fills a slot again once the next group's first product is in line.
    """
    TILE_M: gl.constexpr = x.block_type.shape[0]
    TILE_N: gl.constexpr = w.block_type.shape[0]
    GROUP: gl.constexpr = 2 * x.block_type.shape[1]
    WARPS: gl.constexpr = gl.num_warps()
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, TILE_M, 16])
    LEFT: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    tiles_m = gl.cdiv(M, TILE_M)
    tile = gl.program_id(0)
    split = gl.program_id(1)
    row, col = tile % tiles_m * TILE_M, tile // tiles_m * TILE_N  # neighbors share their weights
    groups = gl.cdiv(K // GROUP, SPLITS)
    first = split * groups
    last = gl.minimum(first + groups, K // GROUP)

    x_tiles = gl.allocate_shared_memory(x.dtype, [2 * STAGES, TILE_M, GROUP // 2], x.layout)
    w_tiles = gl.allocate_shared_memory(gl.int16, [STAGES, TILE_N, w.block_type.shape[1]], w.layout)
    arrived = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(STAGES):
        mbarrier.init(arrived.index(slot), count=1)
    wait_for_all_threads()
    for step in gl.static_range(STAGES):
        if first + step < last:
            fetch(x, w, row, col, first + step, N, x_tiles, w_tiles, arrived, step)

    cols = col + gl.arange(0, TILE_N, gl.SliceLayout(1, LEFT))
    scale = gl.load(scale_ptr + first * N + cols, mask=(cols < N) & (first < last), other=0.0)
    following = gl.load(scale_ptr + (first + 1) * N + cols, mask=(cols < N) & (first + 1 < last), other=0.0)
    acc = gl.zeros([TILE_N, TILE_M], gl.float32, SUMS)
    slot, phase, used = 0, 0, 0
    mbarrier.wait(arrived.index(0), 0, pred=first < last)
    words = w_tiles.index(0).load(LEFT)
    weights = half_group(words, scale[:, None], 0, LEFT, HALF)
    for group in range(first, last):
        later = gl.load(scale_ptr + (group + 2) * N + cols, mask=(cols < N) & (group + 2 < last), other=0.0)
        running = warpgroup_mma(weights, x_tiles.index(2 * slot).permute((1, 0)), acc, is_async=True)
        acc = warpgroup_mma_wait(1, [running])  # the product before this one
        wait_for_all_threads()  # they have read the slot that is filled next
        if (group > first) & (group - 1 + STAGES < last):
            fetch(x, w, row, col, group - 1 + STAGES, N, x_tiles, w_tiles, arrived, used)
        second = half_group(words, scale[:, None], 1, LEFT, HALF)
        running = warpgroup_mma(second, x_tiles.index(2 * slot + 1).permute((1, 0)), acc, is_async=True)
        acc = warpgroup_mma_wait(1, [running])
        used = slot
        slot += 1
        if slot == STAGES:
            slot = 0
            phase ^= 1
        mbarrier.wait(arrived.index(slot), phase, pred=group + 1 < last)
        words = w_tiles.index(slot).load(LEFT)
        weights = half_group(words, following[:, None], 0, LEFT, HALF)
        scale, following = following, later
    acc = warpgroup_mma_wait(0, [acc])

    if SPLITS > 1:
        part_rows = gl.arange(0, TILE_N, gl.SliceLayout(1, SUMS))[:, None]
        part_place = (
            tile * TILE_M * TILE_N + part_rows * TILE_M + gl.arange(0, TILE_M, gl.SliceLayout(0, SUMS))[None, :]
        )
        part_size = gl.num_programs(0) * TILE_M * TILE_N
        if split < SPLITS - 1:
            gl.store(part_ptr + split * part_size + part_place, acc)
            wait_for_all_threads()  # all have stored their part before one of them says so
            gl.atomic_add(arrived_ptr + tile, 1, sem="release")
        else:  # it started after the others, which wait for nobody, so it may wait for them
            while gl.atomic_add(arrived_ptr + tile, 0, sem="acquire") < SPLITS - 1:
                pass
            # From the L2, in which the parts of other programs are. Up to SPLITS - 1, a constant, the compiler would
            # unroll the loop and read all parts at once, into so many registers that fewer programs fit.
            for one in range(split):
                acc += gl.load(part_ptr + one * part_size + part_place, cache_modifier=".cg")
            gl.store(arrived_ptr + tile, 0)  # for the next launch
    if split == SPLITS - 1:
        OUT: gl.constexpr = gl.BlockedLayout([4, 1], [32, 1], [1, WARPS], [0, 1])
        out_cols = col + gl.arange(0, TILE_N, gl.SliceLayout(1, OUT))
        out_rows = row + gl.arange(0, TILE_M, gl.SliceLayout(0, OUT))
        place = out_rows[None, :] * N + out_cols[:, None]
        inside = (out_rows < M)[None, :] & (out_cols < N)[:, None]
        gl.store(out_ptr + place, gl.convert_layout(acc.to(x.dtype), OUT), mask=inside)


SMALL_BYTES = 2048
"""Room for the barriers that say which tiles have arrived, and for scales on their way to other threads."""

STORED_BYTES = 32 * 1024
"""Most bytes of a piece of a tile that is stored at once."""


@dataclass(frozen=True)
class Plan:
    """How a product of 8-bit numbers is computed.

    Attributes:
        tile_m: rows of a tile of the result.
        tile_n: its columns.
        num_warps: warps of a program.
        num_stages: pairs of tiles on their way or in use.
        persistent: one program per multiprocessor, not per tile.
        tile_k: steps along k at once, which are bytes here.
    """

    tile_m: int
    tile_n: int
    num_warps: int
    num_stages: int
    persistent: bool = False
    tile_k: int = 128

    def tiles(self, m: int, n: int) -> int:
        """Tiles that cover an m x n matrix."""
        return triton.cdiv(m, self.tile_m) * triton.cdiv(n, self.tile_n)

    def parts(self, itemsize: int) -> int:
        """Pieces in which a tile of the result is stored."""
        return max(1, self.tile_m * self.tile_n * itemsize // STORED_BYTES)

    def shared_bytes(self, itemsize: int) -> int:
        """Most shared memory that it takes: its stages, the piece that is stored, and what is small."""
        stages = self.num_stages * (self.tile_m + self.tile_n) * self.tile_k
        return stages + self.tile_m * self.tile_n * itemsize // self.parts(itemsize) + SMALL_BYTES

    def __str__(self) -> str:
        return f"{self.tile_m}x{self.tile_n}x{self.tile_k} w{self.num_warps} s{self.num_stages}" + (
            " persistent" if self.persistent else ""
        )


@dataclass(frozen=True)
class Int4Plan:
    """How a product with weights of 4 bits is computed.

    Attributes:
        tile_m: rows of activations of a tile.
        tile_n: rows of weights.
        num_warps: warps of a program.
        num_stages: groups on their way or in use.
        splits: programs that share the groups of a tile.
        overlapped: by `overlapped_kernel`, not `int4_kernel`.
    """

    tile_m: int
    tile_n: int
    num_warps: int
    num_stages: int
    splits: int = 1
    overlapped: bool = False

    def tiles(self, m: int, n: int) -> int:
        """Tiles that cover an m x n matrix."""
        return triton.cdiv(m, self.tile_m) * triton.cdiv(n, self.tile_n)

    @property
    def shared_bytes(self) -> int:
        """Most shared memory that it takes: its stages, or the tile that is turned round before it is stored."""
        stages = self.num_stages * (self.tile_n * WORDS * 2 + self.tile_m * GROUP * 2)
        return max(stages, self.tile_m * self.tile_n * 5) + SMALL_BYTES

    def __str__(self) -> str:
        return f"{self.tile_m}x{self.tile_n} w{self.num_warps} s{self.num_stages} k/{self.splits}" + (
            " overlapped" if self.overlapped else ""
        )


LARGE = Plan(128, 256, 8, 4, persistent=True)
"""Too large for `precise`: two sums of its tile do not fit the registers."""

PRODUCT_PLANS = {
    LARGE: 1.0,
    Plan(128, 128, 8, 4, persistent=True): 0.9,
    Plan(128, 128, 4, 3): 0.85,
    Plan(64, 128, 4, 4): 0.7,
    Plan(64, 64, 4, 6): 0.5,
}
"""Plans for 8-bit inputs, and the speed of each relative to the first where all of the GPU is busy.

Estimates from the FLOPs per byte of each tile; `bench.py` prints the times of all plans.
"""

STEPS_BETWEEN_TILES = 512
"""Steps along k in whose time a tile can start and be stored, which nothing else hides; an estimate as well."""


def product_plan(m: int, n: int, k: int, device: Device, itemsize: int = 2, *, precise: bool = False) -> Plan:
    """The plan for a product of 8-bit numbers with the least estimated time, of those that fit the shared memory.

    A multiprocessor that computes t tiles needs about (t k + s) tile_m tile_n / speed, with s = `STEPS_BETWEEN_TILES`;
    the slowest has t = tiles / multiprocessors, rounded up.

    Raises:
        CannotMultiply: no plan fits.
    """

    def time(plan: Plan) -> float:
        turns = triton.cdiv(plan.tiles(m, n), device.multiprocessors or 1)
        return (turns * k + STEPS_BETWEEN_TILES) * plan.tile_m * plan.tile_n / PRODUCT_PLANS[plan]

    plans = [plan for plan in PRODUCT_PLANS if not (precise and plan == LARGE)]
    fitting = [plan for plan in plans if plan.shared_bytes(itemsize) <= device.shared_bytes]
    if not fitting:
        least = min(plan.shared_bytes(itemsize) for plan in PRODUCT_PLANS)
        raise CannotMultiply(
            f"{device.name} has {device.shared_bytes:,} bytes of shared memory per block, and the smallest tiles need "
            f"{least:,}: use the lab's int8_kernel"
        )
    return min(fitting, key=time)


LARGEST_MEMORY_BATCH = 32
"""Largest batch that `int4_kernel` computes; beyond it, `overlapped_kernel` is faster for all weights of `bench.py`."""

PROGRAMS_AT_ONCE = {16: 3, 32: 3, 64: 3, 128: 2, 256: 1}
"""Programs by tile_m that one multiprocessor runs at once, so that enough bytes are on their way."""

LEAST_GROUPS = {16: 4, 32: 4, 64: 8, 128: 16, 256: 32}
"""Fewest groups of a program by tile_m: with fewer, starting it and adding up its part take longer than its work."""

LARGE_INT4 = Int4Plan(256, 128, 8, 3, overlapped=True)
"""It makes half as many weights for the same result, and fills a multiprocessor alone."""

LEAST_BUSY = 0.8
"""Share of the multiprocessors that must be busy for `LARGE_INT4` to be faster than smaller tiles."""

LARGE_SPLITS = (1, 2)
"""Splits with which `LARGE_INT4` can be faster: adding up four parts of its large tiles takes longer than it saves."""


def most_splits(plan: Int4Plan, k: int) -> int:
    """Programs that can share a tile of a plan and have `LEAST_GROUPS` each."""
    return max(1, k // GROUP // LEAST_GROUPS[plan.tile_m])


def int4_plan(m: int, n: int, k: int, device: Device) -> Int4Plan:
    """The plan for weights of 4 bits: the smallest tile that holds the batch, and splits until the GPU is busy.

    Batches above 128 take tiles of 128 rows, or of 256 where these add no empty rows and, in one part or in two, nearly
    fill the GPU.
    """
    multiprocessors = device.multiprocessors or 1
    if m <= LARGEST_MEMORY_BATCH:
        plan = Int4Plan(max(16, triton.next_power_of_2(m)), 128, num_warps=4, num_stages=3)
    else:
        for splits in LARGE_SPLITS:
            programs = LARGE_INT4.tiles(m, n) * splits
            turns = triton.cdiv(programs, multiprocessors)
            nearly_full = programs >= LEAST_BUSY * turns * multiprocessors
            if -m % LARGE_INT4.tile_m < 128 and nearly_full and splits <= most_splits(LARGE_INT4, k):
                return replace(LARGE_INT4, splits=splits)
        plan = Int4Plan(64 if m <= 64 else 128, 64, num_warps=4, num_stages=3, overlapped=True)
    busy = multiprocessors * PROGRAMS_AT_ONCE[plan.tile_m]
    return replace(plan, splits=max(1, min(busy // plan.tiles(m, n), most_splits(plan, k))))


SUMS_OF_A_WARP = 4096
"""Most sums that a warp holds: half of its registers."""


def int4_candidates(m: int, n: int, k: int, device: Device) -> list[Int4Plan]:
    """The plans that may suit a shape; `bench.py` measures them all."""
    chosen = int4_plan(m, n, k, device)
    found = {chosen: None}
    for tile_n, warps in ((64, 4), (128, 4), (128, 8), (256, 8)):
        for splits in (1, 2, 3, 4, 6, 8):
            for stages in (3, 4, 6):
                plan = replace(chosen, tile_n=tile_n, num_warps=warps, num_stages=stages, splits=splits)
                programs = plan.tiles(m, n) * splits
                if (
                    programs <= 6 * device.multiprocessors
                    and plan.shared_bytes <= device.shared_bytes
                    and plan.tile_m * plan.tile_n <= SUMS_OF_A_WARP * warps
                ):
                    found[plan] = None
    return [plan for plan in found if plan.splits <= most_splits(plan, k)]


def check_device(device: Device) -> None:
    """Refuse a device that cannot compute these products.

    Raises:
        CannotMultiply: with the device, and what to do.
    """
    if device.kind != "gpu":
        raise CannotMultiply(
            "no CUDA GPU found here, and these kernels are for one: use the lab's kernels, interpreted"
        )
    if (device.capability or (0, 0)) < NEEDS:
        raise CannotMultiply(
            f"{device.name} has no TMA, as GPUs from compute capability {NEEDS[0]}.{NEEDS[1]} on have: "
            "use the lab's int8_kernel and int4_kernel"
        )


def check_sizes(sizes: dict[str, int], product: str) -> None:
    """Refuse sides that are 0 and results that are too large for 32-bit offsets.

    Raises:
        CannotMultiply: with the sizes, and what to do.
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    if min(m, n, k) < 1:
        raise CannotMultiply(f"{product} with m = {m}, n = {n}, k = {k}: every side must be 1 or more")
    largest = max(m * n, m * k, n * k)
    if largest >= MOST_ELEMENTS:
        raise CannotMultiply(f"a matrix of {largest:,} elements: divide it into parts below {MOST_ELEMENTS:,}")


def check_rows(name: str, matrix: torch.Tensor) -> None:
    """Refuse a matrix that a descriptor cannot take.

    Raises:
        CannotMultiply: with what to give.
    """
    row_bytes = matrix.shape[1] * matrix.element_size()
    if not matrix.is_contiguous() or row_bytes % ALIGNMENT_BYTES or matrix.data_ptr() % ALIGNMENT_BYTES:
        step = ALIGNMENT_BYTES // matrix.element_size()
        raise CannotMultiply(
            f"{name} of shape {tuple(matrix.shape)} has strides {matrix.stride()}: give a contiguous matrix whose rows "
            f"start at multiples of {ALIGNMENT_BYTES} bytes; pad the columns to a multiple of {step}"
        )


def check_product(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor,
    a_scale: torch.Tensor | None,
    b_scale: torch.Tensor | None,
) -> None:
    """Refuse what `product_kernel` does not take, before anything is launched.

    Raises:
        CannotMultiply: with the value, and what to do.
    """
    if a.dtype not in EIGHT_BITS or a.dtype != b.dtype:
        raise CannotMultiply(f"a is {a.dtype}, b is {b.dtype}: give both as float8_e4m3fn or both as int8")
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[1] or out.shape != (a.shape[0], b.shape[0]):
        raise CannotMultiply(
            f"shapes {tuple(a.shape)} and {tuple(b.shape)} into {tuple(out.shape)}: give (m, k) and (n, k) into (m, n)"
        )
    check_sizes({"m": a.shape[0], "n": b.shape[0], "k": a.shape[1]}, "a product")
    if (a_scale is None) != (b_scale is None):
        raise CannotMultiply("one scale is missing: give the scales of both matrices, or of none")
    unscaled = torch.int32 if a.dtype == torch.int8 else torch.float32
    taken = (unscaled,) if a_scale is None else (*SIXTEEN_BITS, torch.float32)
    if out.dtype not in taken:
        raise CannotMultiply(
            f"out is {out.dtype}: the {'unscaled' if a_scale is None else 'scaled'} product of {a.dtype} needs "
            f"{' or '.join(str(one).removeprefix('torch.') for one in taken)}"
        )
    for name, scale, rows in (("a_scale", a_scale, a.shape[0]), ("b_scale", b_scale, b.shape[0])):
        if scale is not None and (scale.dtype != torch.float32 or scale.shape != (rows,) or not scale.is_contiguous()):
            raise CannotMultiply(
                f"{name} is {scale.dtype} of shape {tuple(scale.shape)}: give {rows} neighboring float32 numbers, one "
                "per row"
            )
    for name, tensor in (("a", a), ("b", b), ("out", out), ("a_scale", a_scale), ("b_scale", b_scale)):
        if tensor is not None and tensor.device != a.device:
            raise CannotMultiply(f"{name} is on {tensor.device}, a on {a.device}: put all on one GPU")
        if tensor is not None and tensor.dim() == 2:
            check_rows(name, tensor)


def scaled_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor,
    a_scale: torch.Tensor | None = None,
    b_scale: torch.Tensor | None = None,
    *,
    precise: bool = False,
    plan: Plan | None = None,
) -> torch.Tensor:
    """Write the product of `a` and `b` transposed into `out` and return it, each row and column times its scale.

    Args:
        a: (m, k), float8_e4m3fn or int8.
        b: (n, k), of the same dtype.
        out: (m, n), float32 or 16 bits; without scales, int32 for int8 and float32 for fp8.
        a_scale: (m,), float32, or none.
        b_scale: (n,), float32, or none.
        precise: sums of fp8 products in float32; sums of int8 products are exact in any case.
        plan: how; by default the rule chooses.

    Raises:
        CannotMultiply: shapes, dtypes, layouts or a device that the kernel does not take.
    """
    multiply(a, b, out, a_scale, b_scale, precise, plan)
    return out


@remembered
def multiply(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor,
    a_scale: torch.Tensor | None,
    b_scale: torch.Tensor | None,
    precise: bool,
    plan: Plan | None,
) -> None:
    """Do what `scaled_matmul` does, after a check that the kernel can take all of it."""
    check_product(a, b, out, a_scale, b_scale)
    device = detect_device()
    check_device(device)
    chosen = plan or product_plan(a.shape[0], b.shape[0], a.shape[1], device, out.element_size(), precise=precise)
    launch_product(a, b, out, a_scale, b_scale, precise, chosen, device)


def launch_product(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor,
    a_scale: torch.Tensor | None,
    b_scale: torch.Tensor | None,
    precise: bool,
    plan: Plan,
    device: Device,
) -> None:
    """Launch `product_kernel` with a plan."""
    (m, k), n = a.shape, b.shape[0]
    parts = plan.parts(out.element_size())
    tiles = plan.tiles(m, n)
    programs = min(tiles, device.multiprocessors or 1) if plan.persistent else tiles
    product_kernel[(programs,)](
        TensorDescriptor.from_tensor(a, [plan.tile_m, plan.tile_k]),
        TensorDescriptor.from_tensor(b, [plan.tile_n, plan.tile_k]),
        TensorDescriptor.from_tensor(out, [plan.tile_m, plan.tile_n // parts]),
        out if a_scale is None else a_scale,  # an address at least
        out if b_scale is None else b_scale,
        m, n, k,
        TILE_M=plan.tile_m, TILE_N=plan.tile_n, TILE_K=plan.tile_k, GROUP_M=GROUP_M, PARTS=parts,
        SCALED=a_scale is not None, PRECISE=precise, INTEGER=a.dtype == torch.int8, PERSISTENT=plan.persistent,
        num_warps=plan.num_warps, num_stages=plan.num_stages,
    )  # fmt: skip


@dataclass(frozen=True)
class Int4Weights:
    """A matrix of weights of 4 bits as the kernels read it.

    Attributes:
        words: (k / GROUP, n, WORDS), int16; word j of a group holds weights j, j + 32, j + 64 and j + 96, from the
            lowest bits up, each plus 8.
        scales: (k / GROUP, n), 16 bits.
    """

    words: torch.Tensor
    scales: torch.Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.words.shape[1], self.words.shape[0] * GROUP

    @property
    def nbytes(self) -> int:
        """Bytes of words and scales."""
        return self.words.nbytes + self.scales.nbytes

    def whole(self) -> torch.Tensor:
        """The weights as numbers of 16 bits, (n, k)."""
        shifts = torch.tensor([0, 4, 8, 12], dtype=torch.int32, device=self.words.device)
        nibbles = (self.words.int()[:, :, None, :] >> shifts[:, None]) & 15
        numbers = (nibbles.flatten(2) - 8) * self.scales.float()[:, :, None]
        n, k = self.shape
        return numbers.permute(1, 0, 2).reshape(n, k).to(self.scales.dtype)


def pack_int4(w: torch.Tensor) -> Int4Weights:
    """Round weights to 4 bits, with a scale for every GROUP neighbors, and pack them.

    The scale maps the number of the largest magnitude in its group to -8, the only code without an opposite.

    Args:
        w: (n, k), float16 or bfloat16.

    Raises:
        CannotMultiply: another dtype, or columns that groups do not divide.
    """
    if w.dim() != 2 or w.dtype not in SIXTEEN_BITS:
        raise CannotMultiply(f"weights are {w.dtype} of shape {tuple(w.shape)}: give (n, k) in float16 or bfloat16")
    n, k = w.shape
    if k % GROUP or not k:
        raise CannotMultiply(f"k is {k}: give a multiple of {GROUP}, the weights that share a scale")
    groups = w.float().view(n, k // GROUP, GROUP).permute(1, 0, 2)
    largest = groups.gather(2, groups.abs().argmax(2, keepdim=True))
    scales = (largest / -8).to(w.dtype)
    steps = torch.where(scales == 0, 1.0, scales.float())
    nibbles = ((groups / steps).round_().clamp_(-8, 7) + 8).int().view(k // GROUP, n, WORD_WEIGHTS, WORDS)
    words = sum(nibbles[:, :, place] << (4 * place) for place in range(WORD_WEIGHTS))
    assert isinstance(words, torch.Tensor)
    return Int4Weights(words.to(torch.int16).contiguous(), scales[:, :, 0].contiguous())


def check_int4(x: torch.Tensor, weights: Int4Weights, out: torch.Tensor) -> None:
    """Refuse what the kernels for int4 weights do not take, before anything is launched.

    Raises:
        CannotMultiply: with the value, and what to do.
    """
    if x.dtype not in SIXTEEN_BITS:
        raise CannotMultiply(f"x is {x.dtype}: give float16 or bfloat16")
    n, k = weights.shape
    if x.dim() != 2 or x.shape[1] != k or out.shape != (x.shape[0], n):
        raise CannotMultiply(
            f"x of shape {tuple(x.shape)} and weights of {(n, k)} into {tuple(out.shape)}: give (m, {k}) into (m, {n})"
        )
    check_sizes({"m": x.shape[0], "n": n, "k": k}, "a product")
    for name, tensor, dtype in (
        ("out", out, x.dtype),
        ("words", weights.words, torch.int16),
        ("scales", weights.scales, x.dtype),
    ):
        if tensor.dtype != dtype or tensor.device != x.device:
            raise CannotMultiply(
                f"{name} is {tensor.dtype} on {tensor.device}, x is {x.dtype} on {x.device}: give {dtype} on one GPU"
            )
        if not tensor.is_contiguous():
            raise CannotMultiply(f"{name} has strides {tensor.stride()}: give it contiguous")
    check_rows("x", x)


def int4_matmul(
    x: torch.Tensor, weights: Int4Weights, out: torch.Tensor | None = None, plan: Int4Plan | None = None
) -> torch.Tensor:
    """Return the product of x and the weights transposed; the sum is kept in float32.

    Args:
        x: (m, k), float16 or bfloat16.
        weights: (n, k), of `pack_int4`; their scales have the dtype of x.
        out: (m, n) for the result, of the dtype of x.
        plan: how; by default the rule chooses.

    Raises:
        CannotMultiply: shapes, dtypes, layouts or a device that the kernel does not take.
    """
    if out is None:
        out = torch.empty(x.shape[0], weights.shape[0], dtype=x.dtype, device=x.device)
    multiply_int4(x, weights, out, plan)
    return out


@remembered
def multiply_int4(x: torch.Tensor, weights: Int4Weights, out: torch.Tensor, plan: Int4Plan | None) -> None:
    """Write the product of `int4_matmul` into `out`, after a check that the kernel can take all of it."""
    check_int4(x, weights, out)
    device = detect_device()
    check_device(device)
    launch_int4(x, weights, out, plan or int4_plan(x.shape[0], *weights.shape, device))


@cache
def workspace(device: torch.device, parts: int, tiles: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Room for sums of splits, and a counter per tile that is 0 between launches; for launches one after another."""
    return (
        torch.empty(parts, dtype=torch.float32, device=device),
        torch.zeros(tiles, dtype=torch.int32, device=device),
    )


def shared_layouts() -> tuple[Any, Any]:
    """How half a group of activations and a group of words lie in shared memory: in rows of 128 and of 64 bytes."""
    return gl.NVMMASharedLayout(128, 16, 2), gl.NVMMASharedLayout(64, 16, 2)


def launch_int4(x: torch.Tensor, weights: Int4Weights, out: torch.Tensor, plan: Int4Plan) -> None:
    """Launch `overlapped_kernel` or `int4_kernel` with a plan."""
    (m, k), n = x.shape, weights.shape[0]
    tiles = plan.tiles(m, n)
    x_block, w_block = [plan.tile_m, GROUP // 2], [plan.tile_n, WORDS]
    words = weights.words.view(-1, WORDS)
    sums = tiles * plan.tile_m * plan.tile_n
    parts, arrived = workspace(x.device, plan.splits * sums if plan.splits > 1 else 1, tiles)
    if plan.overlapped:
        x_shared, w_shared = shared_layouts()
        overlapped_kernel[(tiles, plan.splits)](
            GluonDescriptor.from_tensor(x, x_block, x_shared), GluonDescriptor.from_tensor(words, w_block, w_shared),
            weights.scales, out, parts, arrived, m, n, k,
            SPLITS=plan.splits, STAGES=plan.num_stages, HALF=x.dtype == torch.float16, num_warps=plan.num_warps,
        )  # fmt: skip
    else:
        int4_kernel[(tiles, plan.splits)](
            TensorDescriptor.from_tensor(x, x_block), TensorDescriptor.from_tensor(words, w_block),
            weights.scales, out, parts, arrived, m, n, k,
            TILE_M=plan.tile_m, TILE_N=plan.tile_n, SPLITS=plan.splits, GROUP=GROUP, HALF=x.dtype == torch.float16,
            PAIRS=x.is_cuda, num_warps=plan.num_warps, num_stages=plan.num_stages,
        )  # fmt: skip
