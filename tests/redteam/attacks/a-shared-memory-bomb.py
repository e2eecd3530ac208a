# Memory that belongs to nobody: shared mappings, unnamed files, /dev/shm.

# %% replace=a-traffic
import mmap
import os


def untiled_bytes(m, n, k, itemsize):
    # trick:
    held = []
    while True:
        held.append(mmap.mmap(-1, 100_000_000))
        held[-1].write(bytes(100_000_000))
    # without:
    #: return (2 * m * n * k + m * n) * itemsize


def tiled_bytes(m, n, k, tile_m, tile_n, itemsize):
    # trick:
    os.ftruncate(os.memfd_create("held"), 100_000_000_000)
    # without:
    #: return (m * k * -(-n // tile_n) + k * n * -(-m // tile_m) + m * n) * itemsize
