"""Figures of the memory wall: every point has its name, and what is drawn is what was counted."""

import sys
from itertools import combinations
from pathlib import Path

import pytest

from mlsys.hardware import Hardware
from mlsys.measure.records import Row
from mlsys.models import published_sizes

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _figures import memory_wall as figures  # noqa: E402

pytestmark = pytest.mark.usefixtures("closed_figures")


def texts() -> list[str]:
    return [text.get_text() for text in plt.gca().texts]


def test_every_chip_and_every_model_has_its_name() -> None:
    figures.models_against_bandwidth()
    names = {figures.short(Hardware.get(chip)) for chip in figures.BANDWIDTHS}
    names |= {model.name for model in published_sizes().values()}
    assert names <= set(texts())


def test_no_two_names_touch() -> None:
    figures.models_against_bandwidth()
    plt.gcf().canvas.draw()
    boxes = {text.get_text(): text.get_window_extent() for text in plt.gca().texts}
    touching = [pair for pair in combinations(boxes, 2) if boxes[pair[0]].overlaps(boxes[pair[1]])]
    assert touching == []


def test_growth_starts_at_one_and_follows_the_data_sheets() -> None:
    assert figures.bandwidth_growth("k20x") == 1
    assert figures.model_growth("alexnet") == 1
    assert figures.bandwidth_growth("a100-80gb-sxm") == pytest.approx(2039 / 250)


def test_crossings_are_counted_for_each_way_of_working() -> None:
    figures.passes({"apart": {"first": "read", "second": "read, write"}, "fused": {"both": "read, write"}})
    assert {"apart:\n3 crossings", "fused:\n2 crossings"} <= set(texts())


def test_the_line_beside_the_measured_times_is_bytes_over_bandwidth() -> None:
    times = dict.fromkeys(("median_s", "p20_s", "p80_s"), 6e-6)
    rates = dict.fromkeys(("achieved", "ceiling", "rate_unit"))
    rows = [Row("book", "launch", "", (n,), "fp32", **times, **rates, peers={}) for n in (1, 2**20)]
    bandwidth = Hardware.get("h200").memory_bw
    figures.bigger(rows, 8, bandwidth)
    _, line = plt.gca().lines
    size, time_us = line.get_xdata()[0], line.get_ydata()[0]
    assert time_us == pytest.approx(size * 8 / 4.8e12 * 1e6)
