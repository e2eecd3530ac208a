"""Loop nests of a convolution or matrix product: orders, tiles, the search for a mapping, and what each moves."""

from mlsys.dataflow.orders import (
    Accesses,
    LoopNest,
    StationaryTraffic,
    compulsory,
    convolution,
    matmul,
    order_accesses,
    reuse,
    stationary_traffic,
)

__all__ = [
    "Accesses",
    "LoopNest",
    "StationaryTraffic",
    "compulsory",
    "convolution",
    "matmul",
    "order_accesses",
    "reuse",
    "stationary_traffic",
]
