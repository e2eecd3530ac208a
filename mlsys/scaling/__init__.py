"""Many chips: how they share a training step, what they exchange, and how long it takes.

`mlsys.scaling.collectives` has the times of a ring in closed form, `mlsys.scaling.ring` moves real chunks around one,
and `mlsys.scaling.network` says what collectives reach on real links. A `Plan` shares a `Decoder` among chips:
`mlsys.scaling.block` and `mlsys.scaling.pipeline` say what each chip does, `mlsys.scaling.memory` what it holds,
`mlsys.scaling.step` how long a step takes, `mlsys.scaling.choose` which plan is the fastest that fits, and
`mlsys.scaling.stack` does the smallest case, a few blocks on a few chips. All this is compared with the measurements in
`mlsys.scaling.published`.
"""

from mlsys.scaling.block import BlockShare
from mlsys.scaling.choose import Choice, NothingFits, plans, ranked
from mlsys.scaling.collectives import (
    ring_all_gather_time,
    ring_all_reduce_time,
    ring_reduce_scatter_time,
    scaling_efficiency,
    speedup,
    step_time,
    training_time,
)
from mlsys.scaling.decoder import Decoder
from mlsys.scaling.memory import Footprint, footprint
from mlsys.scaling.network import Fabric, fabric, fabrics
from mlsys.scaling.pipeline import Schedule, bubble_share, schedule
from mlsys.scaling.plan import Plan, PlanDoesNotDivide
from mlsys.scaling.published import run_of, runs, timed
from mlsys.scaling.stack import stack_time
from mlsys.scaling.step import (
    Cluster,
    StepTime,
    model_flops_utilization,
    sustained,
    train_step,
)

__all__ = [
    "BlockShare",
    "Choice",
    "Cluster",
    "Decoder",
    "Fabric",
    "Footprint",
    "NothingFits",
    "Plan",
    "PlanDoesNotDivide",
    "Schedule",
    "StepTime",
    "bubble_share",
    "fabric",
    "fabrics",
    "footprint",
    "model_flops_utilization",
    "plans",
    "ranked",
    "ring_all_gather_time",
    "ring_all_reduce_time",
    "ring_reduce_scatter_time",
    "run_of",
    "runs",
    "scaling_efficiency",
    "schedule",
    "speedup",
    "stack_time",
    "step_time",
    "sustained",
    "timed",
    "train_step",
    "training_time",
]
