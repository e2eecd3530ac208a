# Right everywhere, with tiles of 1024 rows and one column: neighboring lanes read a whole row apart. On a GPU the race
# gives few points or none. Points: all but a large part of j.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=j-config
def tile_config(shape, dtype):
    return {"ROWS": 1024, "COLS": 1, "num_warps": 4}
