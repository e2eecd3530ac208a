# An object that can be launched like a kernel and is none.

# %% replace=c-kernel
class Launchable:
    def __init__(self):
        self.fn = self

    def __getitem__(self, grid):
        def run(a, b, c, *others, **constants):
            c.copy_(a @ b)

        return run


matmul_kernel = Launchable()


def tiled_matmul(a, b, tile_m=32, tile_n=32, tile_k=32):
    c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    matmul_kernel[(1,)](a, b, c)
    return c
