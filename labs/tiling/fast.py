"""Where the lab's last questions lead: the course's fastest matrix products, in float32 and on tensor cores.

Both read their tiles through tensor descriptors: the copy engine of Hopper GPUs (TMA) brings a whole tile to shared
memory, swizzled against bank conflicts, and fills what lies past an edge with zeros. So the loops need neither masks
nor addresses. Older GPUs have no such engine: `matmul` refuses them, and the lab's own `matmul_kernel` is the one to
take there.

- Tensor cores, large matrices: as many programs as the GPU has multiprocessors, each of which computes one tile of C
  after the other. Triton flattens the two loops, so the copies for the next tile start while this one is still being
  multiplied and stored. C is stored in two halves, through a buffer of half the size.
- Tensor cores, few tiles: one program per tile, of a smaller size, two to a multiprocessor: one multiplies while the
  other waits. `quickest` says which.
- float32: A is transposed first, once. Then four rows of A stand side by side in shared memory at every k, so that a
  thread fetches what it multiplies next with one 16-byte load. It needs 127 registers instead of 178, and a second
  program fits on each multiprocessor (Triton 3.6, compute capability 9.0). BLAS libraries call that packing (Goto and
  van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008).

Matrices that a descriptor cannot take, for it asks for rows of which each starts at a multiple of 16 bytes, are copied
into ones with padded rows: a pass over A, B or C, where loads of single elements would slow down every step.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from mlsys.errors import UserError
from mlsys.measure.device import Device, gpu_device

NEEDS = (9, 0)
"""Compute capability from which GPUs have the copy engine."""

ALIGNMENT_BYTES = 16
"""Where a descriptor's rows must start."""

GROUP_M = 8
"""Rows of tiles that neighbouring programs share, so that the L2 holds what they read."""


class CannotMultiply(UserError, ValueError):
    """Matrices that the product cannot take, or a device that cannot compute it."""


