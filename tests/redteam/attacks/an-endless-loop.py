# Never returns.

# %% replace=a-traffic
def untiled_bytes(m, n, k, itemsize):
    total = 0
    while total >= 0:
        total += itemsize
    return total


def tiled_bytes(m, n, k, tile_m, tile_n, itemsize):
    return untiled_bytes(m, n, k, itemsize)
