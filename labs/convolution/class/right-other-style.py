# Everything right, written otherwise: loops over taps and channels, helpers with @triton.jit in an added cell, other
# argument names, counts by listing, an exploratory cell that fails. Points: all.

# %% solve=gap-predictions,gap-causes

# %% replace=f-why
Tiles of 128 x 128: the second layer has 196 x 4 = 784 tiles, 5.9 rounds of 132; the third has 49 x 2 = 98, one round in
which 34 multiprocessors wait. The second does 102 FLOPs per byte, less than 200, so memory limits it; the third does
nearly 1,000, so arithmetic does. Larger tiles do not help the second, and leave more of the GPU idle in the third.

# %% replace=a-counts
def output_size(size, taps, stride, padding):
    return len(range(0, size + 2 * padding - taps + 1, stride))


def numbers(n, size, c, k, taps, stride, padding):
    pixels = n * output_size(size, taps, stride, padding) ** 2
    return n * size * size * c, k * taps * taps * c, pixels * k, pixels * taps * taps * c


def multiply_adds(n, size, c, k, taps, stride, padding):
    return numbers(n, size, c, k, taps, stride, padding)[3] * k


def copied_bytes(*layer):
    x, f, y, windows = numbers(*layer[:-1])
    return (x + 2 * windows + f + y) * layer[-1]


def implicit_bytes(*layer):
    return sum(numbers(*layer[:-1])[:3]) * layer[-1]


def separate_bytes(*layer):
    x, f, y, _ = numbers(*layer[:-1])
    result, k = y, layer[3]
    return (x + f + y + (TERM_EXTRA)) * layer[-1]


def fused_bytes(*layer):
    x, f, y, _ = numbers(*layer[:-1])
    result, k = y, layer[3]
    return (x + f + y + (TERM_FUSED_EXTRA)) * layer[-1]

# %% replace=b-element
def window_element(m, j, size, c, taps, stride, padding):
    places = len(range(0, size + 2 * padding - taps + 1, stride))
    rest, q = divmod(m, places)
    n, p = divmod(rest, places)
    r, s, channel = TERM_J_ROW, TERM_J_COLUMN, TERM_J_CHANNEL
    row, column = p * stride + r - padding, q * stride + s - padding
    if min(row, column) < 0 or max(row, column) >= size:
        return None
    return [n, row, column, channel]

# %% add after=b-test
# What is the largest tile?
print(nothing_of_that_name)

# %% add after=b-test
@triton.jit
def block(axis, SIZE: tl.constexpr):
    """The indices of this program along one axis."""
    return tl.program_id(axis) * SIZE + tl.arange(0, SIZE)


