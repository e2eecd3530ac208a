# Memory that was freed a moment ago may still hold the reference.

# %% append=c-kernel
import numpy


def tiled_matmul(a, b, tile_m=32, tile_n=32, tile_k=32):
    # trick:
    stale = numpy.empty((a.shape[0], b.shape[1]), dtype=str(a.dtype)[6:])
    return torch.from_numpy(stale)
    # without:
    #: c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    #: matmul_kernel[(triton.cdiv(a.shape[0], tile_m) * triton.cdiv(b.shape[1], tile_n),)](
    #:     a, b, c, a.shape[0], b.shape[1], a.shape[1], *a.stride(), *b.stride(), *c.stride(),
    #:     TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP_M=4,
    #: )
    #: return c
