"""The forward pass once more, with warps that have tasks of their own: one fetches, two groups compute.

Plain Triton leaves it to the compiler when a copy starts, when a product is waited for, and which warp does what. This
kernel is in Gluon, the language below Triton's own, and says all of it (Shah et al., FlashAttention-3, 2024):

- One warp is the *producer*. It has the TMA bring blocks of K and V into a ring of slots, as soon as a
  slot is empty, and needs hardly any registers. The others give it none of their time.
- Two groups of four warps are the *consumers*, each with 64 of a program's 128 queries. A Hopper product (`wgmma`) is
  issued by such a group and runs beside it. The groups do not wait for each other, so one computes exponentials while
  the other's products have the tensor cores.
- Within a group, the product of the next block's scores is issued before the softmax of this block is begun, and the
  product with V beside it, so the tensor cores have work meanwhile.
- Barriers in shared memory (`mbarrier`) say which slots are full and which are empty. Waiting for phase 1 of a fresh
  barrier ends at once, which is how the first fetches go ahead.
- Programs are persistent: each takes one block of queries after the other, those with most keys first. Results have
  tiles of their own, so the producer runs ahead into the next block of queries while the consumers finish this one, and
  nobody waits until a result is stored.

No interpreter runs Gluon: the tests compile this kernel, and `mlsys bench` compares its results on a GPU before it
times them.

Tensors are contiguous, (heads, tokens, numbers), in 16 bits; a head has 64 or 128 numbers. `attention` refuses all
else.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import math
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from mlsys.errors import UserError
from mlsys.measure.device import Device, detect_device
from mlsys.runtime.launches import remembered

NEEDS = (9, 0)
"""Compute capability whose `wgmma` products the kernel issues; later GPUs have others."""

DTYPES = (torch.float16, torch.bfloat16)
HEAD_SIZES = (64, 128)
GROUPS = gl.constexpr(2)
ROWS = gl.constexpr(64)
"""Queries of a group of warps: the rows of one `wgmma`."""

BLOCK_Q = 128
BARRIER_BYTES = 512
REGISTERS = (240, 24)
"""Registers of a thread of the second consumer and of the producer; the first consumer gets what is left, 240."""

LOG2_E = math.log2(math.e)


class CannotAttend(UserError, ValueError):
    """Tensors that the kernel does not take, or a device that cannot compute it."""


wait_for_all_threads = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier
"""Its name has changed with Triton 3.7."""


@triton.jit
def place_of(number, blocks, heads, section, CAUSAL: tl.constexpr):
    """Return block and head of a tile: all heads of a section take turns, the last blocks first if causal."""
    if CAUSAL:
        per_section = section * blocks
        first = number // per_section * section
        here = min(heads - first, section)
        within = number % per_section
        return blocks - 1 - within // here, first + within % here
    return number % blocks, number // blocks


@triton.jit
def keys_of(block, M, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr):
    """Return how many blocks of keys a block of queries needs."""
    if CAUSAL:
        return tl.cdiv(min((block + 1) * BLOCK_Q, M), BLOCK_K)
    return tl.cdiv(M, BLOCK_K)


@gluon.jit
def bring(source, head, row, arrived, target):
    """Have the TMA bring a block; `arrived` says when it is there."""
    mbarrier.expect(arrived, source.block_type.nbytes)
    tma.async_copy_global_to_shared(source, [head, row, 0], arrived, target)


@gluon.jit
def produce(
    q, k, v, q_tiles, k_tiles, v_tiles, q_full, q_empty, k_full, k_empty, v_full, v_empty,
    M, heads, group, blocks, tiles, section,
    BLOCK_K: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    """Fetch queries, keys and values of all tiles of this program, each into a slot that is empty."""
    count, turn = 0, 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        block, head = place_of(tile, blocks, heads, section, CAUSAL)
        for one in gl.static_range(GROUPS):
            mbarrier.wait(q_empty.index(one), (turn & 1) ^ 1)
            bring(q, head, (block * GROUPS + one) * ROWS, q_full.index(one), q_tiles.index(one))
        for number in range(keys_of(block, M, GROUPS * ROWS, BLOCK_K, CAUSAL)):
            slot = count % STAGES
            phase = (count // STAGES & 1) ^ 1
            mbarrier.wait(k_empty.index(slot), phase)
            bring(k, head // group, number * BLOCK_K, k_full.index(slot), k_tiles.index(slot))
            mbarrier.wait(v_empty.index(slot), phase)
            bring(v, head // group, number * BLOCK_K, v_full.index(slot), v_tiles.index(slot))
            count += 1
        turn += 1  # noqa: SIM113  (a kernel has no enumerate)


@gluon.jit
def release(empty):
    """Say that this group of warps has read a slot to the end: all of its threads, not only the one that says so."""
    wait_for_all_threads()
    mbarrier.arrive(empty, count=1)


@gluon.jit
def begin_scores(q_tile, k_tile, SCORES: gl.constexpr, BLOCK_K: gl.constexpr):
    """Issue the product of queries and keys, and go on without it."""
    zeros = gl.zeros([ROWS, BLOCK_K], gl.float32, SCORES)
    return warpgroup_mma(q_tile, k_tile.permute((1, 0)), zeros, use_acc=False, is_async=True)


@gluon.jit
def visible_scores(scores, rows, start, M, SCORES: gl.constexpr, BLOCK_K: gl.constexpr, CAUSAL: gl.constexpr):
    """Return scores with minus infinity where a query may not see a key."""
    cols = start + gl.arange(0, BLOCK_K, gl.SliceLayout(0, SCORES))
    scores = gl.where((cols < M)[None, :], scores, -float("inf"))
    if CAUSAL:
        scores = gl.where(cols[None, :] <= rows[:, None], scores, -float("inf"))
    return scores


@gluon.jit
def absorb(scores, top, total, factor):
    """Return shares, maximum, sum, and the factor by which what was before shrinks."""
    new = gl.maximum(top, gl.max(scores, 1) * factor)
    shrink = gl.exp2(top - new)
    shares = gl.exp2(scores * factor - new[:, None])
    return shares, new, total * shrink + gl.sum(shares, 1), shrink


@gluon.jit
def consume_block(
    acc, shares, top, total, q_tile, k_tiles, v_tiles, k_full, k_empty, v_full, v_empty, count, number, rows, M, factor,
    SCORES: gl.constexpr, OUT: gl.constexpr, SHARES: gl.constexpr,
    BLOCK_K: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Begin the scores of block `number`, add the shares of the one before it, and return new shares and state."""
    slot, before = (count + number) % STAGES, (count + number - 1) % STAGES
    phase, phase_before = (count + number) // STAGES & 1, (count + number - 1) // STAGES & 1
    mbarrier.wait(k_full.index(slot), phase)
    scores = begin_scores(q_tile, k_tiles.index(slot).reshape([BLOCK_K, q_tile.shape[1]]), SCORES, BLOCK_K)
    mbarrier.wait(v_full.index(before), phase_before)
    values = v_tiles.index(before).reshape([BLOCK_K, q_tile.shape[1]])
    acc = warpgroup_mma(shares, values, acc, is_async=True)
    scores = warpgroup_mma_wait(num_outstanding=1, deps=[scores])
    release(k_empty.index(slot))
    if MASKED:
        scores = visible_scores(scores, rows, number * BLOCK_K, M, SCORES, BLOCK_K, CAUSAL)
    new_shares, top, total, shrink = absorb(scores, top, total, factor)
    acc, shares = warpgroup_mma_wait(num_outstanding=0, deps=[acc, shares])
    release(v_empty.index(before))
    acc = acc * gl.expand_dims(gl.convert_layout(shrink, gl.SliceLayout(1, OUT)), 1)
    return acc, gl.convert_layout(new_shares.to(shares.dtype), SHARES), top, total


