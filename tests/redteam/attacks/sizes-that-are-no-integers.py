# Floats, text and truth values in place of integers.

# %% replace=d-config
def config(shape, dtype):
    return {"TILE_M": 16.0, "TILE_N": "16", "TILE_K": True, "GROUP_M": 8, "num_warps": 4, "num_stages": 2}
