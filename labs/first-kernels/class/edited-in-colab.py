# A right submission as it comes back from Colab: two locked cells edited (the test of c weakened, a setup cell with a
# print), one test cell copied, one deleted, cell ids replaced. Points: all.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=c-test
assert one_pass_bytes(2, 3, 4) == 64  # the long version took too long to read

# %% replace=h-given
print("looking around")

# %% copy=a-test

# %% delete=b-test

# %% colab
