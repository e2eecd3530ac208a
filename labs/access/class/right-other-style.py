# Everything right, written otherwise: a swizzled tile, a helper with @triton.jit in an added cell, tl.trans, a loop over
# channels one by one, a loop over the rows of a tile, an exploratory cell that fails. Points: all.

# %% solve=gap-predictions,gap-causes

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=a-sectors
by_hand = dict(zip(PATTERNS, (4, 5, TERM_EVERY_SECTORS, 32, 4, 1, 2, TERM_WIDE_SECTORS)))


def sectors(addresses, element_bytes):
    return len({byte // 32 for start in addresses for byte in range(start, start + element_bytes)})

# %% add after=a-test
# What about doubles?
print(sectors([8 * lane for lane in range(lanes)], 8))

# %% replace=b-schedule
def tile_schedule(stride_x, stride_y):
    """Columns of x, eight rows of four sectors at a time; the slots by the exclusive or."""
    side = range(32)
    loads = [tuple(i * stride_x + j for i in range(4 * part, 4 * part + 4) for j in range(8 * group, 8 * group + 8))
             for part in range(8) for group in range(4)]
    slots = [[32 * i + (j ^ ((i % 4) * 8 + i // 4)) for j in side] for i in side]
    stores = [tuple(j * stride_y + i for i in side) for j in side]
    return {"stores": stores, "slots": slots, "loads": loads}

# %% add after=b-test
@triton.jit
def place(row, col, stride_r, stride_c):
    """Offsets of a block of a matrix."""
    return row * stride_r + col * stride_c

# %% replace=c-kernel
@triton.jit
def transpose_kernel(x, y, M, N, xm, xn, ym, yn, ROWS: tl.constexpr, COLS: tl.constexpr):
    i = tl.program_id(TERM_ROW_AXIS) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(TERM_COL_AXIS) * COLS + tl.arange(0, COLS)
    block = tl.load(x + place(i[:, None], j[None, :], xm, xn), (i[:, None] < M) & (j[None, :] < N), 0.0)
    tl.store(y + place(j[:, None], i[None, :], ym, yn), tl.trans(block), (j[:, None] < N) & (i[None, :] < M))

# %% replace=d-functions
from math import gcd


def vector_width(first, stride, element_bytes, per_thread):
    aligned = gcd(first, stride * element_bytes, 16) // element_bytes
    return min(aligned, per_thread)


def padded_stride(cols, element_bytes):
    while cols * element_bytes % TERM_LINE:
        cols += 1
    return cols


def row_sectors(row, cols, stride, element_bytes):
    lanes = [(row * stride + col) * element_bytes for col in range(cols)]
    warps = [lanes[start : start + 32] for start in range(0, cols, 32)]
    return sum(len({byte // 32 for at in warp for byte in range(at, at + element_bytes)}) for warp in warps)

# %% replace=e-kernel
def layout_strides(layout, shape):
    sizes, strides, step = dict(zip("NCHW", shape)), {}, 1
    for index in reversed(layout):
        strides[index] = step
        step *= sizes[index]
    return tuple(strides[index] for index in "NCHW")


def walk_sectors(layout, walk, channels, element_bytes):
    stride = dict(zip("nchw", layout_strides(layout, (1, channels, 32, 32))))[walk]
    return len({byte // 32 for lane in range(32)
                for byte in range(lane * stride * element_bytes, (lane * stride + 1) * element_bytes)})


@triton.jit
def channel_sum_kernel(x, y, pixels, channels, xn, xp, xc, PIXELS: tl.constexpr, CHANNELS: tl.constexpr):
    n = tl.program_id(1)
    p = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    total = tl.zeros((PIXELS,), tl.float32)
    for c in range(channels):
        value = tl.load(x + n * xn + p * xp + c * xc, p < pixels, 0.0).to(tl.float32)
        total += TERM_ADDED
    tl.store(y + n * pixels + p, total / TERM_DIVISOR, p < pixels)

# %% replace=f-kernel
def gather_sectors(indices, dim, element_bytes):
    moved = 0
    for row in indices:
        moved += len({byte // 32 for byte in range(row * dim * element_bytes, (row + 1) * dim * element_bytes)})
    return moved


@triton.jit
def embedding_bag_kernel(table, index, offset, out, dim, step, BLOCK: tl.constexpr):
    b = tl.program_id(TERM_BAG_AXIS)
    j = tl.program_id(TERM_BLOCK_AXIS) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    first = tl.load(offset + b)
    for k in range(tl.load(offset + b + 1) - first):
        row = tl.load(index + first + k)
        if row >= 0:
            total += tl.load(table + row.to(tl.int64) * step + j, j < dim, 0.0).to(tl.float32)
    tl.store(out + b * dim + j, total, j < dim)

# %% replace=g-config
def tile_config(shape, dtype):
    return dict(ROWS=32, COLS=64, num_warps=4)

# %% replace=challenge-kernel
@triton.jit
def embedding_backward_kernel(d_out, index, offset, d_table, dim, BLOCK: tl.constexpr):
    b = tl.program_id(TERM_BAG_AXIS)
    j = tl.program_id(TERM_BLOCK_AXIS) * BLOCK + tl.arange(0, BLOCK)
    for k in range(tl.load(offset + b), tl.load(offset + b + 1)):
        row = tl.load(index + k)
        if row >= 0:
            gradient = tl.load(d_out + b * dim + j, j < dim, 0.0).to(tl.float32)
            tl.atomic_add(d_table + row * dim + j, gradient, j < dim)
