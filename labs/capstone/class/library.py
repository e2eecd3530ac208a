# The last kernel of a layer is PyTorch in a function with the kernel's name, without @triton.jit. Points: all but e, f,
# g and the challenge.

# %% solve=*

# %% replace=g-why
Weights of 247 MB and 19 MB of cache take 67 us at 4 TB/s; the cache is 7% of that. The other 113 us are 62 boundaries of
1.8 us each. All five kernels of a layer have bytes for 1.2 us or less, so each is worth less than a boundary. I would make
fewer boundaries first, with a persistent kernel whose barrier is shorter and that fetches weights while it waits. A memory
of twice the speed saves 33 us, and the boundaries stay.

# %% replace=e-kernels
@triton.jit
def up_kernel(
    x_ptr, gain_ptr, shift_ptr, weight_ptr, bias_ptr, y_ptr,
    WIDTH, N, epsilon,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute blocks of ROWS results of gelu(weight norm(x) + bias)."""
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
        total += tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)
        y = total * tl.sigmoid(1.5957691216057308 * (total + 0.044715 * total * total * total))
        tl.store(y_ptr + n, y, mask=n < N)


def down_kernel(hidden, weight, bias, x, y, *sizes, **constants):
    y.copy_(x + weight.float() @ hidden + bias.float())
