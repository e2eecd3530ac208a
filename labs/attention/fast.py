"""Where the lab's race leads: the course's fastest attention in plain Triton, forward and backward, in 16 bits.

softmax(scale Q K^T) V for every head, with or without a causal mask, for any length, and with heads of K and V that
several heads of Q share. No score is ever stored (Dao et al., FlashAttention, 2022; Dao, FlashAttention-2, 2023).

- All blocks come through tensor descriptors: the TMA of Hopper GPUs fetches a block in one instruction
  and fills what is past the last token, or past a head size that is no power of two, with zeros. So loads need no
  masks, and a tensor may have any strides along batch, heads and tokens. Older GPUs have no such engine: `attention`
  refuses them.
- exp2 is what the hardware computes. The scale and log2(e) are one factor, and the compiler makes one multiply-add of
  it and the maximum that is subtracted.
- Blocks of keys that every query of a program sees have a loop of their own, without a mask. Only the diagonal and the
  ragged end are masked, and what is above the diagonal is neither read nor multiplied.
- Under a causal mask the programs with most keys begin, so that none of them is left at the end alone. Heads take turns
  only within a section whose keys and values fit the L2 together.
- The backward pass keeps one number per query from the forward pass, the logarithm of its sum, and computes the shares
  once more. Keys and values are at rest, and the sums of their gradients stay in registers. What a block of queries
  gets from these keys is added to dQ in memory, by the TMA, in float32. Programs come to a block in any order, so the
  last digits of dQ differ from run to run, as they do in FlashAttention-2.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from mlsys.errors import UserError
from mlsys.measure.device import Device, detect_device
from mlsys.runtime.launches import remembered

NEEDS = (9, 0)
"""Compute capability from which GPUs have a TMA."""

DTYPES = (torch.float16, torch.bfloat16)

LARGEST_HEAD = 128
"""Largest head size, in numbers: sums of more do not fit the registers beside the scores."""

HEAD_STEP = 8
"""Head sizes are multiples of this many numbers: a descriptor's rows start at multiples of 16 bytes."""

LOG2_E = math.log2(math.e)

SECTION_SHARE = 0.5
"""Share of the L2 that keys and values of a section may take; the rest is for queries and results."""


class CannotAttend(UserError, ValueError):
    """Tensors that the attention does not take, or a device that cannot compute it."""


@triton.jit
def place_of(number, blocks, heads, section, CAUSAL: tl.constexpr):
    """Return block and head of a program: all heads of a section take turns, the last blocks first if causal."""
    if CAUSAL:
        per_section = section * blocks
        first = number // per_section * section
        here = min(heads - first, section)
        within = number % per_section
        return blocks - 1 - within // here, first + within % here
    return number % blocks, number // blocks


