# Read, a and d are answered; b returns equal squares (too much traffic); c has its grid and an empty kernel; the rest is
# as released. Points: read, a, d.

# %% solve=gap-predictions,read-kernel,a-traffic,d-config

# %% replace=b-schedule
def schedule(m, n, k, memory_bytes):
    """Tile sizes (tile_m, tile_n, tile_k) that fit the memory and move few bytes."""
    side = int((memory_bytes / 4 / 3) ** 0.5)
    return side, side, side

# %% replace=c-kernel
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """One program computes one TILE_M x TILE_N tile of C = A B, with A (M, K), B (K, N), C (M, N)."""
    pass  # your kernel


def tiled_matmul(a, b, tile_m=32, tile_n=32, tile_k=32):
    """A @ B by matmul_kernel."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, tile_m) * triton.cdiv(N, tile_n),)
    matmul_kernel[grid](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP_M=4,
    )  # fmt: skip
    return c
