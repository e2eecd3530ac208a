"""Numbers and the figure of the page on class sizes: what judging took, and how long verdicts wait."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from mlsys import viz
from mlsys.runtime.class_queue import Deadline

RECORD = Path(__file__).parents[2] / "tests" / "labs" / "results" / "nvidia-h200.json"
"""The sample classes of all labs, graded on one GPU, with the seconds of each question."""
WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""


def measured() -> dict[str, list[float]]:
    """Return the seconds that each submission of the sample classes took, by lab."""
    content = json.loads(RECORD.read_text(encoding="utf-8"))
    found = {}
    for lab, rows in content.items():
        if isinstance(rows, list):
            seconds: defaultdict[str, float] = defaultdict(float)
            for row in rows:
                seconds[row["student"]] += row["seconds"]
            found[lab] = sorted(seconds.values())
    return found


def waits(class_: Deadline, gpus: Sequence[int], at_once: int, enough: Mapping[int, str]) -> None:
    """Draw how long hand-ins wait over the hours before the deadline, for some numbers of GPUs.

    Args:
        class_: the class.
        gpus: numbers of GPUs.
        at_once: hand-ins that a GPU judges at a time.
        enough: words for some numbers, for the legend.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.1))
    edges = np.arange(-24, 0.1, 0.25)
    for count, (tone, dashes) in zip(gpus, (("OrangeLine", "--"), ("BlueLine", "-"), ("GreenLine", ":")), strict=False):
        served = class_.simulate(at_once * count)
        hours, minutes = served.arrived_s / 3600, (served.started_s - served.arrived_s) / 60
        mids = [(a + b) / 2 for a, b in pairwise(edges)]
        inside = [minutes[(hours >= a) & (hours < b)] for a, b in pairwise(edges)]
        median = [float(np.median(one)) if len(one) else 0.0 for one in inside]
        ax.plot(mids, median, dashes, color=colors[tone], label=f"{count} GPUs{enough.get(count, '')}")
    ax.set(xlabel="hours from the deadline", ylabel="median wait, minutes", xlim=(-24, 0), ylim=(0, None))
    ax.legend(loc="upper left")
