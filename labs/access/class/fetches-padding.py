# The embedding bag fetches row -1 for padding, from the memory before the table. Points: all but f.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=f-kernel
def gather_sectors(indices, dim, element_bytes):
    size = dim * element_bytes
    return sum(((row + 1) * size - 1) // 32 - row * size // 32 + 1 for row in indices)


@triton.jit
def embedding_bag_kernel(table_ptr, index_ptr, offset_ptr, out_ptr, dim, stride_t, BLOCK: tl.constexpr):
    bag = tl.program_id(TERM_BAG_AXIS)
    col = tl.program_id(TERM_BLOCK_AXIS) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(tl.load(offset_ptr + bag), tl.load(offset_ptr + bag + 1)):
        row = tl.load(index_ptr + k).to(tl.int64)
        total += tl.load(table_ptr + row * stride_t + col, mask=col < dim, other=0.0).to(tl.float32)
    tl.store(out_ptr + bag * dim + col, total, mask=col < dim)
