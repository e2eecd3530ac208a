# Everything right, c written otherwise: a helper with @triton.jit in an added cell, other argument names, a range of rows
# per program in place of every P-th block, an exploratory cell that fails. Points: all.

# %% solve=gap-predictions,b-kernels,d-kernels,e-kernels,f-kernel,g-config,challenge-kernel,gap-causes

# %% replace=g-why
Weights of 247 MB and 19 MB of cache take 67 us at 4 TB/s; the cache is 7% of that. The other 113 us are 62 boundaries of
1.8 us each. All five kernels of a layer have bytes for 1.2 us or less, so each is worth less than a boundary. I would make
fewer boundaries first, with a persistent kernel whose barrier is shorter and that fetches weights while it waits. A memory
of twice the speed saves 33 us, and the boundaries stay.

# %% replace=a-bytes
def weight_bytes(layers, width, vocabulary, itemsize):
    matrices = [(3, 1), (1, 1), (4, 1), (1, 4)]
    each = sum(rows * cols * width * width + rows * width for rows, cols in matrices) + 4 * width
    return itemsize * (layers * each + (vocabulary + 1) * width + 2 * width)


def cache_bytes(layers, width, tokens, itemsize):
    return layers * tokens * (2 * width * itemsize)


def best_seconds(layers, width, vocabulary, tokens, itemsize, bandwidth):
    return (weight_bytes(layers, width, vocabulary, itemsize) + cache_bytes(layers, width, tokens, itemsize)) / bandwidth

# %% add after=a-test
# What would a larger model take?
print(best_seconds(48, 1600, 50257, 1024, 2, nothing_of_that_name))

# %% add after=a-test
@triton.jit
def row_normalized(x_ptr, gain_ptr, shift_ptr, WIDTH, epsilon, BLOCK: tl.constexpr):
    """Layer normalization by the mean of squares."""
    lane = tl.arange(0, BLOCK)
    there = lane < WIDTH
    x = tl.load(x_ptr + lane, there, 0.0)
    mean = tl.sum(x, 0) / WIDTH
    x = tl.where(there, x - mean, 0.0)
    x = x / tl.sqrt(tl.sum(x * x, 0) / WIDTH + epsilon)
    return x * tl.load(gain_ptr + lane, there, 0.0).to(tl.float32) + tl.load(shift_ptr + lane, there, 0.0).to(tl.float32)

# %% replace=c-kernel
@triton.jit
def norm_linear_kernel(
    source, gain, shift, matrix, bias, target, other, K, N, split, small, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    x = row_normalized(source, gain, shift, K, small, BLOCK)
    lane = tl.arange(0, BLOCK)
    each = tl.cdiv(tl.cdiv(N, ROWS), tl.num_programs(0)) * ROWS
    first = tl.program_id(0) * each
    for start in range(first, tl.minimum(first + each, N), ROWS):
        n = start + tl.arange(0, ROWS)
        there = (n[:, None] < N) & (lane[None, :] < K)
        w = tl.load(matrix + n[:, None] * K + lane[None, :], there, 0.0).to(tl.float32)
        y = tl.sum(w * x[None, :], 1) + tl.load(bias + n, n < N, 0.0).to(tl.float32)
        tl.store(target + n, y.to(target.dtype.element_ty), (n < N) & (n < split))
        tl.store(other + (n - split), y.to(other.dtype.element_ty), (n < N) & (n >= split))
