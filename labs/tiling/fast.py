"""Where the lab's last questions lead: the course's fastest matrix products, in float32 and on tensor cores.

Both read their tiles through tensor descriptors: the TMA of Hopper GPUs brings a whole tile to shared
memory and fills what lies past an edge with zeros; for the tensor cores it also swizzles the tile against bank
conflicts. So the loops need neither masks nor addresses. Older GPUs have no such engine: `matmul` refuses them, and the
lab's own `matmul_kernel` is the one to take there.

- Tensor cores, large matrices: as many programs as the GPU has multiprocessors, each of which computes one tile of C
  after the other. Triton flattens the two loops, so the copies for the next tile start while this one is still being
  multiplied and stored. C is stored in two halves, through a buffer of half the size.
- Tensor cores, few tiles: one program per tile, of a smaller size, two to a multiprocessor: one multiplies while the
  other waits. `quickest` says which.
- float32: no tensor cores, so a thread's multiply-adds follow one another, and each reads three registers. It waits
  where the register file cannot hand them out at once ("dispatch stall" in Nsight Compute); a register that the
  instruction before has read too is at hand still. So the order of the multiply-adds decides, and `tl.dot` leaves it to
  the compiler. `float32_kernel` says it: it is in Gluon, the language below Triton's own, in which a kernel chooses
  what each thread holds and when it loads. In the large plan a thread computes 8 x 16 elements of C, and it fetches the
  next k while it multiplies this one; the assembler is told to move less than it usually does.

Matrices that a descriptor cannot take, for it asks for rows of which each starts at a multiple of 16 bytes, are copied
into ones with padded rows: a pass over A, B or C, where loads of single elements would slow down every step. In float32
no descriptor is made for C.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor

from mlsys.errors import UserError
from mlsys.measure.device import Device, detect_device
from mlsys.runtime.launches import remembered

NEEDS = (9, 0)
"""Compute capability from which GPUs have a TMA."""

ALIGNMENT_BYTES = 16
"""Where a descriptor's rows must start."""

GROUP_M = 8
"""Rows of tiles that neighboring programs share, so that the L2 holds what they read."""


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
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """C = A B by descriptors, one program per tile."""
    tile_row, tile_col = tile_of(tl.program_id(0), tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N), GROUP_M)
    row, col = tile_row * TILE_M, tile_col * TILE_N
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, TILE_K)):
        acc = tl.dot(a.load([row, step * TILE_K]), b.load([step * TILE_K, col]), acc)
    c.store([row, col], acc.to(c.dtype))


wait_for_all_threads = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier
"""Its name has changed with Triton 3.7."""


