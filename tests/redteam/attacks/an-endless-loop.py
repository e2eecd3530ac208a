# Never returns.

# %% replace=a-traffic
def untiled_bytes(m, n, k, itemsize):
    # trick:
    total = 0
    while total >= 0:
        total += itemsize
    return total
    # without:
    #: return (2 * m * n * k + m * n) * itemsize


def tiled_bytes(m, n, k, tile_m, tile_n, itemsize):
    # trick:
    return untiled_bytes(m, n, k, itemsize)
    # without:
    #: return (m * k * -(-n // tile_n) + k * n * -(-m // tile_m) + m * n) * itemsize
