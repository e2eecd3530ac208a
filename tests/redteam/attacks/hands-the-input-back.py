# Doubles the input in place and returns it.

# %% append=read-kernel
def double(x):
    # trick:
    double_kernel[(triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16))](
        x, x, *x.shape, *x.stride(), *x.stride(), TILE_M=16, TILE_N=16
    )
    return x
    # without:
    #: y = torch.empty(x.shape, dtype=x.dtype)
    #: grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16))
    #: double_kernel[grid](x, y, *x.shape, *x.stride(), *y.stride(), TILE_M=16, TILE_N=16)
    #: return y
