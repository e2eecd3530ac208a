# The running sum has the dtype of the inputs, so float16 inputs are summed in float16: right at K = 64, wrong at K =
# 1024. Points: all but c.

# %% solve=*

# %% replace=d-why
Shared memory: 3 stages of (64 + 64) x 32 floats are 48 KiB, which fits the T4 with its 64 KiB and so the others. Each of the 128
threads holds 64 * 64 / 128 = 32 accumulators. Doubling both sides gives 128 accumulators per thread, more than the 64 that
compile without spills. With 32 x 32 every byte would serve 8 FLOPs instead of 16, so twice as many bytes would have to come.

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
    tiles_n = tl.cdiv(N, TILE_N)
    program = tl.program_id(0)
    rows = program // tiles_n * TILE_M + tl.arange(0, TILE_M)
    cols = program % tiles_n * TILE_N + tl.arange(0, TILE_N)
    ks = tl.arange(0, TILE_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn
    acc = tl.zeros((TILE_M, TILE_N), dtype=a_ptr.dtype.element_ty)
    for k in range(0, K, TILE_K):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(ks[:, None] < K - k) & (cols[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee").to(a_ptr.dtype.element_ty)
        a_ptrs += TILE_K * stride_ak
        b_ptrs += TILE_K * stride_bk
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


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
