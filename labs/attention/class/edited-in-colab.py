# A right submission as it comes back from Colab: two locked cells edited (the test of d weakened, a setup cell with a
# print), one test cell copied, one deleted, cell ids replaced. Points: all.

# %% solve=*

# %% replace=g-why
With 128 queries, 64 keys and d = 128, o and the scores take 64 + 32 = 96 registers of a thread. A program does 128 FLOPs
per byte of k and v, one for each of its queries, and BLOCK_K does not matter. That is below 200, but the keys of a head stay
in the L2 cache, so memory is not the limit: products, exponentials and copies wait for each other.

# %% replace=d-test
assert fused_bytes(1, 1, 1, 1) == 4  # the long version took too long to read

# %% replace=race-given
print("looking around")

# %% copy=a-test

# %% delete=b-test

# %% colab
