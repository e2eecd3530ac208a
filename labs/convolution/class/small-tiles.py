# Right everywhere, with tiles of 16 x 16 x 16 and one warp for the race. Points: all but a large part of f.

# %% solve=*

# %% replace=f-why
Tiles of 128 x 128: the second layer has 196 x 4 = 784 tiles, 5.9 rounds of 132; the third has 49 x 2 = 98, one round in
which 34 multiprocessors wait. The second does 102 FLOPs per byte, less than 200, so memory limits it; the third does
nearly 1,000, so arithmetic does. Larger tiles do not help the second, and leave more of the GPU idle in the third.

# %% replace=f-config
def config(shape, dtype):
    return {"TILE_M": 16, "TILE_N": 16, "TILE_K": 16, "num_warps": 1, "num_stages": 1}
