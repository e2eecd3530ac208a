# Both sums are kept in the dtype of their inputs: too few digits in float16. Points: all but e and f.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=e-kernel
def layout_strides(layout, shape):
    _, channels, height, width = shape
    if layout == "NCHW":
        return channels * height * width, height * width, width, 1
    return height * width * channels, 1, width * channels, channels


def walk_sectors(layout, walk, channels, element_bytes):
    stride = {"NCHWw": 1, "NCHWc": 32 * 32, "NHWCw": channels, "NHWCc": 1}[layout + walk]
    return len({(lane * stride * element_bytes + k) // 32 for lane in range(32) for k in range(element_bytes)})


@triton.jit
def channel_sum_kernel(
    x_ptr, y_ptr, pixels, channels, stride_xn, stride_xp, stride_xc, PIXELS: tl.constexpr, CHANNELS: tl.constexpr
):  # fmt: skip
    image = tl.program_id(1)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    total = tl.zeros((PIXELS, CHANNELS), x_ptr.dtype.element_ty)
    for start in range(0, channels, CHANNELS):
        channel = start + tl.arange(0, CHANNELS)
        inside = (pixel[:, None] < pixels) & (channel[None, :] < channels)
        place = image * stride_xn + pixel[:, None] * stride_xp + channel[None, :] * stride_xc
        total += tl.load(x_ptr + place, mask=inside, other=0.0)
    tl.store(y_ptr + image * pixels + pixel, tl.sum(total, 1), mask=pixel < pixels)

# %% replace=f-kernel
def gather_sectors(indices, dim, element_bytes):
    size = dim * element_bytes
    return sum(((row + 1) * size - 1) // 32 - row * size // 32 + 1 for row in indices)


@triton.jit
def embedding_bag_kernel(table_ptr, index_ptr, offset_ptr, out_ptr, dim, stride_t, BLOCK: tl.constexpr):
    bag = tl.program_id(TERM_BAG_AXIS)
    col = tl.program_id(TERM_BLOCK_AXIS) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), table_ptr.dtype.element_ty)
    for k in range(tl.load(offset_ptr + bag), tl.load(offset_ptr + bag + 1)):
        row = tl.load(index_ptr + k).to(tl.int64)
        kept = (col < dim) & (row >= 0)
        total += tl.load(table_ptr + row * stride_t + col, mask=kept, other=0.0)
    tl.store(out_ptr + bag * dim + col, total, mask=col < dim)
