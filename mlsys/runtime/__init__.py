"""Decisions at run time, and the plans that prepare them: memory, kernels, streams and batches.

The memory planner is offered here: an offset for each buffer, so that none overlap while both are live.

>>> from mlsys.runtime import peak_live, plan_memory
>>> buffers = [(0, 2, 10), (1, 3, 10), (3, 4, 15)]
>>> peak_live(buffers), plan_memory(buffers)
(20, [0, 10, 0])

`mlsys.runtime.dispatch` chooses a kernel for a shape, `mlsys.runtime.launches` repeats launches of Triton kernels at
little cost to the host, `mlsys.runtime.streams` simulates kernels and copies in the
streams of a GPU, and `mlsys.runtime.batching` simulates requests that are served in batches.
`mlsys.runtime.class_queue` simulates a class that hands in before a deadline.
`mlsys.runtime.first_fit` and `mlsys.runtime.beam` are the two steps of the planner.
"""

from mlsys.runtime.buffers import Buffer, peak_live
from mlsys.runtime.memory_plan import DoesNotFit, plan_height, plan_memory

__all__ = ["Buffer", "DoesNotFit", "peak_live", "plan_height", "plan_memory"]
