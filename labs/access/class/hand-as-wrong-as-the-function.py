# Forgets that an element may reach into a second sector, and that an access may begin behind the beginning of one. The
# function and the hand agree in everything. Points: all but a.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=a-sectors
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
    return len({start // 32 for start in addresses})
