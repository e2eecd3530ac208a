"""Systems on a chip: blocks with their own operations around one memory, and when, where and how fast each runs.

A chip and its blocks are in `mlsys.soc.chip`, their work in `mlsys.soc.stage`. A plan in advance comes from
`mlsys.soc.schedule`, decisions at run time from `mlsys.soc.dispatch`, and `mlsys.soc.timeline` says what runs when,
with the memory divided as in `mlsys.soc.contention`. Where a network is cut for want of an operation, see
`mlsys.soc.partition`. Clocks and energy are in `mlsys.soc.power` and `mlsys.soc.dvfs`, with a pass of GPT-3 in
`mlsys.soc.training_pass`; heat is in `mlsys.soc.thermal`. `mlsys.soc.phones` holds measured times.

>>> from mlsys.soc import camera_pipeline, plan, run, soc
>>> chip = soc("phone")
>>> round(1e3 * run(camera_pipeline(), plan(camera_pipeline(), chip), chip).total_s, 1)
7.0
"""

from mlsys.soc.chip import CannotRun, Soc, Unit, soc
from mlsys.soc.dispatch import dispatch
from mlsys.soc.partition import partition
from mlsys.soc.power import EnergyCurve, OperatingPoints, operating_points
from mlsys.soc.schedule import exhaustive_plan, list_schedule, plan
from mlsys.soc.stage import Stage, camera_pipeline
from mlsys.soc.thermal import Body, govern
from mlsys.soc.timeline import Plan, Timeline, run

__all__ = [
    "Body",
    "CannotRun",
    "EnergyCurve",
    "OperatingPoints",
    "Plan",
    "Soc",
    "Stage",
    "Timeline",
    "Unit",
    "camera_pipeline",
    "dispatch",
    "exhaustive_plan",
    "govern",
    "list_schedule",
    "operating_points",
    "partition",
    "plan",
    "run",
    "soc",
]
