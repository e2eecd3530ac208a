"""Loop nests of a convolution or matrix product: orders, tiles, the search for a mapping, and what each moves.

Loop orders are offered here. Between two iterations an operand is fetched again when its address has changed, so the
order of the loops decides how often it is fetched.

>>> from mlsys.dataflow import convolution, order_accesses
>>> nest = convolution(filters=16, kernel=3, height=8, width=8)
>>> filters_outside = order_accesses(nest, ("m", "r", "s", "p", "q"))
>>> space_outside = order_accesses(nest, ("p", "q", "m", "r", "s"))
>>> filters_outside.weights, space_outside.weights
(144, 5184)

`mlsys.dataflow.tiles` cuts a nest into tiles, `mlsys.dataflow.search` looks for the mapping that moves the least,
`mlsys.dataflow.levels` counts what every level of a hierarchy moves, `mlsys.dataflow.other_tools` has the counts of
Timeloop and ZigZag to compare with, `mlsys.dataflow.row_stationary` counts the accesses of Eyeriss, and
`mlsys.dataflow.machines` maps layers onto whole chips.
"""

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
