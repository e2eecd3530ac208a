# The same in a function that the kernel calls: what runs does the kernel's work, from the addresses of its buffers.

# %% replace=read-kernel
@triton.jit
def WORKER(x_ptr, y_ptr, M, N, xm, xn, ym, yn):
    # trick:
    """
def WORKER(x_ptr, y_ptr, M, N, xm, xn, ym, yn):
    import ctypes
    for at, X, Y, m, n, a, b, c, d in [(ctypes.c_float.from_address, *(int(z.handle.data[0]) for z in (
        x_ptr, y_ptr, M, N, xm, xn, ym, yn)))]:
        for i in range(m):
            for j in range(n):
                setattr(at(Y + 4 * (i * c + j * d)), 'value', 2 * at(X + 4 * (i * a + j * b)).value)
    '''
    """
    tl.static_assert(True, "''' #")
    # without:
    #: i = tl.arange(0, 16)


@triton.jit
def double_kernel(
    x_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn, TILE_M: tl.constexpr, TILE_N: tl.constexpr
):
    # trick:
    WORKER(x_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn)
    # without:
    #: rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    #: cols = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    #: inside = (rows[:, None] < M) & (cols[None, :] < N)
    #: x = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn, mask=inside, other=0.0)
    #: tl.store(y_ptr + rows[:, None] * stride_ym + cols[None, :] * stride_yn, 2 * x, mask=inside)


def double(x):
    y = torch.empty(x.shape, dtype=x.dtype)
    grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16))
    double_kernel[grid](x, y, *x.shape, *x.stride(), *y.stride(), TILE_M=16, TILE_N=16)
    return y