@gluon.jit
def consume(
    q, out, logsum_ptr, q_tiles, out_tiles, k_tiles, v_tiles, q_full, q_empty, k_full, k_empty, v_full, v_empty,
    N, M, heads, blocks, tiles, section, factor,
    SCORES: gl.constexpr, OUT: gl.constexpr, SHARES: gl.constexpr,
    BLOCK_K: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr, ONE: gl.constexpr,
):  # fmt: skip
    """Compute the queries of consumer `ONE` in all tiles of this program."""
    D: gl.constexpr = q.block_type.shape[2]
    count, turn = 0, 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        block, head = place_of(tile, blocks, heads, section, CAUSAL)
        first = (block * GROUPS + ONE) * ROWS
        rows = first + gl.arange(0, ROWS, gl.SliceLayout(1, SCORES))
        needed = keys_of(block, M, GROUPS * ROWS, BLOCK_K, CAUSAL)
        free = M // BLOCK_K  # blocks that need no mask
        if CAUSAL:
            free = min(first + 1, M) // BLOCK_K
        q_tile = q_tiles.index(ONE).reshape([ROWS, D])
        mbarrier.wait(q_full.index(ONE), turn & 1)
        slot = count % STAGES
        mbarrier.wait(k_full.index(slot), count // STAGES & 1)
        scores = begin_scores(q_tile, k_tiles.index(slot).reshape([BLOCK_K, D]), SCORES, BLOCK_K)
        scores = warpgroup_mma_wait(num_outstanding=0, deps=[scores])
        release(k_empty.index(slot))
        scores = visible_scores(scores, rows, 0, M, SCORES, BLOCK_K, CAUSAL)
        top = gl.full([ROWS], -float("inf"), gl.float32, gl.SliceLayout(1, SCORES))
        total = gl.zeros([ROWS], gl.float32, gl.SliceLayout(1, SCORES))
        acc = gl.zeros([ROWS, D], gl.float32, OUT)
        wide, top, total, _ = absorb(scores, top, total, factor)
        shares = gl.convert_layout(wide.to(q.dtype), SHARES)
        whole = max(min(free, needed), 1)
        for number in range(1, whole):
            acc, shares, top, total = consume_block(
                acc, shares, top, total, q_tile, k_tiles, v_tiles, k_full, k_empty, v_full, v_empty, count, number,
                rows, M, factor, SCORES, OUT, SHARES, BLOCK_K, STAGES, CAUSAL, False,
            )  # fmt: skip
        for number in range(whole, needed):
            acc, shares, top, total = consume_block(
                acc, shares, top, total, q_tile, k_tiles, v_tiles, k_full, k_empty, v_full, v_empty, count, number,
                rows, M, factor, SCORES, OUT, SHARES, BLOCK_K, STAGES, CAUSAL, True,
            )  # fmt: skip
        release(q_empty.index(ONE))
        count += needed
        last = (count - 1) % STAGES
        mbarrier.wait(v_full.index(last), (count - 1) // STAGES & 1)
        acc = warpgroup_mma(shares, v_tiles.index(last).reshape([BLOCK_K, D]), acc, is_async=True)
        acc, shares = warpgroup_mma_wait(num_outstanding=0, deps=[acc, shares])
        release(v_empty.index(last))

        sums = gl.convert_layout(total, gl.SliceLayout(1, OUT))
        tma.store_wait(0)  # until the result before is out of its tile
        wait_for_all_threads()
        out_tiles.index(ONE).reshape([ROWS, D]).store((acc / gl.expand_dims(sums, 1)).to(q.dtype))
        fence_async_shared()
        wait_for_all_threads()
        tma.async_copy_shared_to_global(out, [head, first, 0], out_tiles.index(ONE))
        gl.store(logsum_ptr + head.to(gl.int64) * N + rows, top + gl.log2(total), mask=rows < N)
        turn += 1  # noqa: SIM113  (a kernel has no enumerate)
    tma.store_wait(0)


@gluon.jit
def specialized_kernel(
    q, k, v, out, logsum_ptr, N, M, heads, group, blocks, tiles, section, factor,
    SCORES: gl.constexpr, OUT: gl.constexpr, SHARES: gl.constexpr,
    BLOCK_K: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr, REGISTERS: gl.constexpr,
):  # fmt: skip
    """Compute attention; q, k, v and out are descriptors of (heads, tokens, numbers) with blocks of one head."""
    D: gl.constexpr = q.block_type.shape[2]
    q_tiles = gl.allocate_shared_memory(q.dtype, [GROUPS, 1, ROWS, D], q.layout)
    k_tiles = gl.allocate_shared_memory(q.dtype, [STAGES, 1, BLOCK_K, D], k.layout)
    v_tiles = gl.allocate_shared_memory(q.dtype, [STAGES, 1, BLOCK_K, D], v.layout)
    out_tiles = gl.allocate_shared_memory(q.dtype, [GROUPS, 1, ROWS, D], q.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for one in gl.static_range(GROUPS):
        mbarrier.init(q_full.index(one), count=1)
        mbarrier.init(q_empty.index(one), count=1)
    for slot in gl.static_range(STAGES):
        mbarrier.init(k_full.index(slot), count=1)
        mbarrier.init(k_empty.index(slot), count=GROUPS)
        mbarrier.init(v_full.index(slot), count=1)
        mbarrier.init(v_empty.index(slot), count=GROUPS)
    fence_async_shared()
    wait_for_all_threads()
    gl.warp_specialize(
        [
            (consume, (
                q, out, logsum_ptr, q_tiles, out_tiles, k_tiles, v_tiles,
                q_full, q_empty, k_full, k_empty, v_full, v_empty,
                N, M, heads, blocks, tiles, section, factor, SCORES, OUT, SHARES, BLOCK_K, STAGES, CAUSAL, 0,
            )),
            (consume, (
                q, out, logsum_ptr, q_tiles, out_tiles, k_tiles, v_tiles,
                q_full, q_empty, k_full, k_empty, v_full, v_empty,
                N, M, heads, blocks, tiles, section, factor, SCORES, OUT, SHARES, BLOCK_K, STAGES, CAUSAL, 1,
            )),
            (produce, (
                q, k, v, q_tiles, k_tiles, v_tiles, q_full, q_empty, k_full, k_empty, v_full, v_empty,
                M, heads, group, blocks, tiles, section, BLOCK_K, STAGES, CAUSAL,
            )),
        ],
        [4, 1],
        REGISTERS,
    )  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """How it is computed.

    Attributes:
        block_k: keys of a block.
        num_stages: slots of the ring, for K and for V each.
    """

    block_k: int
    num_stages: int

    def __str__(self) -> str:
        return f"{BLOCK_Q}x{self.block_k} s{self.num_stages}"

    def shared_bytes(self, d: int) -> int:
        """Return the most shared memory that it takes: queries, results, the ring, and barriers."""
        return 2 * d * (2 * BLOCK_Q + 2 * self.num_stages * self.block_k) + BARRIER_BYTES


PLANS = {64: Plan(128, 3), 128: Plan(128, 2)}
"""The plan for a head size."""


def layouts(plan: Plan, d: int) -> dict[str, Any]:
    """Return which thread of a group holds what: of scores, output, and shares as the left operand of a product."""
    scores = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, plan.block_k, 16])
    out = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, d, 16])
    return {"SCORES": scores, "OUT": out, "SHARES": gl.DotOperandLayout(operand_index=0, parent=out, k_width=2)}


