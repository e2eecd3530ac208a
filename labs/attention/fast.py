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
  again: once for dQ, with queries at rest, and once for dK and dV, with keys at rest. No two programs add to the same
  number, so the result is the same in every run.
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
def delta_kernel(dy, y, delta_ptr, N, heads, blocks, D: tl.constexpr, BLOCK_Q: tl.constexpr):
    """Compute the sum of dy times y for each query."""
    one, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BLOCK_Q
    place = [one // heads, one % heads, first, 0]
    products = dy.load(place).to(tl.float32) * y.load(place).to(tl.float32)
    i = first + tl.arange(0, BLOCK_Q)
    tl.store(delta_ptr + one.to(tl.int64) * N + i, tl.sum(products.reshape(BLOCK_Q, D), 1), mask=i < N)


@triton.jit
def add_to_dq(
    dq, queries, dy_rows, logsum, delta, k, v, batch, shared, begin, end, first, M, factor,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Return dq, not yet scaled, after the keys from `begin` to `end`."""
    i = first + tl.arange(0, BLOCK_Q)
    for start in range(begin, end, BLOCK_K):
        keys = k.load([batch, shared, start, 0]).reshape(BLOCK_K, D)
        scores = tl.dot(queries, keys.T) * factor - logsum[:, None]
        if MASKED:
            j = start + tl.arange(0, BLOCK_K)
            visible = (j < M)[None, :]
            if CAUSAL:
                visible = visible & (j[None, :] <= i[:, None])
            scores = tl.where(visible, scores, -float("inf"))
        shares = tl.exp2(scores)
        values = v.load([batch, shared, start, 0]).reshape(BLOCK_K, D)
        d_scores = shares * (tl.dot(dy_rows, values.T) - delta[:, None])
        dq = tl.dot(d_scores.to(keys.dtype), keys, dq)
    return dq


@triton.jit
def dq_kernel(
    q, k, v, dy, dq_out, logsum_ptr, delta_ptr, N, M, heads, all_heads, blocks, section, factor, scale,
    D: tl.constexpr, GROUP: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of BLOCK_Q queries of one head, which stay while all keys pass."""
    block, one = place_of(tl.program_id(0), blocks, all_heads, section, CAUSAL)
    batch, head = one // heads, one % heads
    first = block * BLOCK_Q
    i = first + tl.arange(0, BLOCK_Q)
    queries = q.load([batch, head, first, 0]).reshape(BLOCK_Q, D)
    dy_rows = dy.load([batch, head, first, 0]).reshape(BLOCK_Q, D)
    logsum = tl.load(logsum_ptr + one.to(tl.int64) * N + i, mask=i < N, other=float("inf"))  # then all shares are 0
    delta = tl.load(delta_ptr + one.to(tl.int64) * N + i, mask=i < N, other=0.0)
    dq = tl.zeros((BLOCK_Q, D), tl.float32)
    free, end = M // BLOCK_K * BLOCK_K, M
    if CAUSAL:
        free, end = min(first, M) // BLOCK_K * BLOCK_K, min(first + BLOCK_Q, M)
    shared = head // GROUP
    dq = add_to_dq(
        dq, queries, dy_rows, logsum, delta, k, v, batch, shared, 0, free, first, M, factor,
        D, BLOCK_Q, BLOCK_K, CAUSAL, False,
    )  # fmt: skip
    dq = add_to_dq(
        dq, queries, dy_rows, logsum, delta, k, v, batch, shared, free, end, first, M, factor,
        D, BLOCK_Q, BLOCK_K, CAUSAL, True,
    )  # fmt: skip
    dq_out.store([batch, head, first, 0], (dq * scale).to(dq_out.dtype).reshape(1, 1, BLOCK_Q, D))


@triton.jit
def add_to_dkdv(
    dk, dv, keys, values, q, dy, logsum_ptr, delta_ptr, batch, head, begin, end, first, N,
    factor, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, D: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Return dk, not yet scaled, and dv after the queries from `begin` to `end`; keys are down, queries across."""
    for start in range(begin, end, BLOCK_Q):
        i = start + tl.arange(0, BLOCK_Q)
        queries = q.load([batch, head, start, 0]).reshape(BLOCK_Q, D)
        logsum = tl.load(logsum_ptr + i, mask=i < N, other=float("inf"))
        scores = tl.dot(keys, queries.T) * factor - logsum[None, :]
        if MASKED:
            j = first + tl.arange(0, BLOCK_K)
            scores = tl.where(j[:, None] <= i[None, :], scores, -float("inf"))
        shares = tl.exp2(scores)
        dy_rows = dy.load([batch, head, start, 0]).reshape(BLOCK_Q, D)
        dv = tl.dot(shares.to(dy_rows.dtype), dy_rows, dv)
        delta = tl.load(delta_ptr + i, mask=i < N, other=0.0)
        d_scores = shares * (tl.dot(values, dy_rows.T) - delta[None, :])
        dk = tl.dot(d_scores.to(queries.dtype), queries, dk)
    return dk, dv


@triton.jit
def dkdv_kernel(
    q, k, v, dy, dk_out, dv_out, logsum_ptr, delta_ptr, N, M, heads, blocks, factor, scale,
    D: tl.constexpr, GROUP: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of BLOCK_K keys and values, which stay while all queries of their heads pass."""
    one, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BLOCK_K  # the first keys have most queries
    kv_heads = heads // GROUP
    batch, shared = one // kv_heads, one % kv_heads
    keys = k.load([batch, shared, first, 0]).reshape(BLOCK_K, D)
    values = v.load([batch, shared, first, 0]).reshape(BLOCK_K, D)
    dk = tl.zeros((BLOCK_K, D), tl.float32)
    dv = tl.zeros((BLOCK_K, D), tl.float32)
    masked, free = 0, 0
    if CAUSAL:
        masked = first // BLOCK_Q * BLOCK_Q
        free = min(tl.cdiv(first + BLOCK_K, BLOCK_Q) * BLOCK_Q, tl.cdiv(N, BLOCK_Q) * BLOCK_Q)
    for member in range(GROUP):
        head = shared * GROUP + member
        row = (batch * heads + head).to(tl.int64) * N
        if CAUSAL:
            dk, dv = add_to_dkdv(
                dk, dv, keys, values, q, dy, logsum_ptr + row, delta_ptr + row, batch, head, masked, free, first, N,
                factor, BLOCK_Q, BLOCK_K, D, True,
            )  # fmt: skip
        dk, dv = add_to_dkdv(
            dk, dv, keys, values, q, dy, logsum_ptr + row, delta_ptr + row, batch, head, free, N, first, N,
            factor, BLOCK_Q, BLOCK_K, D, False,
        )  # fmt: skip
    dk_out.store([batch, shared, first, 0], (dk * scale).to(dk_out.dtype).reshape(1, 1, BLOCK_K, D))
    dv_out.store([batch, shared, first, 0], dv.to(dv_out.dtype).reshape(1, 1, BLOCK_K, D))


@dataclass(frozen=True)
class Plan:
    """How an attention, or one kernel of its backward pass, is computed.

    Attributes:
        block_q: queries of a block.
        block_k: keys of a block.
        num_warps: warps of a program.
        num_stages: blocks that are on their way or in use, of each tensor that passes.
    """

    block_q: int
    block_k: int
    num_warps: int
    num_stages: int

    def __str__(self) -> str:
        return f"{self.block_q}x{self.block_k} w{self.num_warps} s{self.num_stages}"


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
    64: (Plan(128, 128, 8, 3), Plan(128, 128, 4, 2), Plan(128, 64, 4, 3), Plan(64, 64, 4, 3)),
    128: (Plan(128, 128, 8, 2), Plan(128, 64, 8, 3), Plan(64, 64, 4, 3)),
}
"""Plans of the forward pass by the largest head size that they serve; `bench.py` measures them all."""

DQ_PLANS: Mapping[int, tuple[Plan, ...]] = {
    64: (Plan(128, 64, 8, 3), Plan(64, 64, 4, 3)),
    128: (Plan(128, 64, 8, 2), Plan(64, 64, 4, 2)),
}
"""The same for dQ."""

DKDV_PLANS: Mapping[int, tuple[Plan, ...]] = {
    64: (Plan(64, 128, 8, 3), Plan(64, 64, 4, 3)),
    128: (Plan(32, 128, 8, 3), Plan(64, 64, 8, 2), Plan(32, 64, 4, 2)),
}
"""The same for dK and dV, where keys are at rest."""

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

    In the backward pass two tensors rest; the forward pass, where one does, takes less.
    """
    padded = int(triton.next_power_of_2(d))
    rest, passing = (plan.block_k, plan.block_q) if keys_rest else (plan.block_q, plan.block_k)
    turned = plan.block_q * plan.block_k  # shares that a product reads from shared memory
    return 2 * (2 * (rest + plan.num_stages * passing) * padded + turned) + BARRIER_BYTES


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
    sizes = sizes_of(q, k, v, causal)
    scale = sizes.d**-0.5 if scale is None else scale
    check({"q": q, "k": k, "v": v}, scale)
    device = detect_device()
    check_device(device)
    out, logsum = torch.empty_like(q), torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    launch_forward(q, k, v, out, logsum, sizes, scale, plan or plan_of(PLANS, sizes, device), device)
    return out, logsum


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
    """Return the gradients of q, k and v.

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
    plans: tuple[Plan, Plan] | None = None,
) -> None:
    """Launch the three kernels of the backward pass, with the plans of dQ and of dK and dV."""
    for_dq, for_dkdv = plans or (
        plan_of(DQ_PLANS, sizes, device),
        plan_of(DKDV_PLANS, sizes, device, keys_rest=True),
    )
    d, group = sizes.d, sizes.heads // sizes.kv_heads
    delta = torch.empty_like(logsum)
    rows = 64
    blocks = triton.cdiv(sizes.n, rows)
    delta_kernel[(blocks * sizes.all_heads,)](
        described(dy, rows, d), described(out, rows, d), delta, sizes.n, sizes.heads, blocks,
        D=triton.next_power_of_2(d), BLOCK_Q=rows, num_warps=4,
    )  # fmt: skip
    blocks = triton.cdiv(sizes.n, for_dq.block_q)
    section = sizes.section(device.cache_bytes or CACHE_BYTES)
    still, passing = for_dq.block_q, for_dq.block_k
    dq_kernel[(blocks * sizes.all_heads,)](
        described(q, still, d), described(k, passing, d), described(v, passing, d), described(dy, still, d),
        described(found[0], still, d), logsum, delta, sizes.n, sizes.m, sizes.heads, sizes.all_heads, blocks, section,
        scale * LOG2_E, scale, GROUP=group, CAUSAL=sizes.causal, **constants(for_dq, sizes),
    )  # fmt: skip
    blocks = triton.cdiv(sizes.m, for_dkdv.block_k)
    still, passing = for_dkdv.block_k, for_dkdv.block_q
    dkdv_kernel[(blocks * sizes.batch * sizes.kv_heads,)](
        described(q, passing, d), described(k, still, d), described(v, still, d), described(dy, passing, d),
        described(found[1], still, d), described(found[2], still, d), logsum, delta,
        sizes.n, sizes.m, sizes.heads, blocks, scale * LOG2_E, scale,
        GROUP=group, CAUSAL=sizes.causal, **constants(for_dkdv, sizes),
    )  # fmt: skip


def constants(plan: Plan, sizes: Sizes) -> dict[str, int]:
    """Return a plan as a launch takes it."""
    return {
        "D": triton.next_power_of_2(sizes.d),
        "BLOCK_Q": plan.block_q,
        "BLOCK_K": plan.block_k,
        "num_warps": plan.num_warps,
        "num_stages": plan.num_stages,
    }
