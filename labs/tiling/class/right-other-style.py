# Everything right, written otherwise: helper functions and imports in added cells, other names, two jit functions, no
# grouping, addresses computed afresh in every step. Also an exploratory cell that fails. Points: all.

# %% solve=gap-predictions,gap-causes,challenge-kernel

# %% replace=read-kernel
@triton.jit
def double_kernel(
    x_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn, TILE_M: tl.constexpr, TILE_N: tl.constexpr
):
    i = (tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)).expand_dims(1)
    j = (tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)).expand_dims(0)
    inside = (i < M) & (j < N)
    value = tl.load(x_ptr + i * stride_xm + j * stride_xn, inside)
    tl.store(y_ptr + i * stride_ym + j * stride_yn, value + value, inside)


def double(x):
    M, N = x.shape
    y = torch.empty((M, N), device=x.device, dtype=x.dtype)
    grid = lambda meta: (triton.cdiv(M, meta["TILE_M"]), triton.cdiv(N, meta["TILE_N"]))
    double_kernel[grid](x, y, M, N, x.stride(0), x.stride(1), y.stride(0), y.stride(1), TILE_M=16, TILE_N=16)
    return y

# %% add after=a-traffic
from functools import lru_cache
from math import ceil, isqrt


def tiles_over(extent, tile):
    return ceil(extent / tile)

# %% replace=a-traffic
def untiled_bytes(m, n, k, itemsize):
    per_result = k + k + 1
    return m * n * per_result * itemsize


def tiled_bytes(m, n, k, tile_m, tile_n, itemsize):
    A, B, C = m * k, k * n, m * n
    moved = A * tiles_over(n, tile_n) + B * tiles_over(m, tile_m) + C
    return moved * itemsize

# %% add after=b-test
# What does the replay say about an order of my own?
traffic.tiled_matmul(10, 10, 10, 4, 4, 4, memory_bytes=1000, order="backwards")

# %% replace=b-schedule
@lru_cache
def schedule(m, n, k, memory_bytes):
    room = memory_bytes // 4
    best = None
    for rows_of_tiles in range(1, m + 1):
        tile_m = tiles_over(m, rows_of_tiles)
        tile_n = min(n, (room - tile_m) // (tile_m + 1))
        if tile_n < 1:
            continue
        tile_n = tiles_over(n, tiles_over(n, tile_n))  # no longer than it has to be
        tile_k = max(1, (room - tile_m * tile_n) // (tile_m + tile_n))
        cost = tiled_bytes(m, n, k, tile_m, tile_n, 4)
        if best is None or cost < best[0]:
            best = cost, (tile_m, tile_n, min(k, tile_k))
    return best[1]

# %% add after=c-kernel
@triton.jit
def block(ptr, i, j, stride_i, stride_j, size_i, size_j):
    """A block of a matrix, zero outside."""
    addresses = ptr + i[:, None] * stride_i + j[None, :] * stride_j
    return tl.load(addresses, mask=(i[:, None] < size_i) & (j[None, :] < size_j), other=0.0)

# %% replace=c-kernel
@triton.jit
def matmul_kernel(
    left, right, out, M, N, K, lm, lk, rk, rn, om, on,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    columns = tl.cdiv(N, TILE_N)
    i = tl.program_id(0) // columns * TILE_M + tl.arange(0, TILE_M)
    j = tl.program_id(0) % columns * TILE_N + tl.arange(0, TILE_N)
    total = tl.zeros([TILE_M, TILE_N], tl.float32)
    for step in range(tl.cdiv(K, TILE_K)):
        p = step * TILE_K + tl.arange(0, TILE_K)
        total += tl.dot(block(left, i, p, lm, lk, M, K), block(right, p, j, rk, rn, K, N), input_precision="ieee")
    tl.store(out + i[:, None] * om + j[None, :] * on, total, mask=(i[:, None] < M) & (j[None, :] < N))


def tiled_matmul(a, b, tile_m=32, tile_n=32, tile_k=32):
    m, k = a.shape
    _, n = b.shape
    c = a.new_empty(m, n)
    grid = lambda meta: (tiles_over(m, meta["TILE_M"]) * tiles_over(n, meta["TILE_N"]),)
    matmul_kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP_M=1
    )
    return c

# %% replace=d-config
def config(shape, dtype):
    m, n, k = (max(16, 1 << (size - 1).bit_length()) for size in shape)
    return dict(
        TILE_M=min(m, 128), TILE_N=min(n, 64), TILE_K=min(k, 16), GROUP_M=1, num_warps=4, num_stages=isqrt(16) - 1
    )

# %% replace=d-why
128 x 64 needs 64 accumulators in each of 128 threads, the most that is allowed, and 3 x 192 x 16 x 4 bytes = 36 KiB. It does 21 FLOPs per
byte, close to what the T4 wants. Doubling a side breaks the register rule first.
