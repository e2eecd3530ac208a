# The width of a load follows from row 0 alone, and padding rounds down. Points: all but d.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=d-functions
def vector_width(first, stride, element_bytes, per_thread):
    width = 1
    while 2 * width <= per_thread and 2 * width * element_bytes <= 16 and first % (2 * width * element_bytes) == 0:
        width *= 2
    return width


def padded_stride(cols, element_bytes):
    return cols * element_bytes // 32 * 32 // element_bytes


def row_sectors(row, cols, stride, element_bytes):
    return -(-cols // 32) * element_bytes
