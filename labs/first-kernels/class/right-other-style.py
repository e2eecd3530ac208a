# Everything right, written otherwise: a helper with @triton.jit in an added cell, other argument names, a loop over rows,
# an accumulated scalar, an exploratory cell that fails. Points: all.

# %% solve=gap-predictions,f-answers,h-names,i-kernels,gap-causes

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=a-kernel
@triton.jit
def add_kernel(first, second, result, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(first + i, i < count), tl.load(second + i, i < count)
    tl.store(result + i, TERM_ADD, i < count)

# %% add after=a-test
# How large may BLOCK be?
print(nothing_of_that_name)

# %% add after=a-test
@triton.jit
def tile(ptr, i, j, step, one, rows, cols):
    """A tile of a matrix, zero outside."""
    return tl.load(ptr + i * step + j * one, (i < rows) & (j < cols), 0.0)

# %% replace=b-kernel
@triton.jit
def add_matrices_kernel(
    a, b, c, M, N, am, an, bm, bn, cm, cn, ROWS: tl.constexpr, COLS: tl.constexpr
):
    j = (tl.program_id(1) * COLS + tl.arange(0, COLS)).expand_dims(0)
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).expand_dims(1)
    x = tile(a, i, j, am, an, M, N)
    y = tile(b, i, j, bm, bn, M, N)
    tl.store(c + i * cm + j * cn, TERM_ADD_TILE, (i < M) & (j < N))

# %% replace=c-kernel
def passes(times, rows, cols, itemsize):
    return itemsize * rows * (times * cols + 2)


def two_pass_bytes(rows, cols, itemsize):
    return passes(4, rows, cols, itemsize)


def one_pass_bytes(rows, cols, itemsize):
    return passes(2, rows, cols, itemsize)


@triton.jit
def shift_scale_kernel(
    source, more, times, target, M, N, sm, sn, tm, tn, ROWS: tl.constexpr, COLS: tl.constexpr
):
    j = tl.program_id(1) * COLS + tl.arange(0, COLS)
    for k in range(ROWS):
        i = tl.program_id(0) * ROWS + k
        there = (j < N) & (i < M)
        x = tl.load(source + i * sm + j * sn, there, 0.0).to(tl.float32)
        shift = tl.load(more + i, i < M, 0.0).to(tl.float32)
        f = tl.load(times + i, i < M, 0.0).to(tl.float32)
        tl.store(target + i * tm + j * tn, f * (TERM_SHIFTED), there)

# %% replace=d-kernel
@triton.jit
def sum_kernel(x, sums, N, share, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    total = 0.0
    for step in range(tl.cdiv(share, BLOCK)):
        lane = step * BLOCK + tl.arange(0, BLOCK)
        mine = (lane < share) & (p * share + lane < N)
        total += tl.sum(tl.load(x + p * share + lane, mine, 0.0).to(tl.float32), 0)
    tl.store(sums + p, total)

# %% replace=e-kernels
@triton.jit
def total_kernel(x, total, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total + tl.zeros((BLOCK,), tl.int32), tl.load(x + i, i < N, 0.0).to(tl.float32), i < N)


@triton.jit
def histogram_kernel(x, counts, N, BINS, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < N, 0)
    kept = (i < N) & (v >= 0) & (v < BINS)
    tl.atomic_add(counts + tl.where(kept, v, 0), tl.where(kept, 1, 0))

# %% replace=g-functions
from bisect import bisect_right
from statistics import median


def overhead_us(times_us):
    return median(times_us[: len(times_us) // 2])


def flat_until(sizes, times_us):
    limit = TERM_FLAT * overhead_us(times_us)
    steep = [k for k, time in enumerate(times_us) if k and time > limit]
    return sizes[steep[0] - 1] if steep else sizes[-1]


def break_even(overhead, bytes_per_number, gb_per_s):
    return gb_per_s * 1e9 * overhead * 1e-6 / bytes_per_number


def regime(flops, moved_bytes, launches, device):
    fixed = launches * device["overhead_us"]
    memory = moved_bytes / (device["gb_per_s"] * 1e3)
    compute = flops / (device["gflop_per_s"] * 1e3)
    if fixed >= memory and fixed >= compute:
        return "overhead"
    return "memory" if memory >= compute else "compute"

# %% replace=j-config
def tile_config(shape, dtype):
    return dict(ROWS=8, COLS=256, num_warps=4)

# %% replace=k-tests
def cases():
    """Matrices in other layouts, with their vectors."""
    numbers = torch.Generator().manual_seed(1)
    large = torch.randn(22, 111, generator=numbers).to(DEVICE)
    shift, scale = torch.randn(2, 22, generator=numbers).to(DEVICE)
    yield large, shift, scale
    yield large[:11, :37].T[:11].contiguous().T[:9], shift[:9].clone(), scale[:9].clone()
    yield large[::2, ::3], shift[:11].clone(), scale[:11].clone()
    yield (60_000 + large).half(), (TERM_LARGER_SHIFT + shift).half(), torch.full_like(scale, 0.25).half()


def test_shift_scale(shift_scale):
    for x, shift, scale in cases():
        right = right_shift_scale(x.double(), shift.double(), scale.double())
        error = (shift_scale(x, shift, scale).double() - right).abs() / right.abs().clamp(min=1.0)
        if not bool((error < (1e-5 if x.dtype == torch.float32 else 2e-3)).all()):
            return False
    return True

# %% replace=challenge-kernel
@triton.jit
def private_histogram_kernel(x, partial, N, BINS: tl.constexpr, BLOCK: tl.constexpr):
    p, P = tl.program_id(0), tl.num_programs(0)
    bins = tl.arange(0, BINS)
    counts = tl.zeros((BINS,), tl.int32)
    for k in range(p, tl.cdiv(N, BLOCK), P):
        i = k * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + i, i < N, -1)
        counts += tl.sum((v[:, None] == bins[None, :]).to(tl.int32), 0)
    tl.store(partial + p * BINS + bins, counts)
