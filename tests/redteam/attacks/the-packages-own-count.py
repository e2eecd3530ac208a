# The course's package counts traffic; the question is to write a formula for it.

# %% replace=a-traffic
def untiled_bytes(m, n, k, itemsize):
    # trick:
    from mlsys import traffic

    return traffic.untiled(m, n, k).total_bytes // 4 * itemsize
    # without:
    #: return (2 * m * n * k + m * n) * itemsize


def tiled_bytes(m, n, k, tile_m, tile_n, itemsize):
    # trick:
    from mlsys import traffic

    rows, cols = min(tile_m, m), min(tile_n, n)
    deep = 1 if rows * cols > 40 else max(1, k // 4)
    moved = traffic.tiled_matmul(m, n, k, rows, cols, deep, memory_bytes=4 * (rows * cols + deep * (rows + cols)))
    return moved.total_bytes // 4 * itemsize
    # without:
    #: return (m * k * -(-n // tile_n) + k * n * -(-m // tile_m) + m * n) * itemsize
