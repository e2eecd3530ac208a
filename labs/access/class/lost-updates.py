# The scatter loads, adds and stores instead of adding with atomics. The interpreter runs one program after the other,
# so the result is right there; the inspection finds the race. Points: all but the challenge.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=challenge-kernel
@triton.jit
def embedding_backward_kernel(d_out_ptr, index_ptr, offset_ptr, d_table_ptr, dim, BLOCK: tl.constexpr):
    bag = tl.program_id(TERM_BAG_AXIS)
    col = tl.program_id(TERM_BLOCK_AXIS) * BLOCK + tl.arange(0, BLOCK)
    gradient = tl.load(d_out_ptr + bag * dim + col, mask=col < dim, other=0.0).to(tl.float32)
    for k in range(tl.load(offset_ptr + bag), tl.load(offset_ptr + bag + 1)):
        row = tl.load(index_ptr + k).to(tl.int64)
        kept = (col < dim) & (row >= 0)
        before = tl.load(d_table_ptr + row * dim + col, mask=kept, other=0.0)
        tl.store(d_table_ptr + row * dim + col, before + gradient, mask=kept)
