# Counts the bytes that are read and forgets those that are written, in a, in e, and through e in f. Points: all but a, e, f.

# %% solve=*

# %% replace=a-roofs
import statistics


def copy_bandwidth(array_bytes, laps_s):
    return array_bytes / statistics.median(laps_s)


def product_rate(side, laps_s):
    return 2 * side**3 / statistics.median(laps_s)


def ridge_point(bandwidth, peak):
    return peak / bandwidth


def attainable(intensity, bandwidth, peak):
    return min(peak, bandwidth * intensity)

# %% replace=e-costs
def add_cost(n, itemsize):
    return n, 2 * n * itemsize


def softmax_cost(rows, cols, itemsize):
    return 5 * rows * cols, rows * cols * itemsize


def layernorm_cost(rows, cols, itemsize):
    return 8 * rows * cols, (rows * cols + 2 * cols) * itemsize


def matmul_cost(m, n, k, itemsize):
    return 2 * m * n * k, (m * k + k * n) * itemsize


def embedding_cost(bags, bag_size, dim, itemsize):
    return bags * bag_size * dim, bags * bag_size * (dim * itemsize + 8)


def place(flops, moved, bandwidth, peak):
    return ("memory" if flops / peak < moved / bandwidth else "compute"), max(flops / peak, moved / bandwidth)

# %% replace=why
The small product has the largest gap. An eighth of it takes as long as all of it, so the factor of the start is 8: the time is
that of a launch, and many small products should go into one call. Softmax in five steps moves 8 passes of bytes where 2 are
compulsory, a factor of 4, and an eighth of the work takes an eighth of the time; a fused kernel would read and write once.
