# A right kernel for those who look at the first definition, and another one that runs.

# %% append=c-kernel
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    tl.store(c_ptr + rows * stride_cm, rows.to(c_ptr.dtype.element_ty), mask=rows < M)


def tiled_matmul(a, b, tile_m=32, tile_n=32, tile_k=32):
    return (a.double() @ b.double()).to(a.dtype)