@triton.jit
def tile_of(number, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column of a tile, numbered down GROUP_M rows and then on to the next column."""
    per_group = GROUP_M * tiles_n
    first_row = number // per_group * GROUP_M
    rows = min(tiles_m - first_row, GROUP_M)
    within = number % per_group
    return first_row + within % rows, within // rows


@triton.jit
def store_tile(c, row, col, tile, PARTS: tl.constexpr):
    """Store a tile from (row, col) on in PARTS pieces, side by side."""
    if PARTS == 1:
        c.store([row, col], tile.to(c.dtype))
    else:
        HALF: tl.constexpr = tile.shape[1] // 2
        halves = tl.permute(tl.reshape(tile, (tile.shape[0], 2, HALF)), (0, 2, 1))
        left, right = tl.split(halves)
        store_tile(c, row, col, left, PARTS // 2)
        store_tile(c, row, col + HALF, right, PARTS // 2)


@triton.jit
def persistent_kernel(
    a, b, c, M, N, K,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """C = A B by descriptors; each program takes every num_programs-th tile."""
    tiles_m = tl.cdiv(M, TILE_M)
    tiles_n = tl.cdiv(N, TILE_N)
    for number in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        tile_row, tile_col = tile_of(number, tiles_m, tiles_n, GROUP_M)
        row, col = tile_row * TILE_M, tile_col * TILE_N
        acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
        for step in range(tl.cdiv(K, TILE_K)):
            acc = tl.dot(a.load([row, step * TILE_K]), b.load([step * TILE_K, col]), acc)
        store_tile(c, row, col, acc, PARTS)


@triton.jit
def tile_kernel(
    a, b, c, M, N, K,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr, A_IS_PACKED: tl.constexpr,
):  # fmt: skip
    """C = A B by descriptors, one program per tile; a packed A is transposed, (K, M)."""
    tile_row, tile_col = tile_of(tl.program_id(0), tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N), GROUP_M)
    row, col = tile_row * TILE_M, tile_col * TILE_N
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, TILE_K)):
        left = a.load([step * TILE_K, row]) if A_IS_PACKED else a.load([row, step * TILE_K])
        right = b.load([step * TILE_K, col])
        if A_IS_PACKED:
            left = tl.trans(left)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    c.store([row, col], acc.to(c.dtype))


@triton.jit
def transpose_kernel(a_ptr, out_ptr, M, K, stride_am, stride_ak, stride_ok, TILE: tl.constexpr):
    """out[k, m] = a[m, k], one TILE x TILE block per program."""
    rows = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = (rows[:, None] < M) & (cols[None, :] < K)
    block = tl.load(a_ptr + rows[:, None] * stride_am + cols[None, :] * stride_ak, mask=inside)
    inside = (cols[:, None] < K) & (rows[None, :] < M)
    tl.store(out_ptr + cols[:, None] * stride_ok + rows[None, :], tl.trans(block), mask=inside)


BARRIER_BYTES = 64


@dataclass(frozen=True)
class Plan:
    """How a product is computed.

    Attributes:
        tile_m: rows of a tile of C.
        tile_n: its columns.
        tile_k: steps along k at once.
        num_warps: warps of a program.
        num_stages: pairs of tiles on their way or in use.
        persistent: one program per multiprocessor, not per tile.
        parts: pieces in which a persistent program stores a tile.
        packed: A is transposed first.
    """

    tile_m: int
    tile_n: int
    tile_k: int
    num_warps: int
    num_stages: int
    persistent: bool = False
    parts: int = 1
    packed: bool = False

    def tiles(self, m: int, n: int) -> int:
        """Tiles that cover an m x n matrix."""
        return triton.cdiv(m, self.tile_m) * triton.cdiv(n, self.tile_n)

    def shared_bytes(self, itemsize: int) -> int:
        """Most shared memory that it takes: its stages, the piece of C that is stored, and the stages' barriers."""
        stages = self.num_stages * (self.tile_m + self.tile_n) * self.tile_k * itemsize
        return stages + self.tile_m * self.tile_n // self.parts * itemsize + BARRIER_BYTES


LARGE = Plan(128, 256, 64, 8, 3, persistent=True, parts=2)
TENSOR_CORE_PLANS = {LARGE: 1.0, Plan(128, 128, 64, 8, 3): 0.97, Plan(64, 128, 64, 4, 4): 0.8}
"""Plans for 16-bit inputs, and the speed of each relative to the first where all of the GPU is busy (on an H200)."""

STEPS_BETWEEN_TILES = 256
"""Starting and storing a tile that nothing else hides costs as much as this many steps along k (on an H200)."""

FLOAT32_PLANS = {Plan(64, 256, 32, 8, 2, packed=True): 1.0, Plan(32, 128, 32, 4, 2, packed=True): 0.95}
"""The same for float32. Without packing, the second reached 0.90 of cuBLAS where the first has 0.94 (N = 4096)."""

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def tensor_core_plan(m: int, n: int, k: int, device: Device) -> Plan:
    """The plan for a 16-bit product.

    Raises:
        CannotMultiply: no plan fits the device's shared memory.
    """
    return quickest(TENSOR_CORE_PLANS, 2, (m, n, k), device)


def float32_plan(m: int, n: int, k: int, device: Device) -> Plan:
    """The plan for a float32 product.

    Raises:
        CannotMultiply: no plan fits the device's shared memory.
    """
    return quickest(FLOAT32_PLANS, 4, (m, n, k), device)


def quickest(plans: Mapping[Plan, float], itemsize: int, shape: tuple[int, int, int], device: Device) -> Plan:
    """The plan with the least estimated time, of those that fit the device's shared memory.

    A multiprocessor that computes t tiles needs about (t k + s) tile_m tile_n / speed, with s =
    `STEPS_BETWEEN_TILES`; the slowest has t = tiles / multiprocessors, rounded up.

    Raises:
        CannotMultiply: no plan fits.
    """
    m, n, k = shape

    def time(plan: Plan) -> float:
        turns = triton.cdiv(plan.tiles(m, n), device.multiprocessors)
        return (turns * k + STEPS_BETWEEN_TILES) * plan.tile_m * plan.tile_n / plans[plan]

    fitting = [plan for plan in plans if plan.shared_bytes(itemsize) <= device.shared_bytes]
    if not fitting:
        raise CannotMultiply(f"{device.name} has {device.shared_bytes:,} bytes of shared memory a block; no tile fits")
    return min(fitting, key=time)


def check(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, device: Device) -> None:
    """Refuse what the kernels cannot take, before anything is launched.

    Raises:
        CannotMultiply: with the value, and what to do.
    """
    if a.dtype == torch.bfloat16 and not device.has_bf16:
        raise CannotMultiply(f"{device.name} has no bfloat16 arithmetic: use float16 or float32")
    if (device.capability or (0, 0)) < NEEDS:
        raise CannotMultiply(
            f"{device.name} has no copy engine for tensor descriptors, which compute capability {NEEDS[0]}.{NEEDS[1]} "
            "brings: use the lab's matmul_kernel"
        )
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0] or out.shape != (a.shape[0], b.shape[1]):
        raise CannotMultiply(
            f"shapes {tuple(a.shape)} and {tuple(b.shape)} into {tuple(out.shape)}: give (m, k) and (k, n) into (m, n)"
        )
    if 0 in (*a.shape, *b.shape):
        raise CannotMultiply(f"shapes {tuple(a.shape)} and {tuple(b.shape)}: every side must be 1 or more")
    if not a.dtype == b.dtype == out.dtype or a.dtype not in DTYPES:
        raise CannotMultiply(f"{a.dtype}, {b.dtype} into {out.dtype}: give all three as float32, float16 or bfloat16")
    if not a.is_cuda or not a.device == b.device == out.device:
        raise CannotMultiply(f"matrices on {a.device}, {b.device} and {out.device}: put all three on one CUDA GPU")


