# A right submission as it comes back from Colab: two locked cells edited (the test of d weakened, a setup cell with a
# print), one test cell copied, one deleted, cell ids replaced. Points: all.

# %% solve=*

# %% replace=g-why
Weights of 247 MB and 19 MB of cache take 67 us at 4 TB/s; the cache is 7% of that. The other 113 us are 62 boundaries of
1.8 us each. All five kernels of a layer have bytes for 1.2 us or less, so each is worth less than a boundary. I would make
fewer boundaries first, with a persistent kernel whose barrier is shorter and that fetches weights while it waits. A memory
of twice the speed saves 33 us, and the boundaries stay.

# %% replace=d-test
assert kernels(1, 1, 1) == 2  # the long version took too long to read

# %% replace=race-given
print("looking around")

# %% copy=a-test

# %% delete=b-test

# %% colab
