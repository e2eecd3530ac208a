# a and f are answered; b has a kernel without its store; one formula of c leaves the vectors out; the rest is as
# released. Points: a and f.

# %% solve=a-kernel,f-answers

# %% replace=b-kernel
@triton.jit
def add_matrices_kernel(
    x_ptr, y_ptr, out_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_yr, stride_yc, stride_or, stride_oc,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(1) * COLS + tl.arange(0, COLS))[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0)

# %% replace=c-kernel
def two_pass_bytes(rows, cols, itemsize):
    return 4 * rows * cols * itemsize


def one_pass_bytes(rows, cols, itemsize):
    return 2 * rows * cols * itemsize


@triton.jit
def shift_scale_kernel(
    x_ptr, shift_ptr, scale_ptr, y_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_yr, stride_yc,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    pass  # your kernel
