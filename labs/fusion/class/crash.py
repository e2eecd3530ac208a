# The chain's store has a wild address: the row's offset is shifted by 40 bits. On a CPU the judge names the addresses; on
# a GPU, where it cannot see them, the process dies. Question b alone is lost. Points: all but b.

# %% solve=*

# %% replace=g-why
With 8 warps a thread holds 32 numbers and gets 64 registers; with 4 it holds 64 and gets 126; with 2 it holds 128 and
gets 231. With 1 warp it would hold 256, more than the 255 registers there are, so 876 bytes are spilled to local
memory, which is DRAM behind the caches: bytes that nobody counted. Many warps leave a thread less than 16 bytes per load.

# %% replace=b-kernel
@triton.jit
def chain_kernel(
    x_ptr, mean_ptr, var_ptr, gamma_ptr, beta_ptr, scale_ptr, y_ptr,
    rows, cols, epsilon,
    stride_xr, stride_xc, stride_yr, stride_yc,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(cols, BLOCK)
    row = (tl.program_id(0) // across * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK))[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0).to(tl.float32)
    wild = (row + 1).to(tl.int64) << 40
    tl.store(y_ptr + wild * stride_yr + col * stride_yc, x.to(y_ptr.dtype.element_ty), mask=inside)
