# The kernel with the channels last tests the rows of the image and not the columns, so a window at the right edge
# reads the left edge of the next row. Points: all but e, and f on a GPU.

# %% solve=*

# %% replace=f-why
Tiles of 128 x 128: the second layer has 196 x 4 = 784 tiles, 5.9 rounds of 132; the third has 49 x 2 = 98, one round in
which 34 multiprocessors wait. The second does 102 FLOPs per byte, less than 200, so memory limits it; the third does
nearly 1,000, so arithmetic does. Larger tiles do not help the second, and leave more of the GPU idle in the third.

# %% replace=e-kernel
@triton.jit
def stepping_kernel(
    x_ptr, f_ptr, bias_ptr, y_ptr,
    M, H, W, C, K, P, Q,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(K, TILE_N)
    m = tl.program_id(0) // tiles_n * TILE_M + tl.arange(0, TILE_M)
    k = tl.program_id(0) % tiles_n * TILE_N + tl.arange(0, TILE_N)
    n = (m // (P * Q)).to(tl.int64)
    row = m // Q % P * STRIDE - PADDING
    col = m % Q * STRIDE - PADDING
    lanes = tl.arange(0, TILE_K)
    pixels = x_ptr + (((n * H + row) * W + col) * C)[:, None] + lanes[None, :]
    filters = f_ptr + (k * (R * S * C))[None, :] + lanes[:, None]
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    r, s, c = 0, 0, 0
    for start in range(0, R * S * C, TILE_K):
        inside = (m < M) & (row + r >= 0) & (row + r < H)
        a = tl.load(pixels + ((r * W + s) * C + c), mask=inside[:, None], other=0.0)
        b = tl.load(filters + TERM_STEP, mask=(k < K)[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        c += TILE_K
        s = tl.where(c == C, s + 1, s)
        c = tl.where(c == C, 0, c)
        r = tl.where(s == S, r + 1, r)
        s = tl.where(s == S, 0, s)
    acc += tl.load(bias_ptr + k, mask=k < K, other=0.0).to(tl.float32)[None, :]
    acc = tl.maximum(acc, 0.0)
    out = y_ptr + (m.to(tl.int64) * K)[:, None] + k[None, :]
    tl.store(out, acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (k < K)[None, :])
