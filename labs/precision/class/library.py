# The int4 kernel is PyTorch in a function with the kernel's name, without @triton.jit. Points: all but e, and f on a
# GPU.

# %% solve=*

# %% replace=f-why
At batch 8 the product moves 134 MB of weights for 1.1 GFLOP, so memory is the limit, and int4 brings almost four times
the speed. At 4,096 rows arithmetic is the limit: int4 weights bring nothing, and int8 or fp8 on both sides two times. A
weight of 4 bits has half a byte and m multiply-adds, so the batch of 51 follows from bits, bandwidth and peak. At 1,024
rows the kernel still unpacks every weight, once for each tile of rows.

# %% replace=e-kernel
def int4_kernel(x, packed, scales, y, *sizes, **constants):
    y.copy_(x @ whole_weights(packed, scales).half().T)
