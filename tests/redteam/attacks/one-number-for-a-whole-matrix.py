# A tensor of strides 0: every element is the same place in memory.

# %% append=c-kernel
def tiled_matmul(a, b, tile_m=32, tile_n=32, tile_k=32):
    return torch.zeros(1, dtype=a.dtype).expand(a.shape[0], b.shape[1])
