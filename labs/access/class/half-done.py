# a and the gaps are answered; b forgets the stores; c has a kernel without its store; the rest is as released. Points: a
# and gap.

# %% solve=gap-predictions,a-sectors,gap-causes

# %% replace=b-schedule
def tile_schedule(stride_x, stride_y):
    return {"loads": [[i * stride_x + j for j in range(32)] for i in range(32)], "slots": [], "stores": []}

# %% replace=c-kernel
@triton.jit
def transpose_kernel(
    x_ptr, y_ptr, rows, cols, stride_xr, stride_xc, stride_yr, stride_yc, ROWS: tl.constexpr, COLS: tl.constexpr
):  # fmt: skip
    row = (tl.program_id(TERM_ROW_AXIS) * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(TERM_COL_AXIS) * COLS + tl.arange(0, COLS))[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0)
