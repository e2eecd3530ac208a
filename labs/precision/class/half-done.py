# a, b and the challenge are answered; d has a kernel without its store; the rest is as released. Points: a, b and the
# challenge.

# %% solve=a-counts,b-packing,challenge-kernel

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
    out = y_ptr + m[:, None] * stride_ym + n[None, :] * stride_yn
