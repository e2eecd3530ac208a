# Sectors are counted as used bytes divided by 32: right for neighbors, wrong wherever bytes move that nobody uses. The
# hand agrees with the function. Points: all but a.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=a-sectors
by_hand = {
    "neighbors": 4,
    "shifted": 4,
    "TERM_EVERY_SAID": 4,
    "a column": 4,
    "backwards": 4,
    "all the same": 4,
    "halves": 2,
    "TERM_WIDE_SAID": TERM_WIDE_SECTORS,
}


def sectors(addresses, element_bytes):
    return max(1, len(addresses) * element_bytes // 32)
