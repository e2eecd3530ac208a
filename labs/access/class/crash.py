# The transpose stores to wild addresses: the column's offset is shifted by 40 bits. On a CPU the judge names the
# addresses; on a GPU, where it cannot see them, the process dies. Points: all but c, and g on a GPU.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=c-kernel
@triton.jit
def transpose_kernel(
    x_ptr, y_ptr, rows, cols, stride_xr, stride_xc, stride_yr, stride_yc, ROWS: tl.constexpr, COLS: tl.constexpr
):  # fmt: skip
    row = (tl.program_id(TERM_ROW_AXIS) * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(TERM_COL_AXIS) * COLS + tl.arange(0, COLS))[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0)
    wild = (col + 1).to(tl.int64) << 40
    tl.store(y_ptr + wild * stride_yr + row * stride_yc, x, mask=inside)
