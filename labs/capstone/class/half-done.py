# a forgets the table of tokens; b is answered; c leaves out the bias; the rest is as released. Points: b.

# %% solve=gap-predictions,b-kernels

# %% replace=a-bytes
def weight_bytes(layers, width, vocabulary, itemsize):
    """Return the bytes of the weights that a step reads."""
    return (layers * (12 * width**2 + 13 * width) + 3 * width) * itemsize


def cache_bytes(layers, width, tokens, itemsize):
    """Return the bytes of the cache that a step reads and writes."""
    return 2 * layers * width * tokens * itemsize


def best_seconds(layers, width, vocabulary, tokens, itemsize, bandwidth):
    """Return the least time of a step."""
    moved = weight_bytes(layers, width, vocabulary, itemsize) + cache_bytes(layers, width, tokens, itemsize)
    return moved / bandwidth

# %% replace=c-kernel
@triton.jit
def norm_linear_kernel(
    x_ptr, gain_ptr, shift_ptr, weight_ptr, bias_ptr, y_ptr, rest_ptr,
    WIDTH, N, SPLIT, epsilon,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute blocks of ROWS results of weight norm(x) + bias."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < WIDTH, other=0.0)
    centered = tl.where(i < WIDTH, x - tl.sum(x, 0) / WIDTH, 0.0)
    scale = tl.rsqrt(tl.sum(centered * centered, 0) / WIDTH + epsilon)
    gain = tl.load(gain_ptr + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    normed = centered * scale * gain + shift
    for block in range(tl.program_id(0), tl.cdiv(N, ROWS), tl.num_programs(0)):
        n = block * ROWS + tl.arange(0, ROWS)
        inside = (n < N)[:, None] & (i < WIDTH)[None, :]
        weight = tl.load(weight_ptr + (n * WIDTH)[:, None] + i[None, :], mask=inside, other=0.0)
        total = tl.sum(weight.to(tl.float32) * normed[None, :], 1)
        tl.store(y_ptr + n, total.to(y_ptr.dtype.element_ty), mask=(n < N) & (n < SPLIT))
        tl.store(rest_ptr + n - SPLIT, total.to(rest_ptr.dtype.element_ty), mask=(n < N) & (n >= SPLIT))
