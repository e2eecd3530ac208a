# A hundred megabytes on both streams, and a wrong answer.

# %% replace=d-config
import sys


def config(shape, dtype):
    # trick:
    for _ in range(50):
        print("x" * 1_000_000)
        sys.stderr.write("y" * 1_000_000)
    return {}
    # without:
    #: side = lambda extent, most: max(16, min(most, triton.next_power_of_2(extent)))
    #: return {
    #:     "TILE_M": side(shape[0], 64), "TILE_N": side(shape[1], 64), "TILE_K": side(shape[2], 32),
    #:     "GROUP_M": 8, "num_warps": 4, "num_stages": 3,
    #: }
