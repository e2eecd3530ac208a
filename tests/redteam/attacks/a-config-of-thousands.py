# The right entries among thousands of others.

# %% replace=d-config
def config(shape, dtype):
    filler = {f"option_{number}": number for number in range(3000)}
    return filler | {"TILE_M": 16, "TILE_N": 16, "TILE_K": 16, "GROUP_M": 8, "num_warps": 4, "num_stages": 2}
