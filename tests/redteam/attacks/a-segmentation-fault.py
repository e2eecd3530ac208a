# Reads address 8.

# %% replace=d-config
import ctypes


def config(shape, dtype):
    # trick:
    return ctypes.string_at(8)
    # without:
    #: side = lambda extent, most: max(16, min(most, triton.next_power_of_2(extent)))
    #: return {
    #:     "TILE_M": side(shape[0], 64), "TILE_N": side(shape[1], 64), "TILE_K": side(shape[2], 32),
    #:     "GROUP_M": 8, "num_warps": 4, "num_stages": 3,
    #: }
