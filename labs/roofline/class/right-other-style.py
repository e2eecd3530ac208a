# Everything right, written otherwise: the least time instead of the median, numpy, a helper kernel in an added cell, other
# names, a ridge from the first and last points, a crossing found by bisection. Also an exploratory cell that fails. Points:
# all.

# %% solve=gap-predictions

# %% add after=gap-predictions
import numpy as np


def fastest(laps_s):
    return float(np.min(laps_s))

# %% replace=a-roofs
def copy_bandwidth(array_bytes, laps_s):
    read = written = array_bytes
    return (read + written) / fastest(laps_s)


def product_rate(side, laps_s):
    multiply_adds = side * side * side
    return 2 * multiply_adds / fastest(laps_s)


def ridge_point(bandwidth, peak):
    return peak / bandwidth


def attainable(intensity, bandwidth, peak):
    return peak if intensity >= peak / bandwidth else bandwidth * intensity

# %% add after=b-example
@triton.jit
def horner(x, coefficients_ptr, steps):
    """The polynomial at every element of a block."""
    value = x
    k = 0
    while k < steps:
        value = tl.fma(value, x, tl.load(coefficients_ptr + k).to(tl.float32) + tl.zeros_like(x))
        k += 1
    return value

# %% replace=b-kernel
@triton.jit
def poly_kernel(data, factors, out, width, down, across, steps, TILE: tl.constexpr):
    r = tl.program_id(0)
    j = tl.arange(0, TILE)
    start = data + r.to(tl.int64) * down
    x = tl.load(start + j * across, j < width, 0).to(tl.float32)
    value = horner(x, factors, steps)
    tl.store(out + r, tl.sum(value * (j < width).to(tl.float32)))


def poly_sums(x, coefficients):
    out = x.new_empty(x.shape[0], dtype=torch.float32)
    tile = 1 << (x.shape[1] - 1).bit_length()
    grid = lambda meta: (x.shape[0],)
    poly_kernel[grid](x, coefficients, out, x.shape[1], *x.stride(), len(coefficients), TILE=tile)
    return out

# %% add after=c-test
# What if the sweep is empty?
find_ridge([], [])

# %% replace=c-ridge
def chain_cost(rows, cols, steps, itemsize):
    elements = rows * cols
    flops = elements * steps * 2 + elements
    moved = elements * itemsize + steps * 4 + rows * 4
    return [flops, moved]


def find_ridge(intensities, rates):
    slope = (rates[0] / intensities[0] + rates[1] / intensities[1]) / 2
    level = (rates[-1] + rates[-2]) / 2
    return level / slope

# %% replace=d-config
def config(shape, dtype):
    tile = 1 << (shape[1] - 1).bit_length()
    return dict(TILE=tile, num_warps=max(1, min(8, tile // 1024)))

# %% replace=e-costs
def add_cost(n, itemsize):
    return n, itemsize * (n + n + n)


def softmax_cost(rows, cols, itemsize):
    elements = rows * cols
    return elements * 5, elements * itemsize * 2


def layernorm_cost(rows, cols, itemsize):
    return rows * cols * 8, cols * itemsize * (rows + rows + 2)


def matmul_cost(m, n, k, itemsize):
    A, B, C = m * k, k * n, m * n
    return 2 * C * k, (A + B + C) * itemsize


def embedding_cost(bags, bag_size, dim, itemsize):
    indices = bags * bag_size
    read = indices * 8 + indices * dim * itemsize
    return indices * dim, read + bags * dim * itemsize


def place(flops, moved, bandwidth, peak):
    if flops / moved < peak / bandwidth:
        return "memory", moved / bandwidth
    return "compute", flops / peak

# %% replace=f-batch
def time_ratio(batch, d_in, d_out, itemsize, bandwidth, peak):
    def least(rows):
        return place(*matmul_cost(rows, d_out, d_in, itemsize), bandwidth, peak)[1]

    return least(batch) / least(1)


def crossing_batch(d_in, d_out, itemsize, ridge):
    def compute_bound(batch):
        flops, moved = matmul_cost(batch, d_out, d_in, itemsize)
        return flops / moved >= ridge

    high = 1
    while not compute_bound(high):
        high *= 2
        if high > 2**50:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if compute_bound(middle) else (middle, high)
    return high

# %% replace=gap-causes
def largest_gaps(least_s, measured_s):
    gaps = [(measured_s[name] / least_s[name], name) for name in least_s]
    gaps.sort(reverse=True)
    return tuple(name for _, name in gaps[:2])


def cause(least_s, measured_s, eighth_s, in_order_s, passes_s):
    gap = measured_s / least_s
    if gap <= 1.25:
        return "above" if gap < 0.8 else "roof"
    best, word = 1.5, "kernel"
    if eighth_s is not None and eighth_s / (measured_s / 8) >= best:
        best, word = eighth_s / (measured_s / 8), "start"
    if in_order_s is not None and measured_s / in_order_s >= best:
        best, word = measured_s / in_order_s, "order"
    if passes_s is not None and passes_s / least_s >= best:
        word = "bytes"
    return word

# %% replace=why
The small product has the largest gap. An eighth of it takes as long as all of it, so the factor of the start is 8: the time is
that of a launch, and many small products should go into one call. Softmax in five steps moves 8 passes of bytes where 2 are
compulsory, a factor of 4, and an eighth of the work takes an eighth of the time; a fused kernel would read and write once.
