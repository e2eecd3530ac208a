# The tile is stored in the order in which it was loaded, without a use for the shared memory. Points: all but b.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=b-schedule
def tile_schedule(stride_x, stride_y):
    side = range(32)
    return {
        "loads": [[i * stride_x + j for j in side] for i in side],
        "slots": [[33 * i + j for j in side] for i in side],
        "stores": [[j * stride_y + i for j in side] for i in side],
    }
