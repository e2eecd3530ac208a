# A right submission as it comes back from Colab: two locked cells edited (the test of d weakened, a setup cell with a
# print), one test cell copied, one deleted, cell ids replaced. Points: all.

# %% solve=*

# %% replace=f-why
Tiles of 128 x 128: the second layer has 196 x 4 = 784 tiles, 5.9 rounds of 132; the third has 49 x 2 = 98, one round in
which 34 multiprocessors wait. The second does 102 FLOPs per byte, less than 200, so memory limits it; the third does
nearly 1,000, so arithmetic does. Larger tiles do not help the second, and leave more of the GPU idle in the third.

# %% replace=d-test
assert output_size(5, 3, 1, 1) == 5  # the long version took too long to read

# %% replace=race-given
print("looking around")

# %% copy=a-test

# %% delete=b-test

# %% colab
