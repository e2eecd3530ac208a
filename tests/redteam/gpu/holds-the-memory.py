# Takes all of the GPU's memory and keeps it.

# %% replace=c-kernel
held = []


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, s, t, u, v, w, x, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
                  TILE_K: tl.constexpr, GROUP_M: tl.constexpr):
    pass


def tiled_matmul(a, b, tile_m=32, tile_n=32, tile_k=32):
    while True:
        held.append(torch.ones(1 << 30, device=a.device))
