# The counts of a come from the package, in which the judge replays them. Points: all but a.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=a-sectors
from mlsys.traffic.coalescing import warp_transactions

by_hand = {
    "neighbors": 4,
    "shifted": 5,
    "TERM_EVERY_SAID": TERM_EVERY_SECTORS,
    "a column": 32,
    "backwards": 4,
    "all the same": 1,
    "halves": 2,
    "TERM_WIDE_SAID": TERM_WIDE_SECTORS,
}


def sectors(addresses, element_bytes):
    return warp_transactions(addresses, element_bytes=element_bytes).sectors
