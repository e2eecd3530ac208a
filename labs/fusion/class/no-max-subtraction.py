# Softmax without subtracting the row's maximum: it overflows for large values. The race draws small ones, so h
# gets points on a GPU, though not all of them on an H200: it is slower than the reference there. Points: all but c and
# a part of h.

# %% solve=*

# %% replace=g-why
With 8 warps a thread holds 32 numbers and gets 64 registers; with 4 it holds 64 and gets 126; with 2 it holds 128 and
gets 231. With 1 warp it would hold 256, more than the 255 registers there are, so 876 bytes are spilled to local
memory, which is DRAM behind the caches: bytes that nobody counted. Many warps leave a thread less than 16 bytes per load.

# %% replace=c-kernel
@triton.jit
def softmax_kernel(
    x_ptr, y_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_yr, stride_yc,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    addresses = x_ptr + row[:, None] * stride_xr + col[None, :] * stride_xc
    x = tl.load(addresses, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(x)
    y = e * (1.0 / tl.sum(e, 1))[:, None]
    tl.store(
        y_ptr + row[:, None] * stride_yr + col[None, :] * stride_yc, y.to(y_ptr.dtype.element_ty), mask=inside
    )
