# The loop of the long softmax does not move its counter. Points: all but d.

# %% solve=*

# %% replace=g-why
With 8 warps a thread holds 32 numbers and gets 64 registers; with 4 it holds 64 and gets 126; with 2 it holds 128 and
gets 231. With 1 warp it would hold 256, more than the 255 registers there are, so 876 bytes are spilled to local
memory, which is DRAM behind the caches: bytes that nobody counted. Many warps leave a thread less than 16 bytes per load.

# %% replace=d-kernel
@triton.jit
def long_softmax_kernel(
    x_ptr, y_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_yr, stride_yc,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    m = tl.full((), -float("inf"), tl.float32)
    s = tl.full((), 0.0, tl.float32)
    start = 0
    while start < cols:
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=col < cols, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - higher) + tl.sum(tl.exp(x - higher), 0)
        m = higher
