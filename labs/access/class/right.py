# Everything answered, in the lab's own way. Points: all; what needs a GPU or a reader waits.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.
