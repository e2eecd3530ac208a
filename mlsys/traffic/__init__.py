"""Bytes that cross between DRAM and a near memory: tiled products, caches, coalescing, banks, overlap of copy and work.

Tiled products are offered here. Their loop nest is replayed through a near memory of a given size, which stands for
whatever holds the tiles: the shared memory and registers of one block, or a whole L2 cache.

>>> from mlsys import traffic
>>> one = traffic.untiled(m=1024, n=1024, k=1024)
>>> tiled = traffic.tiled_matmul(m=1024, n=1024, k=1024, tile_m=64, tile_n=64, tile_k=64, memory_bytes=48 * 1024)
>>> round(one.total / tiled.total, 1)
<Quantity(62.1, 'dimensionless')>

`mlsys.traffic.near_memory` models the near memory itself, `mlsys.traffic.coalescing` turns a warp's addresses into
transactions, `mlsys.traffic.banks` counts the passes of shared memory, and `mlsys.traffic.overlap` computes timelines
of copies and work.
"""

from mlsys.traffic.matmul import (
    ORDERS,
    Schedule,
    Traffic,
    best_schedule,
    compulsory_bytes,
    tiled_matmul,
    untiled,
)

__all__ = [
    "ORDERS",
    "Schedule",
    "Traffic",
    "best_schedule",
    "compulsory_bytes",
    "tiled_matmul",
    "untiled",
]
