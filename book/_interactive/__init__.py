"""What the interactive figures are made from: their numbers, and what stands on the page without JavaScript."""

from collections.abc import Callable

from _interactive import (
    accumulate,
    amdahl,
    attention,
    dataflow,
    divergence,
    fit,
    journey,
    layouts,
    limit,
    mapping,
    numerics,
    occupancy,
    overlap,
    packing,
    primitives,
    roofline,
    runtimes,
    stages,
    systolic,
    tiling,
    timeline,
)
from _interactive.content import Content, Table

FIGURES: dict[str, Callable[[], Content]] = {
    "accumulate": accumulate.content,
    "amdahl": amdahl.content,
    "attention": attention.content,
    "dataflow": dataflow.content,
    "divergence": divergence.content,
    "fit": fit.content,
    "journey": journey.content,
    "layouts": layouts.content,
    "limit": limit.content,
    "mapping": mapping.content,
    "numerics": numerics.content,
    "occupancy": occupancy.content,
    "overlap": overlap.content,
    "packing": packing.content,
    "primitives": primitives.content,
    "roofline": roofline.content,
    "runtimes": runtimes.content,
    "stages": stages.content,
    "systolic": systolic.content,
    "tiling": tiling.content,
    "timeline": timeline.content,
}
"""The figures by name. Each is drawn by `book/_static/interactive/NAME.js` from the numbers that are exported here."""

__all__ = ["FIGURES", "Content", "Table"]
