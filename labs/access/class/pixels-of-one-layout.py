# The sum over channels steps from pixel to pixel by 1, which is right for NCHW alone. Points: all but e.

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
    total = tl.zeros((PIXELS,), tl.float32)
    for channel in range(channels):
        place = x_ptr + image * stride_xn + pixel + channel * pixels
        total += tl.load(place, mask=pixel < pixels, other=0.0).to(tl.float32)
    tl.store(y_ptr + image * pixels + pixel, total, mask=pixel < pixels)