@triton.jit
def convolved(
    x, f, m, k, count, H, W, C, K, P, Q, xn, xh, xw, xc, fk, fr, fs, fc,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """The sums of pixels m and filters k, tap by tap."""
    image = m // (P * Q)
    total = tl.zeros((m.shape[0], k.shape[0]), tl.float32)
    for r in tl.static_range(R):
        for s in tl.static_range(S):
            row = m // Q % P * STRIDE - PADDING + r
            col = m % Q * STRIDE - PADDING + s
            real = (m < count) & (row >= 0) & (row < H) & (col >= 0) & (col < W)
            pixel = x + image * xn + row * xh + col * xw
            for first in range(0, C, TILE_K):
                c = first + tl.arange(0, TILE_K)
                left = tl.load(pixel[:, None] + c[None, :] * xc, real[:, None] & (c < C)[None, :], 0.0)
                right = tl.load(
                    f + k[None, :] * fk + TERM_TAP_R * fr + TERM_TAP_S * fs + c[:, None] * fc, (c < C)[:, None] & (k < K)[None, :], 0.0
                )
                total += tl.dot(left, right, input_precision="ieee")
    return total

# %% replace=c-kernel
@triton.jit
def conv_kernel(
    x, f, y, N, H, W, C, K, P, Q, xn, xh, xw, xc, fk, fr, fs, fc, yn, yp, yq, yk,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    m, k = block(0, TILE_M), block(1, TILE_N)
    total = convolved(
        x, f, m, k, N * P * Q, H, W, C, K, P, Q, xn, xh, xw, xc, fk, fr, fs, fc, R, S, STRIDE, PADDING, TILE_K
    )
    place = m // (P * Q) * yn + m // Q % P * yp + m % Q * yq
    tl.store(y + place[:, None] + k[None, :] * yk, total, (m < N * P * Q)[:, None] & (k < K)[None, :])

# %% replace=d-kernel
@triton.jit
def grouped_kernel(
    x, f, bias, y, N, H, W, C, K, P, Q, xn, xh, xw, xc, fk, fr, fs, fc, yn, yp, yq, yk,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, RELU: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    group = tl.program_id(2)
    x += group * C * xc
    f += group * K * fk
    bias += group * K
    y += group * K * yk
    m, k = block(0, TILE_M), block(1, TILE_N)
    total = convolved(
        x, f, m, k, N * P * Q, H, W, C, K, P, Q, xn, xh, xw, xc, fk, fr, fs, fc, R, S, STRIDE, PADDING, TILE_K
    )
    total += tl.load(bias + k, k < K, 0.0)[None, :]
    if RELU:
        total = tl.where(total > 0, total, 0.0)
    place = m // (P * Q) * yn + m // Q % P * yp + m % Q * yq
    tl.store(y + place[:, None] + k[None, :] * yk, total, (m < N * P * Q)[:, None] & (k < K)[None, :])

# %% replace=e-kernel
@triton.jit
def stepping_kernel(
    x, f, bias, y, M, H, W, C, K, P, Q,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    down = tl.cdiv(M, TILE_M)
    number = tl.program_id(0)
    m = number % down * TILE_M + tl.arange(0, TILE_M)
    k = number // down * TILE_N + tl.arange(0, TILE_N)
    channel = tl.arange(0, TILE_K)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    corner = (m // (P * Q) * H + m // Q % P * STRIDE - PADDING) * W + m % Q * STRIDE - PADDING
    filters = f + k[:, None] * (R * S * C) + channel[None, :]
    for r in range(R):
        row = m // Q % P * STRIDE - PADDING + r
        for s in range(S):
            col = m % Q * STRIDE - PADDING + s
            real = ((m < M) & (row >= 0) & (row < H) & (col >= 0) & (col < W))[:, None]
            here = x + (corner + r * W + s)[:, None] * C + channel[None, :]
            for _ in range(0, C, TILE_K):
                left = tl.load(here, real, 0.0)
                right = tl.load(filters + ((TERM_TAP_R - r) * S + TERM_TAP_S - s) * C, (k < K)[:, None], 0.0)
                total = tl.dot(left, right.T, total, input_precision="ieee")
                here += TILE_K
                filters += TILE_K
    total = tl.maximum(total + tl.load(bias + k, k < K, 0.0)[None, :], 0)
    tl.store(y + m[:, None] * K + k[None, :], total, (m < M)[:, None] & (k < K)[None, :])

# %% replace=f-config
def config(shape, dtype):
    filters = min(128, shape[3])
    return dict(TILE_M=128, TILE_N=filters, TILE_K=64, num_warps=filters // 16, num_stages=3)

# %% replace=g-tests
def window_sums(x, f, stride, padding):
    """The convolution by hand, a tap at a time, in float64."""
    f = TERM_FLIPPED
    n, h, w, c = x.shape
    k, r, s, _ = f.shape
    wide = x.new_zeros((n, h + 2 * padding, w + 2 * padding, c), dtype=torch.float64)
    wide[:, padding : padding + h, padding : padding + w] = x
    p, q = ((size + 2 * padding - taps) // stride + 1 for size, taps in ((h, r), (w, s)))
    y = 0
    for i in range(r):
        for j in range(s):
            window = wide[:, i : i + stride * (p - 1) + 1 : stride, j : j + stride * (q - 1) + 1 : stride]
            y = y + window @ f[:, i, j].double().T
    return y


def test_conv(conv):
    numbers = torch.Generator().manual_seed(3)
    x, f = torch.randn(3, 12, 8, 7, generator=numbers).to(DEVICE), torch.randn(21, 3, 4, 7, generator=numbers).to(DEVICE)
    turned = x[:, ::2, :, 1::2].permute(0, 2, 1, 3), f[:, :2, :, 1::2]
    for images_, filters, stride, padding in ((x, f, 3, 2), (*turned, 1, 1), (*turned, 2, 1)):
        error = (conv(images_, filters, stride, padding) - window_sums(images_, filters, stride, padding)).abs()
        if not bool((error < 1e-4).all()):
            return False
    long = torch.ones(1, 2, 1, 4096, dtype=torch.float16, device=DEVICE)
    long[..., 2048:] = -1
    y = conv(long * 0.999, torch.ones_like(long[:, :1]), 1, 0)
    return bool((y.abs() < 0.01).all())

# %% replace=challenge-kernel
@triton.jit
def depthwise_kernel(
    x, f, y, M, H, W, C, P, Q,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    PIXELS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    m, c = block(0, PIXELS)[:, None], block(1, CHANNELS)[None, :]
    n, p, q = m // (P * Q), m // Q % P, m % Q
    total = tl.zeros((PIXELS, CHANNELS), tl.float32)
    for tap in range(R * S):
        row, col = p * STRIDE + tap // S - PADDING, q * STRIDE + tap % S - PADDING
        real = (m < M) & (row >= 0) & (row < H) & (col >= 0) & (col < W) & (c < C)
        value = tl.load(x + ((n * H + row) * W + col) * C + c, real, 0.0).to(tl.float32)
        r, s = tap // S, tap % S
        total += value * tl.load(f + (TERM_TAP_R * S + TERM_TAP_S) * C + c, c < C, 0.0)
    tl.store(y + m * C + c, total, (m < M) & (c < C))
