# One row per program everywhere, and attention in one share: right, and slow. Points: all; g on a GPU depends on how
# slow.

# %% solve=*

# %% replace=g-why
Weights of 247 MB and 19 MB of cache take 67 us at 4 TB/s; the cache is 7% of that. The other 113 us are 62 boundaries of
1.8 us each. All five kernels of a layer have bytes for 1.2 us or less, so each is worth less than a boundary. I would make
fewer boundaries first, with a persistent kernel whose barrier is shorter and that fetches weights while it waits. A memory
of twice the speed saves 33 us, and the boundaries stay.

# %% replace=g-config
def config(shape, dtype):
    rows = {"QKV_ROWS": 1, "PROJECTION_ROWS": 1, "UP_ROWS": 1, "DOWN_ROWS": 1, "HEAD_ROWS": 1}
    return rows | {"SPLITS": 1, "KEYS": 16, "BLOCK": 1024, "num_warps": 8}
