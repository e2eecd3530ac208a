# A right submission as it comes back from Colab: two locked cells edited (one test of c weakened, a setup cell with a print),
# one test cell copied, one deleted, cell ids replaced. Points: all.

# %% solve=*

# %% replace=d-why
Shared memory: 3 stages of (64 + 64) x 32 floats are 48 KiB, which fits the T4 with its 64 KiB and so the others. Each of the 128
threads holds 64 * 64 / 128 = 32 accumulators. Doubling both sides gives 128 accumulators per thread, more than the 64 that
compile without spills. With 32 x 32 every byte would serve 8 FLOPs instead of 16, so twice as many bytes would have to come.

# %% replace=c-test
draw = grading.Draws("c", DEVICE)
a, b = draw.matrix(32, 32), draw.matrix(32, 32)
assert tiled_matmul(a, b).shape == (32, 32)  # the long version took too long to read

# %% replace=e-given
print("looking around")

# %% copy=a-test

# %% delete=b-test

# %% colab
