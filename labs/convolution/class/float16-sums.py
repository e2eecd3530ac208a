# The convolution and the grouped one keep their sums in the dtype of the result. Points: all but c and d.

# %% solve=*

# %% replace=f-why
Tiles of 128 x 128: the second layer has 196 x 4 = 784 tiles, 5.9 rounds of 132; the third has 49 x 2 = 98, one round in
which 34 multiprocessors wait. The second does 102 FLOPs per byte, less than 200, so memory limits it; the third does
nearly 1,000, so arithmetic does. Larger tiles do not help the second, and leave more of the GPU idle in the third.

# %% replace=c-kernel
@triton.jit
def conv_kernel(
    x_ptr, f_ptr, y_ptr,
    N, H, W, C, K, P, Q,
    stride_xn, stride_xh, stride_xw, stride_xc,
    stride_fk, stride_fr, stride_fs, stride_fc,
    stride_yn, stride_yp, stride_yq, stride_yk,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    k = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    n = (m // (P * Q)).to(tl.int64)  # 64-bit, for n * stride can pass 2^31
    p = m // Q % P
    q = m % Q
    images = x_ptr + n * stride_xn
    filters = f_ptr + k * stride_fk
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, R * S * C, TILE_K):
        j = start + tl.arange(0, TILE_K)
        c = j % C
        s = j // C % S
        r = j // C // S
        row = (p * STRIDE - PADDING)[:, None] + r[None, :]
        col = (q * STRIDE - PADDING)[:, None] + s[None, :]
        inside = (row >= 0) & (row < H) & (col >= 0) & (col < W) & (m < N * P * Q)[:, None] & (r < R)[None, :]
        a = tl.load(
            images[:, None] + row * stride_xh + col * stride_xw + (c * stride_xc)[None, :], mask=inside, other=0.0
        )
        taken = (r < R)[:, None] & (k < K)[None, :]
        b = tl.load(filters[None, :] + (TERM_TAP_R * stride_fr + TERM_TAP_S * stride_fs + c * stride_fc)[:, None], mask=taken, other=0.0)
        acc = (acc + tl.dot(a, b, input_precision="ieee")).to(y_ptr.dtype.element_ty).to(tl.float32)
    out = y_ptr + (n * stride_yn + p * stride_yp + q * stride_yq)[:, None] + (k * stride_yk)[None, :]
    tl.store(out, acc.to(y_ptr.dtype.element_ty), mask=(m < N * P * Q)[:, None] & (k < K)[None, :])

# %% replace=d-kernel
@triton.jit
def grouped_kernel(
    x_ptr, f_ptr, bias_ptr, y_ptr,
    N, H, W, C, K, P, Q,
    stride_xn, stride_xh, stride_xw, stride_xc,
    stride_fk, stride_fr, stride_fs, stride_fc,
    stride_yn, stride_yp, stride_yq, stride_yk,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, RELU: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    group = tl.program_id(2)
    m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    k = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    n = (m // (P * Q)).to(tl.int64)
    p = m // Q % P
    q = m % Q
    images = x_ptr + n * stride_xn + group * C * stride_xc
    filters = f_ptr + (group * K + k) * stride_fk
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, R * S * C, TILE_K):
        j = start + tl.arange(0, TILE_K)
        c = j % C
        s = j // C % S
        r = j // C // S
        row = (p * STRIDE - PADDING)[:, None] + r[None, :]
        col = (q * STRIDE - PADDING)[:, None] + s[None, :]
        inside = (row >= 0) & (row < H) & (col >= 0) & (col < W) & (m < N * P * Q)[:, None] & (r < R)[None, :]
        a = tl.load(
            images[:, None] + row * stride_xh + col * stride_xw + (c * stride_xc)[None, :], mask=inside, other=0.0
        )
        taken = (r < R)[:, None] & (k < K)[None, :]
        b = tl.load(filters[None, :] + (TERM_TAP_R * stride_fr + TERM_TAP_S * stride_fs + c * stride_fc)[:, None], mask=taken, other=0.0)
        acc = (acc + tl.dot(a, b, input_precision="ieee")).to(y_ptr.dtype.element_ty).to(tl.float32)
    acc += tl.load(bias_ptr + group * K + k, mask=k < K, other=0.0).to(tl.float32)[None, :]
    if RELU:
        acc = tl.maximum(acc, 0.0)
    place = (n * stride_yn + p * stride_yp + q * stride_yq)[:, None] + ((group * K + k) * stride_yk)[None, :]
    tl.store(y_ptr + place, acc.to(y_ptr.dtype.element_ty), mask=(m < N * P * Q)[:, None] & (k < K)[None, :])
