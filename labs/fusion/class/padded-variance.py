# Layer normalization that counts the lanes beyond the last column in the variance. Points: all but e, and i on a GPU.

# %% solve=*

# %% replace=g-why
With 8 warps a thread holds 32 numbers and gets 64 registers; with 4 it holds 64 and gets 126; with 2 it holds 128 and
gets 231. With 1 warp it would hold 256, more than the 255 registers there are, so 876 bytes are spilled to local
memory, which is DRAM behind the caches: bytes that nobody counted. Many warps leave a thread less than 16 bytes per load.

# %% replace=e-kernel
@triton.jit
def layernorm_kernel(
    x_ptr, gamma_ptr, beta_ptr, y_ptr,
    rows, cols, epsilon,
    stride_xr, stride_xc, stride_yr, stride_yc,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    x = tl.load(x_ptr + row[:, None] * stride_xr + col[None, :] * stride_xc, mask=inside, other=0.0).to(tl.float32)
    gamma = tl.load(gamma_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
    beta = tl.load(beta_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
    m = tl.sum(x, 1) / cols
    d = x - m[:, None]
    v = tl.sum(d * d, 1) / cols
    y = d / tl.sqrt(v + epsilon)[:, None] * gamma[None, :] + beta[None, :]
    tl.store(
        y_ptr + row[:, None] * stride_yr + col[None, :] * stride_yc, y.to(y_ptr.dtype.element_ty), mask=inside
    )
