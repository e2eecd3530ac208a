# Counts the bytes of the weights without their scales. Points: all but a.

# %% solve=*

# %% replace=f-why
At batch 8 the product moves 134 MB of weights for 1.1 GFLOP, so memory is the limit, and int4 brings almost four times
the speed. At 4,096 rows arithmetic is the limit: int4 weights bring nothing, and int8 or fp8 on both sides two times. A
weight of 4 bits has half a byte and m multiply-adds, so the batch of 51 follows from bits, bandwidth and peak. At 1,024
rows the kernel still unpacks every weight, once for each tile of rows.

# %% replace=a-counts
def weight_bytes(n, k, bits, group):
    return n * k * bits // 8 


def product_bytes(m, n, k, bits, group):
    return 2 * m * k + weight_bytes(n, k, bits, group) + 2 * m * n


def product_flops(m, n, k):
    return 2 * m * n * k


def product_time(m, n, k, bits, group, bandwidth, peak):
    return max(product_bytes(m, n, k, bits, group) / bandwidth, product_flops(m, n, k) / peak)


def last_batch(bits, bandwidth, peak):
    return bits * peak // (16 * bandwidth)
