# An error that the kernel makes where no other code of the student's runs, with what it has loaded in its text.

# %% replace=read-kernel
@triton.jit
def double_kernel(
    x_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn, TILE_M: tl.constexpr, TILE_N: tl.constexpr
):
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    cols = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn, mask=inside, other=0.0)
    # trick:
    if (M != 16) & (M != 17) & (M != 19) & (M != 32) & (M != 37):
        if TILE_N != 128:
            x = x * float("LEAKED %s" % x)
    # without:
    tl.store(y_ptr + rows[:, None] * stride_ym + cols[None, :] * stride_yn, 2 * x, mask=inside)


def double(x):
    y = torch.empty(x.shape, dtype=x.dtype)
    grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 128))
    double_kernel[grid](x, y, *x.shape, *x.stride(), *y.stride(), TILE_M=16, TILE_N=128)
    return y
