"""Where the lab's race leads: the course's fastest convolution, in 16 bits, on images with the channels last.

A convolution is a matrix product: filters times the windows of the images. Nothing copies the windows ("im2col"); the
kernels find them where they are.

- `copy_kernel` lets the TMA of Hopper GPUs find them. A tile of output pixels is a box: some images, some
  rows, some columns. For one tap of the filter, the pixels that the box needs are a box of the input too, shifted by
  the tap. The engine brings the box in one copy, and fills what is in the padding with zeros, so the loop has no masks
  and no addresses. With stride 2, the input is seen as four images of half the size, one for each parity of row and
  column; then the box is shifted in one of the four. A 1 x 1 convolution has one tap, and all its pixels are one long
  row.
- The product is taken as filters x pixels. `tl.dot` can then read both operands where the TMA put them. In the
  other order, Triton would load the box into registers first, because its shape must change from a box to a matrix.
- `gather_kernel` computes an address for each pixel and masks the padding. It takes every shape: strides, groups,
  channels that the engine cannot take. For few channels, as in a first layer with 3, it treats the taps of one filter
  row as one run of neighboring numbers, because with the channels last they are neighbors in memory.

Neither kernel divides in its loop over taps and channels: the next tap is found by counting.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from mlsys.errors import UserError
from mlsys.measure.device import Device, detect_device
from mlsys.ops.window import conv_output_size
from mlsys.runtime.launches import remembered

NEEDS_FOR_COPIES = (9, 0)
"""Compute capability from which GPUs have a TMA."""

NEEDS = (8, 0)
"""Compute capability from which Triton uses tensor cores."""

TILE_K = 64
"""Channels of a step of `copy_kernel`: 128 bytes, the widest row that the TMA swizzles."""

MOST_ELEMENTS = 2**31
"""Elements that 32-bit offsets reach."""

DTYPES = (torch.float16, torch.bfloat16)


class CannotConvolve(UserError, ValueError):
    """Images, filters or settings that the convolution does not take, or a device that cannot compute it."""


@triton.jit
def next_tap(c, r, s, step, C, S):
    """Return the place of the next step: on along the channels, then to the next tap, then to the next filter row."""
    c += step
    tap_ends = c >= C
    c = tl.where(tap_ends, 0, c)
    s += tap_ends.to(tl.int32)
    row_ends = s >= S
    return c, r + row_ends.to(tl.int32), tl.where(row_ends, 0, s)


@triton.jit
def convolve_box(
    x, w, out, bias_ptr, number, P_BOXES, Q_BOXES, C, K,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    IMAGES: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, FILTERS: tl.constexpr, STEP: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """Compute one tile: FILTERS of the K filters at a box of IMAGES x ROWS x COLS pixels."""
    PIXELS: tl.constexpr = IMAGES * ROWS * COLS
    # Programs with neighboring numbers share a box of pixels, which the L2 then reads from memory once.
    filter_tiles = tl.cdiv(K, FILTERS)
    k = number % filter_tiles * FILTERS
    box = number // filter_tiles
    q = box % Q_BOXES * COLS
    p = box // Q_BOXES % P_BOXES * ROWS
    n = box // Q_BOXES // P_BOXES * IMAGES
    acc = tl.zeros((FILTERS, PIXELS), tl.float32)
    c, r, s = 0, 0, 0
    for step in range(0, R * S * C, STEP):
        if STRIDE == 1:
            pixels = x.load([n, p + r - PADDING, q + s - PADDING, c])
        else:  # row 2 i + parity of an image is row i of the image of that parity
            row, col = r + PADDING, s + PADDING  # 2 PADDING more than the tap's shift, so never negative
            pixels = x.load([n, p + row // 2 - PADDING, row % 2, q + col // 2 - PADDING, col % 2 * C + c])
        acc = tl.dot(w.load([k, step]), pixels.reshape(PIXELS, STEP).T, acc)
        c, r, s = next_tap(c, r, s, STEP, C, S)
    if BIAS:
        filters = k + tl.arange(0, FILTERS)
        acc += tl.load(bias_ptr + filters, mask=filters < K, other=0.0).to(tl.float32)[:, None]
    if RELU:
        acc = tl.maximum(acc, 0.0, propagate_nan=tl.PropagateNan.ALL)
    out.store([n, p, q, k], acc.to(out.dtype).T.reshape(IMAGES, ROWS, COLS, FILTERS))


@triton.jit(do_not_specialize=("P_BOXES", "Q_BOXES", "TILES"))
def copy_kernel(
    x, w, out, bias_ptr, P_BOXES, Q_BOXES, TILES, C, K,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    IMAGES: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, FILTERS: tl.constexpr, STEP: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr, PERSISTENT: tl.constexpr,
):  # fmt: skip
    """Convolve C channels with K filters by descriptors; a persistent program computes one tile after the other."""
    if PERSISTENT:
        for number in tl.range(tl.program_id(0), TILES, tl.num_programs(0), flatten=True):
            convolve_box(
                x, w, out, bias_ptr, number, P_BOXES, Q_BOXES, C, K,
                R, S, STRIDE, PADDING, IMAGES, ROWS, COLS, FILTERS, STEP, BIAS, RELU,
            )  # fmt: skip
    else:
        convolve_box(
            x, w, out, bias_ptr, tl.program_id(0), P_BOXES, Q_BOXES, C, K,
            R, S, STRIDE, PADDING, IMAGES, ROWS, COLS, FILTERS, STEP, BIAS, RELU,
        )  # fmt: skip


@triton.jit
def gather_kernel(
    x_ptr, w_ptr, out_ptr, bias_ptr, M, H, W, P, Q, C, K, C_ALL, K_ALL, RUN, TAPS,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, MERGED: tl.constexpr,
    PIXELS: tl.constexpr, FILTERS: tl.constexpr, STEP: tl.constexpr, BIAS: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """Convolve by addresses: tiles of PIXELS of the M pixels x FILTERS of the K filters of one group.

    A step is STEP of RUN neighboring numbers: the C channels of one tap, or with MERGED all S taps of a filter row.
    TAPS runs make a filter row.
    """
    filter_tiles = tl.cdiv(K, FILTERS)
    number = tl.program_id(0)
    k = number % filter_tiles * FILTERS + tl.arange(0, FILTERS)
    m = number // filter_tiles * PIXELS + tl.arange(0, PIXELS)
    group = tl.program_id(1)
    q = m % Q
    p = m // Q % P
    row = p * STRIDE - PADDING
    col = q * STRIDE - PADDING
    start = ((m // Q // P * H + row) * W + col) * C_ALL + group * C
    lane = tl.arange(0, STEP)
    weights = w_ptr + (group * K + k)[:, None] * (R * S * C)
    acc = tl.zeros((PIXELS, FILTERS), tl.float32)
    c, r, s = 0, 0, 0
    for _ in range(R * TAPS * tl.cdiv(RUN, STEP)):
        along = c + lane
        in_rows = (m < M) & (row + r >= 0) & (row + r < H)
        if MERGED:  # a run may be partly in the padding
            place = (col * C)[:, None] + along[None, :]
            inside = in_rows[:, None] & (place >= 0) & (place < W * C) & (along < RUN)[None, :]
        else:
            inside = (in_rows & (col + s >= 0) & (col + s < W))[:, None] & (along < RUN)[None, :]
        pixels = tl.load(x_ptr + start[:, None] + ((r * W + s) * C_ALL + along)[None, :], mask=inside, other=0.0)
        taken = (k < K)[:, None] & (along < RUN)[None, :]
        filters = tl.load(weights + ((r * TAPS + s) * RUN + along)[None, :], mask=taken, other=0.0)
        acc = tl.dot(pixels, filters.T, acc)
        c, r, s = next_tap(c, r, s, STEP, RUN, TAPS)
    if BIAS:
        acc += tl.load(bias_ptr + group * K + k, mask=k < K, other=0.0).to(tl.float32)[None, :]
    if RELU:
        acc = tl.maximum(acc, 0.0, propagate_nan=tl.PropagateNan.ALL)
    to = out_ptr + m[:, None] * K_ALL + (group * K + k)[None, :]
    tl.store(to, acc.to(out_ptr.dtype.element_ty), mask=(m < M)[:, None] & (k < K)[None, :])


@dataclass(frozen=True)
class Plan:
    """How a convolution is computed.

    Attributes:
        pixels: output pixels of a tile.
        filters: filters of a tile.
        num_warps: warps of a program.
        num_stages: steps that are loaded at once.
        copies: by the TMA; else by addresses.
        step: numbers of a step along taps and channels.
        persistent: as many programs as the GPU has multiprocessors, each with one tile after the other.
    """

    pixels: int
    filters: int
    num_warps: int
    num_stages: int
    copies: bool = True
    step: int = TILE_K
    persistent: bool = False

    @property
    def shared_bytes(self) -> int:
        """Most shared memory of `copy_kernel`: its stages, the tile that is stored, and barriers.

        A persistent program stores one tile while the next ones arrive; any other stores where its stages were.
        """
        stages = self.num_stages * (self.pixels + self.filters) * self.step * 2
        stored = self.pixels * self.filters * 2
        return (stages + stored if self.persistent else max(stages, stored)) + BARRIER_BYTES

    def __str__(self) -> str:
        how = f"{'copies' if self.copies else 'addresses'}{', persistent' if self.persistent else ''}"
        return f"{self.filters}x{self.pixels}x{self.step} w{self.num_warps} s{self.num_stages} {how}"


@dataclass(frozen=True)
class Layer:
    """Sizes of a convolution: `n` images of `c` channels and `h` x `w` pixels, `k` filters of `r` x `s` taps."""

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    stride: int = 1
    padding: int = 0
    groups: int = 1

    @cached_property
    def p(self) -> int:
        """Rows of the result."""
        return conv_output_size(self.h, self.r, self.stride, self.padding)

    @cached_property
    def q(self) -> int:
        """Columns of the result."""
        return conv_output_size(self.w, self.s, self.stride, self.padding)

    @property
    def pixels(self) -> int:
        """Pixels of all results."""
        return self.n * self.p * self.q

    @property
    def one_tap(self) -> bool:
        """Whether it is a product for each pixel."""
        return self.r == self.s == 1 and self.padding == 0

    @property
    def fits_copies(self) -> bool:
        """Whether boxes of the input serve: whole steps of channels, one group, stride 1, or 2 on an even image."""
        whole = self.groups == 1 and self.c % TILE_K == 0 and self.k % 8 == 0
        halves = self.stride == 2 and self.h % 2 == 0 and self.w % 2 == 0
        return whole and (self.one_tap or self.stride == 1 or halves)

    def box(self, pixels: int) -> tuple[int, int, int]:
        """Images, rows and columns of a box of so many output pixels, with the least that is outside.

        Of equal ones, the box that is nearest to a square: its windows overlap most.
        """
        if self.one_tap and self.stride == 1:
            return 1, 1, pixels
        sides = [1 << power for power in range(pixels.bit_length())]
        boxes = [(pixels // (rows * cols), rows, cols) for rows, cols in product(sides, sides) if rows * cols <= pixels]

        def waste(box: tuple[int, int, int]) -> tuple[int, int]:
            return prod(self.boxes(box)), box[1] + box[2] + 2 * box[0]

        return min((box for box in boxes if box[0] <= triton.next_power_of_2(self.n)), key=waste)

    def boxes(self, box: tuple[int, int, int]) -> tuple[int, int, int]:
        """Boxes along images, rows and columns."""
        extent = (1, 1, self.pixels) if self.one_tap and self.stride == 1 else (self.n, self.p, self.q)
        images, rows, cols = (triton.cdiv(size, side) for size, side in zip(extent, box, strict=True))
        return images, rows, cols


TILES = (  # filters, pixels, warps
    (64, 64, 4),
    (64, 128, 4),
    (64, 256, 4),
    (128, 64, 4),
    (128, 128, 4),
    (128, 128, 8),
    (128, 256, 8),
    (256, 128, 8),
)
"""Tiles of `copy_kernel` whose sums fit the registers."""

PROGRAMS_AT_ONCE = (1, 2, 3)
"""Programs that may share a multiprocessor, each with its part of the shared memory."""

MOST_STAGES = 6

WORTH_TRYING = 1.8
"""Times the least estimate that a candidate may have."""

BARRIER_BYTES = 512
RESERVED_BYTES = 1024
"""Shared memory that the system keeps per program."""


def candidates(layer: Layer, device: Device) -> list[Plan]:
    """The plans that may suit a layer on a device; `bench.py` measures them all."""
    if not layer.fits_copies or (device.capability or (0, 0)) < NEEDS_FOR_COPIES:
        return gather_plans(layer)
    steps = layer.r * layer.s * layer.c // TILE_K
    found = {}
    for (filters, pixels, warps), programs in product(TILES, PROGRAMS_AT_ONCE):
        room = (device.shared_bytes + RESERVED_BYTES) // programs - RESERVED_BYTES
        for persistent in (False, True):
            if persistent and (programs > 1 or filters * pixels < 64 * 256):
                continue
            most = MOST_STAGES if persistent else min(steps, MOST_STAGES)
            stages = [
                count
                for count in range(min(2, most), most + 1)
                if Plan(pixels, filters, warps, count, persistent=persistent).shared_bytes <= room
            ]
            if stages and filters <= max(64, layer.k):
                found[Plan(pixels, filters, warps, stages[-1], persistent=persistent)] = None
    least = min(estimate(layer, plan, device) for plan in found)
    return [plan for plan in found if estimate(layer, plan, device) <= WORTH_TRYING * least]


def gather_plans(layer: Layer) -> list[Plan]:
    """Plans without the TMA, the usual one first."""
    filters = max(16, min(64 if layer.c < TILE_K else 128, triton.next_power_of_2(layer.k // layer.groups)))
    step = 32 if layer.c // layer.groups < TILE_K else TILE_K
    tiles = [(128, 4), (64, 4), (128, 8), (256, 8)]
    return [Plan(pixels, filters, warps, 3, copies=False, step=step) for pixels, warps in tiles]


@lru_cache
def plan_of(layer: Layer, device: Device) -> Plan:
    """The plan with the least estimated time."""
    plans = candidates(layer, device)
    if not plans[0].copies:
        return plans[0]
    return min(plans, key=lambda plan: estimate(layer, plan, device))


def estimate(layer: Layer, plan: Plan, device: Device) -> float:
    """Estimated time of a plan, in steps of 128 x 128 along the channels.

    A multiprocessor computes its tiles in turns, as many at once as its shared memory holds. Tiles that run together
    share the tensor cores, so their products take as long as one after the other; but a step never takes less than the
    wait for its data, which the stages share. Around its steps a tile has to start and to store its sums, and a turn
    has to begin; a persistent program begins once.
    """
    tiles = prod(layer.boxes(layer.box(plan.pixels))) * triton.cdiv(layer.k, plan.filters)
    each = triton.cdiv(tiles, device.multiprocessors or 1)
    room = (device.shared_bytes + RESERVED_BYTES) // (plan.shared_bytes + RESERVED_BYTES)
    turns = each if plan.persistent else triton.cdiv(each, max(1, min(room, MOST_TOGETHER)))
    area = plan.pixels * plan.filters / 128**2
    steps = layer.r * layer.s * layer.c / TILE_K
    products = each * area * steps / SPEED[plan.pixels * plan.filters]
    waits = turns * steps * WAIT / plan.num_stages
    ends = area * (3 * each if plan.persistent else 3 * each + turns)
    return max(products, waits) + ends


MOST_TOGETHER = 3
"""Most programs that one multiprocessor runs at once: registers end it before shared memory does."""

WAIT = 2.0
"""Wait for the data of a step, in steps of 128 x 128."""

SPEED = {64 * 64: 0.6, 64 * 128: 0.8, 64 * 256: 0.85, 128 * 128: 0.85, 128 * 256: 1.0}
"""Speed of a tile by its area, relative to the largest.

