# Lanes past the end of a row load zeros, whose polynomial is not zero, and are added up with the rest. Points: all but b; on a
# GPU all but b and d.

# %% solve=*

# %% replace=b-kernel
@triton.jit
def poly_kernel(x_ptr, coefficients_ptr, sums_ptr, COLS, stride_row, stride_col, steps, TILE: tl.constexpr):
    """Sum over a row of x of the polynomial y = x; y = y x + c[k] for k = 0 ... steps - 1."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, TILE)
    mask = cols < COLS
    x = tl.load(x_ptr + row * stride_row + cols * stride_col, mask=mask, other=0.0).to(tl.float32)
    y = x
    for k in range(steps):
        y = y * x + tl.load(coefficients_ptr + k)
    tl.store(sums_ptr + row, tl.sum(y, axis=0))


def poly_sums(x, coefficients):
    rows, cols = x.shape
    sums = torch.empty(rows, device=x.device, dtype=torch.float32)
    tile = triton.next_power_of_2(cols)
    poly_kernel[(rows,)](x, coefficients, sums, cols, x.stride(0), x.stride(1), coefficients.numel(), TILE=tile)
    return sums

# %% replace=why
The small product has the largest gap. An eighth of it takes as long as all of it, so the factor of the start is 8: the time is
that of a launch, and many small products should go into one call. Softmax in five steps moves 8 passes of bytes where 2 are
compulsory, a factor of 4, and an eighth of the work takes an eighth of the time; a fused kernel would read and write once.
