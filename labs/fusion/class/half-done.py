# a, b and g are answered, one formula of a leaves the vectors out; c has a kernel without its sum; the rest is as
# released. Points: b and g.

# %% solve=gap-predictions,b-kernel,g-config

# %% replace=a-traffic
def chain_unfused_bytes(rows, cols, itemsize):
    return 6 * rows * cols * itemsize


def chain_fused_bytes(rows, cols, itemsize):
    return 2 * rows * cols * itemsize


def softmax_unfused_bytes(rows, cols, itemsize):
    raise NotImplementedError("softmax_unfused_bytes")


def softmax_fused_bytes(rows, cols, itemsize):
    raise NotImplementedError("softmax_fused_bytes")


def layernorm_unfused_bytes(rows, cols, itemsize):
    raise NotImplementedError("layernorm_unfused_bytes")


def layernorm_fused_bytes(rows, cols, itemsize):
    raise NotImplementedError("layernorm_fused_bytes")

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
    x = x - tl.max(x, 1)[:, None]
    e = tl.exp(x)
    y = e
    tl.store(
        y_ptr + row[:, None] * stride_yr + col[None, :] * stride_yc, y.to(y_ptr.dtype.element_ty), mask=inside
    )
