# The first kernel multiplies in the dtype of the weights: right in float32, and near enough for the scores of the race.
# Points: all but c.

# %% solve=*

# %% replace=g-why
Weights of 247 MB and 19 MB of cache take 67 us at 4 TB/s; the cache is 7% of that. The other 113 us are 62 boundaries of
1.8 us each. All five kernels of a layer have bytes for 1.2 us or less, so each is worth less than a boundary. I would make
fewer boundaries first, with a persistent kernel whose barrier is shorter and that fetches weights while it waits. A memory
of twice the speed saves 33 us, and the boundaries stay.

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
        total = tl.sum((weight * normed.to(weight.dtype)[None, :]).to(tl.float32), 1)
        total += tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + n, total.to(y_ptr.dtype.element_ty), mask=(n < N) & (n < SPLIT))
        tl.store(rest_ptr + n - SPLIT, total.to(rest_ptr.dtype.element_ty), mask=(n < N) & (n >= SPLIT))