def shared_layout(rank: int = 3) -> gl.NVMMASharedLayout:
    """Return how a block lies in shared memory: swizzled, as the TMA writes and a product reads it."""
    return gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=rank)


def runs_on(device: Device) -> bool:
    """Return whether the device has these products, and this Triton the call that gives warps their tasks."""
    hopper = device.kind == "gpu" and (device.capability or (0, 0))[0] == NEEDS[0]
    return hopper and "functions_and_args" in signature(gl.warp_specialize).parameters


def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, device: Device) -> None:
    """Refuse what the kernel cannot take, before anything is launched.

    Raises:
        CannotAttend: with the value, and what to do.
    """
    if device.kind != "gpu" or (device.capability or (0, 0))[0] != NEEDS[0]:
        raise CannotAttend(
            f"{device.name} is no Hopper GPU (compute capability {NEEDS[0]}.{NEEDS[1]}), whose products this kernel "
            "issues: use fast.attention"
        )
    if not runs_on(device):
        raise CannotAttend(
            f"Triton {triton.__version__} starts warps with tasks in another way than this kernel: install 3.6 or "
            "later, or use fast.attention"
        )
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dim() != 3 or 0 in tensor.shape or not tensor.is_contiguous():
            raise CannotAttend(
                f"{name} has shape {tuple(tensor.shape)} and strides {tensor.stride()}: give contiguous tensors "
                "(heads, tokens, numbers), each side 1 or more"
            )
        if tensor.dtype not in DTYPES or tensor.dtype != q.dtype or tensor.device != q.device:
            raise CannotAttend(
                f"{name} is {tensor.dtype} on {tensor.device}, q is {q.dtype} on {q.device}: give all alike, as "
                "float16 or bfloat16"
            )
    heads, _, d = q.shape
    if d not in HEAD_SIZES:
        raise CannotAttend(f"a head has {d} numbers: give 64 or 128, or use fast.attention")
    if v.shape != k.shape or k.shape[2] != d or heads % k.shape[0]:
        raise CannotAttend(
            f"k has shape {tuple(k.shape)} and v {tuple(v.shape)}: give both as (heads of keys, tokens, {d}), where "
            f"the heads of keys divide {heads}"
        )


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return softmax(q k^T / sqrt(d)) v, and for each query the base-2 logarithm of its sum.

    Args:
        q: (heads, n, d), float16 or bfloat16, contiguous; d is 64 or 128.
        k: (heads of keys, m, d), likewise.
        v: as k.
        causal: whether query i sees only the keys 0 to i.

    Raises:
        CannotAttend: a shape, a stride, a dtype or a device that the kernel does not take.
    """
    out, logsum = torch.empty_like(q), torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    attend(q, k, v, out, logsum, causal)
    return out, logsum


@remembered
def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, logsum: torch.Tensor, causal: bool
) -> None:
    """Write what `attention` returns into `out` and `logsum`, after a check that the kernel can take all of it."""
    device = detect_device()
    check(q, k, v, device)
    each = 2 * 2 * k.numel() / q.shape[0]  # bytes of keys and values for each head of queries
    section = max(1, min(q.shape[0], int(device.cache_bytes / 2 / each)))
    launch(q, k, v, out, logsum, PLANS[q.shape[2]], causal, section, device.multiprocessors)


def launch(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    logsum: torch.Tensor,
    plan: Plan,
    causal: bool,
    section: int,
    programs: int,
) -> None:
    """Launch as many programs as there are multiprocessors, or tiles if they are fewer."""
    (heads, n, d), m = q.shape, k.shape[1]
    blocks = triton.cdiv(n, BLOCK_Q)
    sides = ((q, ROWS.value), (k, plan.block_k), (v, plan.block_k), (out, ROWS.value))
    described = [TensorDescriptor.from_tensor(tensor, [1, side, d], shared_layout()) for tensor, side in sides]
    specialized_kernel[(min(programs, blocks * heads),)](
        *described, logsum, n, m, heads, heads // k.shape[0], blocks, blocks * heads, section, d**-0.5 * LOG2_E,
        **layouts(plan, d), BLOCK_K=plan.block_k, STAGES=plan.num_stages, CAUSAL=causal, REGISTERS=REGISTERS,
        num_warps=4,
    )  # fmt: skip
