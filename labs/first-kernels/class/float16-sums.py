# The sum is kept in the dtype of the input: right in float32, too few digits in float16. The same in the fused kernel,
# whose sum overflows. Points: all but c and d; on a GPU the race in float32 gives its points.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=c-kernel
def two_pass_bytes(rows, cols, itemsize):
    return (4 * rows * cols + 2 * rows) * itemsize


def one_pass_bytes(rows, cols, itemsize):
    return (2 * rows * cols + 2 * rows) * itemsize


@triton.jit
def shift_scale_kernel(
    x_ptr, shift_ptr, scale_ptr, y_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_yr, stride_yc,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(1) * COLS + tl.arange(0, COLS))[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0)
    shift = tl.load(shift_ptr + row, mask=row < rows, other=0.0)
    scale = tl.load(scale_ptr + row, mask=row < rows, other=0.0)
    tl.store(y_ptr + row * stride_yr + col * stride_yc, (TERM_SHIFTED) * scale, mask=inside)

# %% replace=d-kernel
@triton.jit
def sum_kernel(x_ptr, sums_ptr, N, share, BLOCK: tl.constexpr):
    first = tl.program_id(0) * share
    last = tl.minimum(first + share, N)
    total = tl.zeros((BLOCK,), x_ptr.dtype.element_ty)
    for start in range(first, last, BLOCK):
        index = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + index, mask=index < last, other=0.0)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(total, 0).to(tl.float32))
