"""Bytes that cross between DRAM and a near memory: tiled products, caches, coalescing, overlap of copy and work."""

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
