# The right entries among thousands of others.

# %% replace=d-config
def config(shape, dtype):
    # trick:
    filler = {f"option_{number}": number for number in range(3000)}
    return filler | {"TILE_M": 16, "TILE_N": 16, "TILE_K": 16, "GROUP_M": 8, "num_warps": 4, "num_stages": 2}
    # without:
    #: side = lambda extent, most: max(16, min(most, triton.next_power_of_2(extent)))
    #: return {
    #:     "TILE_M": side(shape[0], 64), "TILE_N": side(shape[1], 64), "TILE_K": side(shape[2], 32),
    #:     "GROUP_M": 8, "num_warps": 4, "num_stages": 3,
    #: }