def aligned(x: torch.Tensor) -> torch.Tensor:
    """`x` if a descriptor can take it, else a matrix of the same shape with padded rows, whose content is undefined."""
    step = ALIGNMENT_BYTES // x.element_size()
    if x.stride(1) == 1 and x.stride(0) % step == 0 and x.data_ptr() % ALIGNMENT_BYTES == 0:
        return x
    rows, columns = x.shape
    return x.new_empty(rows, triton.cdiv(columns, step) * step)[:, :columns]


def matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, plan: Plan | None = None) -> torch.Tensor:
    """Write A B into `out` and return it; the sum is kept in float32.

    Args:
        a: (m, k), float32, float16 or bfloat16, of any strides.
        b: (k, n), of the same dtype.
        out: (m, n), of the same dtype.
        plan: how; by default the rule for the dtype chooses.

    Raises:
        CannotMultiply: shapes, dtypes or devices that do not go together, or a device that cannot compute it.
    """
    device = gpu_device()
    check(a, b, out, device)
    (m, k), n = a.shape, b.shape[1]
    rule = float32_plan if a.dtype == torch.float32 else tensor_core_plan
    plan = plan or rule(m, n, k, device)
    left = packed(a) if plan.packed else copied(a)
    result = aligned(out)
    launch(left, copied(b), result, (m, n, k), plan, device)
    return out if result is out else out.copy_(result)


def copied(x: torch.Tensor) -> torch.Tensor:
    """`x` if a descriptor can take it, else a copy with padded rows."""
    fit = aligned(x)
    return x if fit is x else fit.copy_(x)


def packed(a: torch.Tensor) -> torch.Tensor:
    """The transpose of `a`, with padded rows."""
    m, k = a.shape
    transposed = aligned(a.new_empty(k, m))
    grid = (triton.cdiv(m, 64), triton.cdiv(k, 64))
    transpose_kernel[grid](a, transposed, m, k, *a.stride(), transposed.stride(0), TILE=64)
    return transposed


def launch(
    left: torch.Tensor, b: torch.Tensor, out: torch.Tensor, shape: tuple[int, int, int], plan: Plan, device: Device
) -> None:
    """Launch the kernel of a plan; `left` is A, or its transpose if the plan is packed."""
    m, n, k = shape
    tile_m, tile_n, tile_k = plan.tile_m, plan.tile_n, plan.tile_k
    matrices = (
        TensorDescriptor.from_tensor(left, [tile_k, tile_m] if plan.packed else [tile_m, tile_k]),
        TensorDescriptor.from_tensor(b, [tile_k, tile_n]),
        TensorDescriptor.from_tensor(out, [tile_m, tile_n // plan.parts]),
    )
    constants = {"TILE_M": tile_m, "TILE_N": tile_n, "TILE_K": tile_k, "GROUP_M": GROUP_M}
    options = {"num_warps": plan.num_warps, "num_stages": plan.num_stages}
    tiles = plan.tiles(m, n)
    if plan.persistent:
        grid = (min(tiles, device.multiprocessors),)
        persistent_kernel[grid](*matrices, m, n, k, **constants, PARTS=plan.parts, **options)
    else:
        tile_kernel[(tiles,)](*matrices, m, n, k, **constants, A_IS_PACKED=plan.packed, **options)
