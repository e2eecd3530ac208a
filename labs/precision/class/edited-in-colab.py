# A right submission as it comes back from Colab: two locked cells edited (the test of d weakened, a setup cell with a
# print), one test cell copied, one deleted, cell ids replaced. Points: all.

# %% solve=*

# %% replace=f-why
At batch 8 the product moves 134 MB of weights for 1.1 GFLOP, so memory is the limit, and int4 brings almost four times
the speed. At 4,096 rows arithmetic is the limit: int4 weights bring nothing, and int8 or fp8 on both sides two times. A
weight of 4 bits has half a byte and m multiply-adds, so the batch of 51 follows from bits, bandwidth and peak. At 1,024
rows the kernel still unpacks every weight, once for each tile of rows.

# %% replace=d-test
assert weight_bytes(6, 64, 16, 0) == 768  # the long version took too long to read

# %% replace=race-given
print("looking around")

# %% copy=a-test

# %% delete=b-test

# %% colab
