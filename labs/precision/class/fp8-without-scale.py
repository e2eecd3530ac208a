# The fp8 kernel forgets the scale. Points: all but g on a GPU.

# %% solve=*

# %% replace=f-why
At batch 8 the product moves 134 MB of weights for 1.1 GFLOP, so memory is the limit, and int4 brings almost four times
the speed. At 4,096 rows arithmetic is the limit: int4 weights bring nothing, and int8 or fp8 on both sides two times. A
weight of 4 bits has half a byte and m multiply-adds, so the batch of 51 follows from bits, bandwidth and peak. At 1,024
rows the kernel still unpacks every weight, once for each tile of rows.

# %% replace=g-kernel
@triton.jit
def fp8_kernel(
    a_ptr, b_ptr, scale_ptr, y_ptr,
    M, N, K,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N)
    # Eight rows of tiles at a time, down the rows first.
    number = tl.program_id(0)
    top = number // (8 * tiles_n) * 8
    high = min(tiles_m - top, 8)
    within = number % (8 * tiles_n)
    m = (top + within % high) * TILE_M + tl.arange(0, TILE_M)
    n = within // high * TILE_N + tl.arange(0, TILE_N)
    k = tl.arange(0, TILE_K)
    a_tile = a_ptr + m[:, None] * K + k[None, :]
    b_tile = b_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, K, TILE_K):
        left = K - start
        a = tl.load(a_tile + start, mask=(m < M)[:, None] & (k < left)[None, :], other=0.0)
        b = tl.load(b_tile + start, mask=(n < N)[None, :] & (k < left)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    y = acc
    out = y_ptr + m[:, None] * N + n[None, :]
    tl.store(out, y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


def fp8_config(shape, dtype):
    return {"TILE_M": 128, "TILE_N": 256, "TILE_K": 128, "num_warps": 8, "num_stages": 3}
