# The tile is checked against the shared memory with one stage only. Points: all but e.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=e-tiles
def tile_cycles(m, n, k, tile, chip):
    """Return the cycles of a product with a tile (tile_m, tile_n, tile_k, stages), or None if it does not fit."""
    tile_m, tile_n, tile_k, stages = tile
    piece = (tile_m * tile_k + tile_k * tile_n) * 2
    if piece > chip["shared"] or tile_m * tile_n > chip["sums"]:
        return None
    load = -(-piece // chip["bytes"])
    work = -(-tile_m * tile_n * tile_k // chip["macs"])
    step = max(load, work, -(-(chip["latency"] + load + work) // stages))
    block = chip["latency"] + -(-k // tile_k) * step
    return block * -(-(-(-m // tile_m) * -(-n // tile_n)) // chip["sms"])


def best_tile(m, n, k, chip):
    """Return a tile (tile_m, tile_n, tile_k, stages) that takes the fewest cycles."""
    from itertools import product

    sides = (16, 32, 64, 128, 256)
    tiles = [tile for tile in product(sides, sides, sides, (1, 2, 3, 4)) if tile_cycles(m, n, k, tile, chip)]
    return min(tiles, key=lambda tile: tile_cycles(m, n, k, tile, chip))
