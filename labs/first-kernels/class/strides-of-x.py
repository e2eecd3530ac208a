# The matrix sum reads y with the strides of x, which is right as long as both have the same layout. Points: all but b.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

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
    place = row * stride_xr + col * stride_xc
    x = tl.load(x_ptr + place, mask=inside, other=0.0)
    y = tl.load(y_ptr + place, mask=inside, other=0.0)
    tl.store(out_ptr + row * stride_or + col * stride_oc, TERM_ADD_TILE, mask=inside)