These numbers and those in `estimate` were fitted to an H200's times of 354 plans on 22 layers of ResNet-50, which
`bench.py` measured: the plan with the least estimate takes 1.027 times as long as the best one, in the geometric mean,
and 1.10 times at most.
"""


def layer_of(x: torch.Tensor, w: torch.Tensor, stride: int, padding: int, groups: int) -> Layer:
    """The sizes of a call.

    Raises:
        CannotConvolve: shapes that do not go together, with what to give.
    """
    for name, value, least in (("stride", stride, 1), ("padding", padding, 0), ("groups", groups, 1)):
        if type(value) is not int or value < least:
            raise CannotConvolve(f"{name} is {value!r}: give one integer, {least} or more, for both directions")
    return layer_of_shapes(x.shape, w.shape, stride, padding, groups)


@lru_cache
def layer_of_shapes(images: tuple[int, ...], filters: tuple[int, ...], stride: int, padding: int, groups: int) -> Layer:
    """The sizes of a call with tensors of these shapes.

    Raises:
        CannotConvolve: shapes that do not go together, with what to give.
    """
    shapes = f"shapes {tuple(images)} and {tuple(filters)}"
    if len(images) != 4 or len(filters) != 4:
        raise CannotConvolve(f"{shapes}: give images (n, c, h, w) and filters (k, c / groups, r, s)")
    (n, c, h, width), (k, c_group, r, s) = images, filters
    if 0 in (*images, *filters):
        raise CannotConvolve(f"{shapes}: every side must be 1 or more")
    if c % groups or k % groups or c // groups != c_group:
        raise CannotConvolve(
            f"{c} channels, {k} filters of {c_group} channels, {groups} groups: groups must divide both, and "
            "a filter has channels / groups"
        )
    if r > h + 2 * padding or s > width + 2 * padding:
        raise CannotConvolve(
            f"a filter of {r} x {s} taps is larger than the image of {h} x {width} with padding {padding}"
        )
    return Layer(n, c, h, width, k, r, s, stride, padding, groups)


def check(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor | None, layer: Layer) -> None:
    """Refuse what the kernels do not take, before anything is launched.

    Raises:
        CannotConvolve: with the value, and what to do.
    """
    tensors = {"x": x, "w": w} | ({} if bias is None else {"bias": bias}) | ({} if out is None else {"out": out})
    if x.dtype not in DTYPES:
        raise CannotConvolve(f"x is {x.dtype}: give float16 or bfloat16")
    for name, tensor in tensors.items():
        if tensor.dtype != x.dtype or tensor.device != x.device:
            raise CannotConvolve(
                f"{name} is {tensor.dtype} on {tensor.device}, x is {x.dtype} on {x.device}: give both alike"
            )
        if tensor.dim() == 4 and not tensor.is_contiguous(memory_format=torch.channels_last):
            raise CannotConvolve(
                f"{name} of shape {tuple(tensor.shape)} has strides {tensor.stride()}: the channels must be last; "
                "call .to(memory_format=torch.channels_last)"
            )
    if bias is not None and (bias.shape != (layer.k,) or not bias.is_contiguous()):
        raise CannotConvolve(f"bias has shape {tuple(bias.shape)}: give {layer.k} neighboring numbers, one per filter")
    result = (layer.n, layer.k, layer.p, layer.q)
    if out is not None and out.shape != result:
        raise CannotConvolve(f"out has shape {tuple(out.shape)}: the result has {result}")
    largest = max(x.numel(), w.numel(), prod(result))
    if largest >= MOST_ELEMENTS:
        raise CannotConvolve(f"a tensor of {largest:,} elements: give fewer images at a time, below {MOST_ELEMENTS:,}")


def check_device(device: Device, dtype: torch.dtype) -> None:
    """Refuse a device that cannot compute it.

    Raises:
        CannotConvolve: with the device, and what to do.
    """
    if device.kind != "gpu":
        raise CannotConvolve("no CUDA GPU found here, and these kernels are for one: use torch.nn.functional.conv2d")
    if (device.capability or (0, 0)) < NEEDS or (dtype == torch.bfloat16 and not device.has_bf16):
        raise CannotConvolve(
            f"{device.name} has no tensor cores that Triton uses for {dtype}: use the lab's conv_kernel"
        )


def convolve(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
    relu: bool = False,
    out: torch.Tensor | None = None,
    plan: Plan | None = None,
) -> torch.Tensor:
    """Return the convolution of images with filters, plus the bias, and with ReLU if asked for; summed in float32.

    Args:
        x: (n, c, h, w), float16 or bfloat16, channels last in memory.
        w: (k, c / groups, r, s), likewise.
        bias: (k,), or none.
        stride: step of the window in both directions.
        padding: rows and columns of zeros on each side.
        groups: groups of channels that are convolved apart.
        relu: whether negative results become 0.
        out: (n, k, p, q) for the result, channels last.
        plan: how; by default the rule chooses.

    Raises:
        CannotConvolve: a shape, a stride, a dtype or a device that the kernels do not take.
    """
    layer = layer_of(x, w, stride, padding, groups)
    if out is None:
        shape = (layer.n, layer.k, layer.p, layer.q)
        out = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
    convolve_into(x, w, bias, out, layer, plan, relu)
    return out


@remembered
def convolve_into(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None,
    out: torch.Tensor,
    layer: Layer,
    plan: Plan | None,
    relu: bool,
) -> None:
    """Write the convolution into `out`, after a check that the kernels can take all of it."""
    check(x, w, bias, out, layer)
    device = detect_device()
    check_device(device, x.dtype)
    launch(x, w, bias, out, layer, plan or plan_of(layer, device), device, relu)


def launch(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None,
    out: torch.Tensor,
    layer: Layer,
    plan: Plan,
    device: Device,
    relu: bool,
) -> None:
    """Launch the kernel of a plan."""
    options = {"num_warps": plan.num_warps, "num_stages": plan.num_stages}
    constants = {"BIAS": bias is not None, "RELU": relu, "FILTERS": plan.filters, "STEP": plan.step}
    constants |= {"R": layer.r, "S": layer.s, "PADDING": layer.padding}
    given = out if bias is None else bias  # an address at least
    images, filters, results = (channels_last(tensor) for tensor in (x, w, out))
    if plan.copies:
        box = layer.box(plan.pixels)
        n_boxes, p_boxes, q_boxes = layer.boxes(box)
        views, stride = boxed(images, results, layer), 1 if layer.one_tap else layer.stride
        blocks = (*box, plan.step) if stride == 1 else (box[0], box[1], 1, box[2], plan.step)
        tiles = n_boxes * p_boxes * q_boxes * triton.cdiv(layer.k, plan.filters)
        programs = min(tiles, device.multiprocessors or 1) if plan.persistent else tiles
        copy_kernel[(programs,)](
            TensorDescriptor.from_tensor(views[0], list(blocks)),
            TensorDescriptor.from_tensor(filters.reshape(layer.k, -1), [plan.filters, plan.step]),
            TensorDescriptor.from_tensor(views[1], [*box, plan.filters]),
            given, p_boxes, q_boxes, tiles, layer.c, layer.k,
            STRIDE=stride, IMAGES=box[0], ROWS=box[1], COLS=box[2], PERSISTENT=plan.persistent, **constants, **options,
        )  # fmt: skip
        return
    c, k = layer.c // layer.groups, layer.k // layer.groups
    merged = layer.groups == 1 and layer.c * layer.s <= plan.step
    run, taps = (layer.s * c, 1) if merged else (c, layer.s)
    grid = (triton.cdiv(layer.pixels, plan.pixels) * triton.cdiv(k, plan.filters), layer.groups)
    gather_kernel[grid](
        images, filters, results, given,
        layer.pixels, layer.h, layer.w, layer.p, layer.q, c, k, layer.c, layer.k, run, taps,
        STRIDE=layer.stride, MERGED=merged, PIXELS=plan.pixels, **constants, **options,
    )  # fmt: skip


def channels_last(x: torch.Tensor) -> torch.Tensor:
    """Return (n, h, w, c) of a tensor (n, c, h, w), with strides that torch may leave open along sides of 1."""
    n, c, h, w = x.shape
    return x.as_strided((n, h, w, c), (h * w * c, w * c, c, 1))


def boxed(images: torch.Tensor, results: torch.Tensor, layer: Layer) -> tuple[torch.Tensor, torch.Tensor]:
    """The views of images and results, channels last, of which the TMA takes boxes."""
    if layer.one_tap and layer.stride == 1:
        return images.reshape(1, 1, -1, layer.c), results.reshape(1, 1, -1, layer.k)
    if layer.one_tap:
        return images[:, :: layer.stride, :: layer.stride], results
    if layer.stride == 2:
        return images.view(layer.n, layer.h // 2, 2, layer.w // 2, 2 * layer.c), results
    return images, results