@triton.jit
def absorb_blocks(
    top, total, acc, queries, k, v, batch, shared, begin, end, first, M, factor,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Return maximum, sum and output after the keys from `begin` to `end`."""
    i = first + tl.arange(0, BLOCK_Q)
    for start in range(begin, end, BLOCK_K):
        keys = k.load([batch, shared, start, 0]).reshape(BLOCK_K, D)
        scores = tl.dot(queries, keys.T)
        if MASKED:
            j = start + tl.arange(0, BLOCK_K)
            visible = (j < M)[None, :]
            if CAUSAL:
                visible = visible & (j[None, :] <= i[:, None])
            scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(top, tl.max(scores, 1) * factor)
        shrink = tl.exp2(top - new)
        shares = tl.exp2(scores * factor - new[:, None])
        total = total * shrink + tl.sum(shares, 1)
        values = v.load([batch, shared, start, 0]).reshape(BLOCK_K, D)
        acc = tl.dot(shares.to(values.dtype), values, acc * shrink[:, None])
        top = new
    return top, total, acc


@triton.jit
def forward_kernel(
    q, k, v, out, logsum_ptr, N, M, heads, all_heads, blocks, section, factor,
    D: tl.constexpr, GROUP: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK_Q queries of one head; q, k, v and out are descriptors of (batch, heads, tokens, numbers)."""
    block, one = place_of(tl.program_id(0), blocks, all_heads, section, CAUSAL)
    batch, head = one // heads, one % heads
    first = block * BLOCK_Q
    queries = q.load([batch, head, first, 0]).reshape(BLOCK_Q, D)
    top = tl.full((BLOCK_Q,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_Q,), tl.float32)
    acc = tl.zeros((BLOCK_Q, D), tl.float32)
    free, end = M // BLOCK_K * BLOCK_K, M
    if CAUSAL:
        free, end = min(first, M) // BLOCK_K * BLOCK_K, min(first + BLOCK_Q, M)
    shared = head // GROUP
    top, total, acc = absorb_blocks(
        top, total, acc, queries, k, v, batch, shared, 0, free, first, M, factor, D, BLOCK_Q, BLOCK_K, CAUSAL, False
    )
    top, total, acc = absorb_blocks(
        top, total, acc, queries, k, v, batch, shared, free, end, first, M, factor, D, BLOCK_Q, BLOCK_K, CAUSAL, True
    )
    out.store([batch, head, first, 0], (acc / total[:, None]).to(out.dtype).reshape(1, 1, BLOCK_Q, D))
    i = first + tl.arange(0, BLOCK_Q)
    tl.store(logsum_ptr + one.to(tl.int64) * N + i, top + tl.log2(total), mask=i < N)


@triton.jit
def prepare_kernel(
    dy, y, dq, logsum_ptr, padded_logsum_ptr, delta_ptr, N, padded, heads, blocks,
    D: tl.constexpr, BLOCK_Q: tl.constexpr,
):  # fmt: skip
    """Compute the sum of dy times y for each query, copy the logarithms, and fill dq with zeros.

    Both results have `padded` queries a head. The logarithm of one past the last is infinite, so it gets no shares.
    """
    one, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BLOCK_Q
    place = [one // heads, one % heads, first, 0]
    products = dy.load(place).to(tl.float32) * y.load(place).to(tl.float32)
    i = first + tl.arange(0, BLOCK_Q)
    logsum = tl.load(logsum_ptr + one.to(tl.int64) * N + i, mask=i < N, other=float("inf"))
    tl.store(padded_logsum_ptr + one.to(tl.int64) * padded + i, logsum)
    tl.store(delta_ptr + one.to(tl.int64) * padded + i, tl.sum(products.reshape(BLOCK_Q, D), 1))
    dq.store(place, tl.zeros((1, 1, BLOCK_Q, D), tl.float32))


@triton.jit
def backward_kernel(
    q, k, v, dy, dq, dk_out, dv_out, logsum, delta, N, M, heads, blocks, factor, scale,
    D: tl.constexpr, GROUP: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
    CAUSAL: tl.constexpr, RAGGED: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of BLOCK_K keys and values, which stay while all queries of their heads pass.

    What the queries get from these keys is added to dq, which begins with zeros and is not yet scaled. Keys are down,
    queries across, so the products for dk and dv take shares and gradients of scores from registers. One loop serves
    blocks with and without a mask, because two take more registers.
    """
    one, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BLOCK_K  # the first keys have most queries
    kv_heads = heads // GROUP
    batch, shared = one // kv_heads, one % kv_heads
    keys = k.load([batch, shared, first, 0]).reshape(BLOCK_K, D)
    values = v.load([batch, shared, first, 0]).reshape(BLOCK_K, D)
    j = first + tl.arange(0, BLOCK_K)
    dk = tl.zeros((BLOCK_K, D), tl.float32)
    dv = tl.zeros((BLOCK_K, D), tl.float32)
    begin = 0
    if CAUSAL:
        begin = first // BLOCK_Q * BLOCK_Q
    for member in range(GROUP):
        head = shared * GROUP + member
        row = batch * heads + head
        for start in range(begin, N, BLOCK_Q):
            queries = q.load([batch, head, start, 0]).reshape(BLOCK_Q, D)
            scores = tl.dot(keys, queries.T) * factor - logsum.load([row, start]).reshape(BLOCK_Q)[None, :]
            if CAUSAL:
                i = start + tl.arange(0, BLOCK_Q)
                scores = tl.where(j[:, None] <= i[None, :], scores, -float("inf"))
            if RAGGED:  # keys past the last are zeros, but their shares may be infinite, and infinity times 0 is NaN
                scores = tl.where((j < M)[:, None], scores, -float("inf"))
            dy_rows = dy.load([batch, head, start, 0]).reshape(BLOCK_Q, D)
            if D > 64:  # this product runs beside the exponentials; at heads of 64 registers are too few for both
                d_shares = tl.dot(values, dy_rows.T) - delta.load([row, start]).reshape(BLOCK_Q)[None, :]
            shares = tl.exp2(scores)
            dv = tl.dot(shares.to(dy_rows.dtype), dy_rows, dv)
            if D <= 64:
                d_shares = tl.dot(values, dy_rows.T) - delta.load([row, start]).reshape(BLOCK_Q)[None, :]
            d_scores = (shares * d_shares).to(queries.dtype)
            dk = tl.dot(d_scores, queries, dk)
            dq.atomic_add([batch, head, start, 0], tl.dot(d_scores.T, keys).reshape(1, 1, BLOCK_Q, D))
    dk_out.store([batch, shared, first, 0], (dk * scale).to(dk_out.dtype).reshape(1, 1, BLOCK_K, D))
    dv_out.store([batch, shared, first, 0], dv.to(dv_out.dtype).reshape(1, 1, BLOCK_K, D))


@triton.jit
def finish_kernel(dq, dq_out, heads, blocks, scale, BLOCK_Q: tl.constexpr):
    """Scale the sums of dq, and round them to 16 bits."""
    one, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BLOCK_Q
    place = [one // heads, one % heads, first, 0]
    dq_out.store(place, (dq.load(place) * scale).to(dq_out.dtype))


@dataclass(frozen=True)
class Plan:
    """How an attention, or its backward pass, is computed.

    Attributes:
        block_q: queries of a block.
        block_k: keys of a block.
        num_warps: warps of a program.
        num_stages: blocks that are on their way or in use, of each tensor that passes.
        max_registers: most registers of a thread, where one more program then fits a multiprocessor; None: no limit.
    """

    block_q: int
    block_k: int
    num_warps: int
    num_stages: int
    max_registers: int | None = None

    def __str__(self) -> str:
        limit = f" r{self.max_registers}" if self.max_registers else ""
        return f"{self.block_q}x{self.block_k} w{self.num_warps} s{self.num_stages}{limit}"


@dataclass(frozen=True)
class Sizes:
    """Sizes of an attention: `n` queries, `m` keys and values of `d` numbers; `kv_heads` divide `heads`."""

    batch: int
    heads: int
    kv_heads: int
    n: int
    m: int
    d: int
    causal: bool = False

    @property
    def all_heads(self) -> int:
        """Heads of queries of all sequences."""
        return self.batch * self.heads

    @property
    def flops(self) -> int:
        """FLOPs of the forward products; under a causal mask those of visible pairs only."""
        whole = max(0, self.n - self.m)  # queries that see all keys
        under = self.n - whole
        pairs = under * (under + 1) // 2 + whole * self.m if self.causal else self.n * self.m
        return 4 * self.all_heads * pairs * self.d

    def section(self, cache_bytes: int) -> int:
        """Heads whose keys and values fit the share of an L2 together, at least one."""
        each = 2 * 2 * self.m * self.d * self.kv_heads / self.heads
        return max(1, min(self.all_heads, int(SECTION_SHARE * cache_bytes / each)))


PLANS: Mapping[int, tuple[Plan, ...]] = {
    128: (Plan(128, 64, 8, 3), Plan(64, 64, 4, 3)),
}
"""Plans of the forward pass by the largest head size that they serve; `bench.py` measures them all."""

BACKWARD_PLANS: Mapping[int, tuple[Plan, ...]] = {
    64: (Plan(64, 64, 4, 2, 168),),
    128: (Plan(64, 128, 8, 3), Plan(32, 64, 4, 2)),
}
"""The same for the backward pass, where keys are at rest."""

CACHE_BYTES = 40 * 2**20
"""L2 that is assumed where a device does not say what it has: an A100's."""


def candidates(plans: Mapping[int, tuple[Plan, ...]], d: int) -> tuple[Plan, ...]:
    """Return the plans for a head size, the largest blocks first."""
    return plans[min(size for size in plans if d <= size)]


def plan_of(plans: Mapping[int, tuple[Plan, ...]], sizes: Sizes, device: Device, *, keys_rest: bool = False) -> Plan:
    """Return the plan with the largest blocks of which there are enough to give every multiprocessor one.

    Blocks that are longer than the text are not used if there are shorter ones. A plan must fit the device's shared
    memory.

    Raises:
        CannotAttend: none fits.
    """
    found = candidates(plans, sizes.d)
    fitting = [plan for plan in found if shared_bytes(plan, sizes.d, keys_rest=keys_rest) <= device.shared_bytes]
    if not fitting:
        least = min(shared_bytes(plan, sizes.d, keys_rest=keys_rest) for plan in found)
        raise CannotAttend(
            f"{device.name} has {device.shared_bytes:,} bytes of shared memory per block, and heads of {sizes.d} "
            f"numbers need {least:,}: use the lab's gqa_kernel with smaller blocks"
        )
    length, heads = (sizes.m, sizes.batch * sizes.kv_heads) if keys_rest else (sizes.n, sizes.all_heads)
    for plan in fitting:
        side = plan.block_k if keys_rest else plan.block_q
        if heads * triton.cdiv(length, side) >= (device.multiprocessors or 1):
            return plan
    return fitting[-1]


def shared_bytes(plan: Plan, d: int, *, keys_rest: bool = False) -> int:
    """Return the shared memory that a plan takes at most: what rests, what passes, a block that is stored, barriers.

    In the backward pass two tensors rest, two float32 numbers pass with each query, and a block is on its way to dQ;
    the forward pass takes less.
    """
    padded = int(triton.next_power_of_2(d))
    rest, passing = (plan.block_k, plan.block_q) if keys_rest else (plan.block_q, plan.block_k)
    turned = plan.block_q * plan.block_k  # shares that a product reads from shared memory
    summed = 4 * plan.block_q * (padded + 2 * plan.num_stages) if keys_rest else 0  # bytes: in float32
    return 2 * (2 * (rest + plan.num_stages * passing) * padded + turned) + summed + BARRIER_BYTES


BARRIER_BYTES = 1024


def sizes_of(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> Sizes:
    """Return the sizes of a call.

    Raises:
        CannotAttend: shapes that do not go together, with what to give.
    """
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dim() != 4 or 0 in tensor.shape:
            raise CannotAttend(
                f"{name} has shape {tuple(tensor.shape)}: give (batch, heads, tokens, numbers), each 1 or more"
            )
    (batch, heads, n, d), (kv_batch, kv_heads, m, kv_d) = q.shape, k.shape
    if d > LARGEST_HEAD or d % HEAD_STEP:
        raise CannotAttend(f"a head has {d} numbers: give a multiple of {HEAD_STEP} up to {LARGEST_HEAD}")
    if v.shape != k.shape or kv_batch != batch or kv_d != d:
        raise CannotAttend(
            f"k has shape {tuple(k.shape)} and v {tuple(v.shape)}: give both as ({batch}, heads, tokens, {d})"
        )
    if heads % kv_heads:
        raise CannotAttend(f"{heads} heads of queries and {kv_heads} of keys: the second must divide the first")
    return Sizes(batch, heads, kv_heads, n, m, d, causal)


def check(tensors: dict[str, torch.Tensor], scale: float) -> None:
    """Refuse what the kernels do not take, before anything is launched; the first tensor says what the others must be.

    Raises:
        CannotAttend: with the value, and what to do.
    """
    q = next(iter(tensors.values()))
    if q.dtype not in DTYPES:
        raise CannotAttend(f"q is {q.dtype}: give float16 or bfloat16")
    if not (math.isfinite(scale) and scale > 0):
        raise CannotAttend(f"scale is {scale}: give a number above 0")
    for name, tensor in tensors.items():
        if tensor.dtype != q.dtype or tensor.device != q.device:
            raise CannotAttend(
                f"{name} is {tensor.dtype} on {tensor.device}, q is {q.dtype} on {q.device}: give both alike"
            )
        steps = [step for side, step in zip(tensor.shape, tensor.stride(), strict=True) if side > 1][:-1]
        if tensor.stride(3) != 1 or any(step % HEAD_STEP for step in steps) or tensor.data_ptr() % 16:
            raise CannotAttend(
                f"{name} has strides {tensor.stride()}: a head's numbers must be neighbors, and rows must start at "
                "multiples of 16 bytes; call .contiguous()"
            )


def check_device(device: Device) -> None:
    """Refuse a device that cannot compute it.

    Raises:
        CannotAttend: with the device, and what to do.
    """
    if device.kind != "gpu":
        raise CannotAttend(
            "no CUDA GPU found here, and these kernels are for one: call "
            "torch.nn.functional.scaled_dot_product_attention"
        )
    if (device.capability or (0, 0)) < NEEDS:
        raise CannotAttend(
            f"{device.name} has no TMA, as GPUs from compute capability {NEEDS[0]}.{NEEDS[1]} on have: "
            "use the lab's gqa_kernel"
        )


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    plan: Plan | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return softmax(scale q k^T) v, and for each query the base-2 logarithm of its sum, which `gradients` needs.

    Args:
        q: (batch, heads, n, d), float16 or bfloat16; d is a multiple of 8 up to 128.
        k: (batch, kv_heads, m, d), likewise; kv_heads divides heads.
        v: as k.
        causal: whether query i sees only the keys 0 to i.
        scale: factor of the scores; 1 / sqrt(d) without it.
        plan: how; by default the rule chooses.

    Raises:
        CannotAttend: a shape, a stride, a dtype or a device that the kernels do not take.
    """
    out, logsum = torch.empty_like(q), torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    attend(q, k, v, out, logsum, causal, scale, plan)
    return out, logsum


@remembered
def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    logsum: torch.Tensor,
    causal: bool,
    scale: float | None,
    plan: Plan | None,
) -> None:
    """Write what `attention` returns into `out` and `logsum`, after a check that the kernel can take all of it."""
    sizes = sizes_of(q, k, v, causal)
    scale = sizes.d**-0.5 if scale is None else scale
    check({"q": q, "k": k, "v": v}, scale)
    device = detect_device()
    check_device(device)
    launch_forward(q, k, v, out, logsum, sizes, scale, plan or plan_of(PLANS, sizes, device), device)


def gradients(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    logsum: torch.Tensor,
    dy: torch.Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of q, k and v; the last digits of q's may differ in a second run.

    Args:
        q: as for `attention`.
        k: as for `attention`.
        v: as for `attention`.
        out: what `attention` returned.
        logsum: likewise.
        dy: gradient of `out`.
        causal: as for `attention`.
        scale: as for `attention`.

    Raises:
        CannotAttend: a shape, a stride, a dtype or a device that the kernels do not take.
    """
    sizes = sizes_of(q, k, v, causal)
    scale = sizes.d**-0.5 if scale is None else scale
    check({"q": q, "k": k, "v": v, "out": out, "dy": dy}, scale)
    if out.shape != q.shape or dy.shape != q.shape or logsum.shape != q.shape[:3] or not logsum.is_contiguous():
        raise CannotAttend(
            f"out has shape {tuple(out.shape)}, dy {tuple(dy.shape)} and logsum {tuple(logsum.shape)}: give what "
            f"attention returned for q of {tuple(q.shape)}, and dy of the same shape"
        )
    device = detect_device()
    check_device(device)
    found = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    launch_backward(q, k, v, out, logsum, dy, found, sizes, scale, device)
    return found


def described(tensor: torch.Tensor, block: int, d: int) -> TensorDescriptor:
    """Return a descriptor of which a load brings `block` tokens of one head."""
    return TensorDescriptor.from_tensor(tensor, [1, 1, block, triton.next_power_of_2(d)])


def launch_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    logsum: torch.Tensor,
    sizes: Sizes,
    scale: float,
    plan: Plan,
    device: Device,
) -> None:
    """Launch the forward kernel of a plan."""
    blocks = triton.cdiv(sizes.n, plan.block_q)
    section = sizes.section(device.cache_bytes or CACHE_BYTES)
    forward_kernel[(blocks * sizes.all_heads,)](
        described(q, plan.block_q, sizes.d), described(k, plan.block_k, sizes.d), described(v, plan.block_k, sizes.d),
        described(out, plan.block_q, sizes.d), logsum,
        sizes.n, sizes.m, sizes.heads, sizes.all_heads, blocks, section, scale * LOG2_E,
        GROUP=sizes.heads // sizes.kv_heads, CAUSAL=sizes.causal, **constants(plan, sizes),
    )  # fmt: skip


def launch_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    logsum: torch.Tensor,
    dy: torch.Tensor,
    found: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    sizes: Sizes,
    scale: float,
    device: Device,
    plan: Plan | None = None,
) -> None:
    """Launch the three kernels of the backward pass; without a plan the rule chooses."""
    plan = plan or plan_of(BACKWARD_PLANS, sizes, device, keys_rest=True)
    padded = triton.cdiv(sizes.n, plan.block_q) * plan.block_q
    sums = torch.empty(q.shape, dtype=torch.float32, device=q.device)
    per_query = torch.empty((2, sizes.all_heads, padded), dtype=torch.float32, device=q.device)
    launch_backward_in(sums, per_query, q, k, v, out, logsum, dy, found, sizes, scale, plan)


@remembered
def launch_backward_in(
    sums: torch.Tensor,
    per_query: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    logsum: torch.Tensor,
    dy: torch.Tensor,
    found: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    sizes: Sizes,
    scale: float,
    plan: Plan,
) -> None:
    """Launch the kernels of the backward pass with room for the sums of dQ and for two numbers per query."""
    d, still, passing = sizes.d, plan.block_k, plan.block_q
    blocks, padded = triton.cdiv(sizes.n, passing), per_query.shape[2]
    dq = described(sums, passing, d)
    prepare_kernel[(blocks * sizes.all_heads,)](
        described(dy, passing, d), described(out, passing, d), dq, logsum, *per_query,
        sizes.n, padded, sizes.heads, blocks, D=triton.next_power_of_2(d), BLOCK_Q=passing, num_warps=4,
    )  # fmt: skip
    still_blocks = triton.cdiv(sizes.m, still)
    backward_kernel[(still_blocks * sizes.batch * sizes.kv_heads,)](
        described(q, passing, d), described(k, still, d), described(v, still, d), described(dy, passing, d), dq,
        described(found[1], still, d), described(found[2], still, d),
        *(TensorDescriptor.from_tensor(one, [1, passing]) for one in per_query),
        sizes.n, sizes.m, sizes.heads, still_blocks, scale * LOG2_E, scale,
        GROUP=sizes.heads // sizes.kv_heads, CAUSAL=sizes.causal, RAGGED=sizes.m % still != 0, **constants(plan, sizes),
    )  # fmt: skip
    finish_kernel[(blocks * sizes.all_heads,)](
        dq, described(found[0], passing, d), sizes.heads, blocks, scale, BLOCK_Q=passing, num_warps=4
    )


def constants(plan: Plan, sizes: Sizes) -> dict[str, int | None]:
    """Return a plan as a launch takes it."""
    return {
        "D": triton.next_power_of_2(sizes.d),
        "BLOCK_Q": plan.block_q,
        "BLOCK_K": plan.block_k,
        "num_warps": plan.num_warps,
        "num_stages": plan.num_stages,
        "maxnreg": plan.max_registers,
    }
