"""Many chips: collectives on a ring, and how far a step speeds up.

Times in closed form are offered here; `mlsys.scaling.ring` moves real chunks around a ring.
"""

from mlsys.scaling.collectives import (
    ring_all_gather_time,
    ring_all_reduce_time,
    ring_reduce_scatter_time,
    scaling_efficiency,
    speedup,
    step_time,
    training_time,
)

__all__ = [
    "ring_all_gather_time",
    "ring_all_reduce_time",
    "ring_reduce_scatter_time",
    "scaling_efficiency",
    "speedup",
    "step_time",
    "training_time",
]
