# Writes to an address four gigabytes off.

# %% replace=read-kernel
@triton.jit
def double_kernel(
    x_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn, TILE_M: tl.constexpr, TILE_N: tl.constexpr
):
    far = (tl.arange(0, TILE_M) + 1).to(tl.int64) << 40
    tl.store(y_ptr + far, far.to(tl.float32))


def double(x):
    y = torch.empty(x.shape, dtype=x.dtype)
    double_kernel[(1, 1)](x, y, *x.shape, *x.stride(), *y.stride(), TILE_M=16, TILE_N=16)
    return y