@gluon.jit
def fetch(a, b, k, row, col, a_tiles, b_tiles, arrived, slot):
    """Have the TMA bring the tiles from k on to a slot; its barrier `arrived` says when they are there."""
    there = arrived.index(slot)
    mbarrier.expect(there, a.block_type.nbytes + b.block_type.nbytes)
    tma.async_copy_global_to_shared(a, [k // 4, row, 0], there, a_tiles.index(slot))
    tma.async_copy_global_to_shared(b, [k, col], there, b_tiles.index(slot))


@gluon.jit
def as_columns(four, LAYOUT: gl.constexpr):
    """The four columns of a (1, rows, 4) piece of A, each (rows, 1), in the registers in which they are."""
    even, odd = gl.split(gl.reshape(four, [four.shape[1], 2, 2]))
    k0, k2 = gl.split(even)
    k1, k3 = gl.split(odd)
    ROWS: gl.constexpr = gl.SliceLayout(1, LAYOUT)
    return (
        gl.expand_dims(gl.convert_layout(k0, ROWS), 1),
        gl.expand_dims(gl.convert_layout(k1, ROWS), 1),
        gl.expand_dims(gl.convert_layout(k2, ROWS), 1),
        gl.expand_dims(gl.convert_layout(k3, ROWS), 1),
    )


@gluon.jit
def float32_kernel(
    a, b, c_ptr, M, N, K, stride_cm,
    GROUP_M: gl.constexpr, STAGES: gl.constexpr, LAYOUT: gl.constexpr, A_LAYOUT: gl.constexpr,
):  # fmt: skip
    """C = A B in float32, one program per tile; A comes in fours along k, (K / 4, M, 4), which one load takes."""
    FOURS: gl.constexpr = a.block_type.shape[0]
    TILE_M: gl.constexpr = a.block_type.shape[1]
    TILE_K: gl.constexpr = b.block_type.shape[0]
    TILE_N: gl.constexpr = b.block_type.shape[1]
    gl.static_assert(STAGES >= 2, "with one stage nothing is fetched before the first wait")
    tile_row, tile_col = tile_of(gl.program_id(0), gl.cdiv(M, TILE_M), gl.cdiv(N, TILE_N), GROUP_M)
    row, col = tile_row * TILE_M, tile_col * TILE_N
    steps = gl.cdiv(K, TILE_K)

    a_tiles = gl.allocate_shared_memory(gl.float32, [STAGES, FOURS, TILE_M, 4], a.layout)
    b_tiles = gl.allocate_shared_memory(gl.float32, [STAGES, TILE_K, TILE_N], b.layout)
    arrived = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(STAGES):
        mbarrier.init(arrived.index(slot), count=1)
    for step in gl.static_range(STAGES - 1):
        if step < steps:
            fetch(a, b, step * TILE_K, row, col, a_tiles, b_tiles, arrived, step)

    acc = gl.zeros([TILE_M, TILE_N], gl.float32, LAYOUT)
    slot, free, phase = 0, STAGES - 1, 0
    for step in range(steps):
        mbarrier.wait(arrived.index(slot), phase)
        wait_for_all_threads()  # they have read the slot that is filled next
        if step + STAGES - 1 < steps:
            fetch(a, b, (step + STAGES - 1) * TILE_K, row, col, a_tiles, b_tiles, arrived, free)
        a_tile, b_tile = a_tiles.index(slot), b_tiles.index(slot)
        four = a_tile.slice(0, 1, 0).load(A_LAYOUT)
        right = b_tile.slice(0, 1, 0).load(LAYOUT)
        for i in gl.static_range(FOURS):
            left0, left1, left2, left3 = as_columns(four, LAYOUT)
            right1 = b_tile.slice(4 * i + 1, 1, 0).load(LAYOUT)
            acc += left0 * right
            right2 = b_tile.slice(4 * i + 2, 1, 0).load(LAYOUT)
            acc += left1 * right1
            right3 = b_tile.slice(4 * i + 3, 1, 0).load(LAYOUT)
            acc += left2 * right2
            if i + 1 < FOURS:
                four = a_tile.slice(i + 1, 1, 0).load(A_LAYOUT)
                right = b_tile.slice(4 * i + 4, 1, 0).load(LAYOUT)
            acc += left3 * right3
        free = slot
        slot += 1
        if slot == STAGES:
            slot = 0
            phase ^= 1

    rows = row + gl.arange(0, TILE_M, gl.SliceLayout(1, LAYOUT))
    cols = col + gl.arange(0, TILE_N, gl.SliceLayout(0, LAYOUT))
    places = c_ptr + rows[:, None].to(gl.int64) * stride_cm + cols[None, :]
    gl.store(places, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


BARRIER_BYTES = 64
"""Room for the barriers that say which tiles have arrived, 8 bytes each."""


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
        parts: pieces in which a tile of C goes through shared memory; 0 if it goes straight from registers.
    """

    tile_m: int
    tile_n: int
    tile_k: int
    num_warps: int
    num_stages: int
    persistent: bool = False
    parts: int = 1

    def tiles(self, m: int, n: int) -> int:
        """Tiles that cover an m x n matrix."""
        return triton.cdiv(m, self.tile_m) * triton.cdiv(n, self.tile_n)

    def shared_bytes(self, itemsize: int) -> int:
        """Most shared memory that it takes: its stages, the piece of C that is stored, and the stages' barriers.

        A persistent program stores one tile while the next ones arrive; any other stores C where its stages were.
        """
        stages = self.num_stages * (self.tile_m + self.tile_n) * self.tile_k * itemsize
        stored = self.tile_m * self.tile_n // self.parts * itemsize if self.parts else 0
        return (stages + stored if self.persistent else max(stages, stored)) + BARRIER_BYTES


LARGE = Plan(128, 256, 64, 8, 3, persistent=True, parts=2)
TENSOR_CORE_PLANS = {LARGE: 1.0, Plan(128, 128, 64, 8, 3): 0.97, Plan(64, 128, 64, 4, 4): 0.8}
"""Plans for 16-bit inputs, and the speed of each relative to the first where all of the GPU is busy (on an H200)."""

STEPS_BETWEEN_TILES = 256
"""Starting and storing a tile that nothing else hides costs as much as this many steps along k (on an H200)."""

FLOAT32_PLANS = {Plan(128, 256, 32, 8, 2, parts=0): 1.0, Plan(64, 64, 32, 4, 3, parts=0): 0.88}
"""The same for float32. `STEPS_BETWEEN_TILES` was not measured for it; the tensor cores' serves."""

ASSEMBLER_OPTIONS = "-O1"
"""What the assembler is told for `float32_kernel`. By default it moves more multiply-adds; N = 4096 takes 6% longer."""

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@lru_cache
def tensor_core_plan(m: int, n: int, k: int, device: Device) -> Plan:
    """The plan for a 16-bit product.

    Raises:
        CannotMultiply: no plan fits the device's shared memory.
    """
    return quickest(TENSOR_CORE_PLANS, 2, (m, n, k), device)


@lru_cache
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
        least = min(plan.shared_bytes(itemsize) for plan in plans)
        raise CannotMultiply(
            f"{device.name} has {device.shared_bytes:,} bytes of shared memory per block, and the smallest tiles need "
            f"{least:,}: use the lab's matmul_kernel"
        )
    return min(fitting, key=time)


def check(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, device: Device) -> None:
    """Refuse what the kernels cannot take, before anything is launched.

    Raises:
        CannotMultiply: with the value, and what to do.
    """
    if device.kind != "gpu":
        raise CannotMultiply("no CUDA GPU found here, and these kernels are for one: use torch.matmul")
    if a.dtype == torch.bfloat16 and not device.has_bf16:
        raise CannotMultiply(
            f"{device.name} has no bfloat16 arithmetic: use the lab's matmul_kernel with float16 or float32"
        )
    if (device.capability or (0, 0)) < NEEDS:
        raise CannotMultiply(
            f"{device.name} has no TMA, as GPUs from compute capability {NEEDS[0]}.{NEEDS[1]} on have: "
            "use the lab's matmul_kernel"
        )
    if a.dtype == torch.float32 and not hasattr(gl, "static_range"):
        raise CannotMultiply(
            f"Triton {triton.__version__} cannot compile the float32 kernel: install Triton 3.5 or newer"
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


def float32_layouts(plan: Plan) -> dict[str, Any]:
    """Which thread of a float32 program holds what: of C, and of a piece of A, (1, TILE_M, 4).

    A warp's threads stand 4 x 8. In C each holds 4 columns side by side at a time, which is one 16-byte load of B; of A
    it holds the rows that it has of C, and four elements along k, which is one as well.
    """
    rows_of_a_warp = 32
    warps = [plan.tile_m // rows_of_a_warp, plan.num_warps * rows_of_a_warp // plan.tile_m]
    layout = gl.BlockedLayout([1, 4], [4, 8], warps, [1, 0])
    row_bits = [[0, 1 << bit, 0] for bit in range(plan.tile_m.bit_length() - 1)]
    warp_bits = warps[0].bit_length() - 1
    a_layout = gl.DistributedLinearLayout(
        reg_bases=[[0, 0, 1], [0, 0, 2], *row_bits[2 + warp_bits :]],
        lane_bases=[[0, 0, 0]] * 3 + row_bits[:2],
        warp_bases=[[0, 0, 0]] * (warps[1].bit_length() - 1) + row_bits[2 : 2 + warp_bits],
        block_bases=[],
        shape=[1, plan.tile_m, 4],
    )
    return {"LAYOUT": layout, "A_LAYOUT": a_layout}


def plain_shared(rank: int) -> gl.NVMMASharedLayout:
    """Tiles as they are, row after row: threads read along rows, so no swizzle is needed."""
    return gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=rank)


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
    multiply(a, b, out, plan)
    return out


@remembered
def multiply(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, plan: Plan | None) -> bool:
    """Do what `matmul` does; return whether it took a launch alone, and no copy."""
    device = detect_device()
    check(a, b, out, device)
    (m, k), n = a.shape, b.shape[1]
    if a.dtype == torch.float32:
        left, right, result = in_fours(a), copied(b), out if out.stride(1) == 1 else aligned(out)
        launch_float32(left, right, result, plan or float32_plan(m, n, k, device))
    else:
        left, right, result = copied(a), copied(b), aligned(out)
        launch(left, right, result, plan or tensor_core_plan(m, n, k, device), device)
    if result is not out:
        out.copy_(result)
    return left is a and right is b and result is out


def copied(x: torch.Tensor) -> torch.Tensor:
    """`x` if a descriptor can take it, else a copy with padded rows."""
    fit = aligned(x)
    return x if fit is x else fit.copy_(x)


def in_fours(a: torch.Tensor) -> torch.Tensor:
    """`a` if a descriptor can take it in fours along k, else a copy with zeros up to a multiple of four columns."""
    m, k = a.shape
    if k % 4 == 0:
        return copied(a)
    padded = a.new_zeros(m, triton.cdiv(k, 4) * 4)
    padded[:, :k] = a
    return padded


def launch(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, plan: Plan, device: Device) -> None:
    """Launch the tensor-core kernel of a plan."""
    (m, k), n = a.shape, b.shape[1]
    tile_m, tile_n, tile_k = plan.tile_m, plan.tile_n, plan.tile_k
    matrices = (
        TensorDescriptor.from_tensor(a, [tile_m, tile_k]),
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
        tile_kernel[(tiles,)](*matrices, m, n, k, **constants, **options)


def launch_float32(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, plan: Plan) -> None:
    """Launch `float32_kernel`; `a` has a multiple of four columns."""
    (m, columns), (k, n) = a.shape, b.shape
    fours = GluonDescriptor(
        a, [columns // 4, m, 4], [4, a.stride(0), 1], [plan.tile_k // 4, plan.tile_m, 4], plain_shared(3)
    )
    right = GluonDescriptor(b, [k, n], [b.stride(0), 1], [plan.tile_k, plan.tile_n], plain_shared(2))
    float32_kernel[(plan.tiles(m, n),)](
        fours, right, out, m, n, k, out.stride(0),
        GROUP_M=GROUP_M, STAGES=plan.num_stages, **float32_layouts(plan),
        num_warps=plan.num_warps, ptx_options=ASSEMBLER_OPTIONS,
    )  # fmt: skip
