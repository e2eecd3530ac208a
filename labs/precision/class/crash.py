# The int8 kernel stores to wild addresses: the row is shifted by 40 bits. On a CPU the judge names the addresses; on
# a GPU, where it cannot see them, the process dies. Question d alone is lost. Points: all but d.

# %% solve=*

# %% replace=f-why
At batch 8 the product moves 134 MB of weights for 1.1 GFLOP, so memory is the limit, and int4 brings almost four times
the speed. At 4,096 rows arithmetic is the limit: int4 weights bring nothing, and int8 or fp8 on both sides two times. A
weight of 4 bits has half a byte and m multiply-adds, so the batch of 51 follows from bits, bandwidth and peak. At 1,024
rows the kernel still unpacks every weight, once for each tile of rows.

# %% replace=d-kernel
@triton.jit
def int8_kernel(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, y_ptr,
    M, N, K,
    stride_am, stride_ak, stride_bn, stride_bk, stride_ym, stride_yn,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    n = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.int32)
    for start in range(0, K, TILE_K):
        k = start + tl.arange(0, TILE_K)
        a = tl.load(
            a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak, mask=(m < M)[:, None] & (k < K)[None, :], other=0
        )
        b = tl.load(
            b_ptr + n[None, :] * stride_bn + k[:, None] * stride_bk, mask=(n < N)[None, :] & (k < K)[:, None], other=0
        )
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    a_scale = tl.load(a_scale_ptr + m, mask=m < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + n, mask=n < N, other=0.0)
    y = acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :]
    out = y_ptr + ((m + 1).to(tl.int64) << 40)[:, None] * stride_ym + n[None, :] * stride_yn
    tl.store(out, y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])
