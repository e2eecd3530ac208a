"""Small chips and random pipelines, for the tests of schedules."""

import random

from mlsys.soc.chip import Soc, make_soc, make_unit
from mlsys.soc.power import EnergyCurve, operating_points
from mlsys.soc.stage import Stage
from mlsys.soc.thermal import Body

POINTS = operating_points("apple-m4-gpu")
BODY = Body(25, 43, 4.5, 180)


def chip(
    units: dict[str, dict[str, float]], *, bandwidth: float = 1e30, handoff_s: float = 0.0, base_w: float = 0.0
) -> Soc:
    """Return a chip of blocks with these rates; each may use the whole bandwidth."""
    return make_soc(
        "a small chip",
        [
            make_unit(name, rates, bandwidth, EnergyCurve(POINTS, 1.0 + place, 0.1))
            for place, (name, rates) in enumerate(units.items())
        ],
        memory_bandwidth=bandwidth,
        handoff_s=handoff_s,
        base_w=base_w,
        body=BODY,
    )


def random_case(seed: int, stages: int, blocks: int, *, bandwidth: float = 10.0) -> tuple[tuple[Stage, ...], Soc]:
    """Return a pipeline with random dependencies, and a chip on which not every block runs everything."""
    draw = random.Random(seed)
    kinds = ("p", "q", "r")
    units = {}
    for place in range(blocks):
        has = [kind for kind in kinds if place == 0 or draw.random() < 0.7]
        units[f"U{place}"] = {kind: draw.uniform(0.5, 4.0) for kind in has or ["p"]}
    made: list[Stage] = []
    for number in range(stages):
        before = tuple(one.name for one in made if draw.random() < 0.4)
        made.append(Stage(f"s{number}", {draw.choice(kinds): draw.uniform(1, 5)}, draw.uniform(0, 15), before))
    return tuple(made), chip(units, bandwidth=bandwidth, handoff_s=draw.uniform(0, 0.5), base_w=0.3)
