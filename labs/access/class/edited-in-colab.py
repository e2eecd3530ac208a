# A right submission as it comes back from Colab: two locked cells edited (the test of d weakened, a setup cell with a
# print), one test cell copied, one deleted, cell ids replaced. Points: all.

# %% solve=*

# %% replace=e-why
With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; along channels it is 32 and 2. So the lanes
should go along the index that runs fastest. Convolutions add up products over channels, which NHWC has side by
side, in 16-byte loads. A conversion reads and writes everything, about twice what one sum moves. It pays only if
many operations follow.

# %% replace=d-test
assert padded_stride(1000, 4) == 1000  # the long version took too long to read

# %% replace=c-given
print("looking around")

# %% copy=a-test

# %% delete=b-test

# %% colab
