# Right everywhere, with blocks of 16 x 16 and one warp for the race. Points: all but a large part of g.

# %% solve=*

# %% replace=g-why
With 128 queries, 64 keys and d = 128, o and the scores take 64 + 32 = 96 registers of a thread. A program does 128 FLOPs
per byte of k and v, one for each of its queries, and BLOCK_K does not matter. That is below 200, but the keys of a head stay
in the L2 cache, so memory is not the limit: products, exponentials and copies wait for each other.

# %% replace=g-config
def config(shape, dtype):
    return {"BLOCK_Q": 16, "BLOCK_K": 16, "num_warps": 1, "num_stages": 1}
