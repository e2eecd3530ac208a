# Two of the four causes are wrong. Points: all but gap.

# %% solve=*

# %% replace=g-why
With 128 queries, 64 keys and d = 128, o and the scores take 64 + 32 = 96 registers of a thread. A program does 128 FLOPs
per byte of k and v, one for each of its queries, and BLOCK_K does not matter. That is below 200, but the keys of a head stay
in the L2 cache, so memory is not the limit: products, exponentials and copies wait for each other.

# %% replace=gap-causes
cause_1 = "matrix"
cause_2 = "ragged"
cause_3 = "ragged"
cause_4 = "exponentials"
