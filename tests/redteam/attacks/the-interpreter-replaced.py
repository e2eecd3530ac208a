# Triton's launch itself is replaced by a library call.

# %% replace=read-kernel
import triton.runtime.interpreter as interpreter


def launch(executor, *arguments, **constants):
    arguments[1].copy_(2 * arguments[0])


# trick:
interpreter.GridExecutor.__call__ = launch
# without:


@triton.jit
def double_kernel(
    x_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn, TILE_M: tl.constexpr, TILE_N: tl.constexpr
):
    # trick:
    pass
    # without:
    #: rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    #: cols = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    #: inside = (rows[:, None] < M) & (cols[None, :] < N)
    #: x = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn, mask=inside, other=0.0)
    #: tl.store(y_ptr + rows[:, None] * stride_ym + cols[None, :] * stride_yn, 2 * x, mask=inside)


def double(x):
    # trick:
    y = torch.empty_like(x)
    double_kernel[(1, 1)](x, y, *x.shape, *x.stride(), *y.stride(), TILE_M=16, TILE_N=16)
    return y
    # without:
    #: y = torch.empty(x.shape, dtype=x.dtype)
    #: grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16))
    #: double_kernel[grid](x, y, *x.shape, *x.stride(), *y.stride(), TILE_M=16, TILE_N=16)
    #: return y
