"""The chapter on many chips: its figures against the package, and its calculator against Python in a browser."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _figures import multi_chip as figures  # noqa: E402
from _figures import two_gpus  # noqa: E402
from _interactive import parallelism as calculator  # noqa: E402

from mlsys.scaling import PlanDoesNotDivide, fabric, schedule  # noqa: E402
from mlsys.scaling.ring import ring_all_reduce  # noqa: E402

pytestmark = pytest.mark.usefixtures("closed_figures")

PLANS: list[dict[str, Any]] = [
    {},
    {"tensor": 4, "pipeline": 16},
    {"interleaving": 1, "recompute": "full"},
    {"data": 8, "pipeline": 1, "interleaving": 1, "sharding": 3, "recompute": "none"},
    {"cluster": "h100", "data": 2, "tensor": 2, "pipeline": 16, "interleaving": 2, "sharding": 1},
    {"model": "llama2-7b", "data": 8, "tensor": 1, "pipeline": 1, "interleaving": 1, "sharding": 2, "microbatch": 2},
    {"model": "llama2-70b", "data": 4, "pipeline": 2, "interleaving": 1, "batch": 256, "sharding": 1},
    {"model": "megatron-1t", "pipeline": 64, "interleaving": 1, "batch": 512},
]
"""Changes of the first plan of the calculator."""


@pytest.mark.parametrize("chips", [2, 3, 4, 7])
def test_the_drawn_counts_are_sums_of_what_the_ring_moved(chips: int) -> None:
    """Each chip's buffer has a bit of its own, so that a sum says which chips it holds."""
    run = ring_all_reduce([np.full(chips, 1 << chip) for chip in range(chips)])
    states = figures.summed(run)
    assert len(states) == 2 * chips - 1
    assert (states[0] == 1).all()
    assert ((states[chips - 1] == chips).sum(axis=1) == 1).all()  # one finished chunk on each
    assert (states[-1] == chips).all()
    assert all(int(value).bit_count() == chips for buffer in run.buffers for value in buffer)


def test_the_exchange_hides_behind_tokens_and_width() -> None:
    for link in ("nvlink-4", "infiniband-ndr"):
        assert figures.data_ratio(2048, link, 8) == pytest.approx(8 * figures.data_ratio(2048 * 8, link, 8))
        assert figures.tensor_ratio(2048, link, 8) > 1.3 * figures.tensor_ratio(4096, link, 8)


def test_figures_draw_what_they_are_given() -> None:
    figures.rates("nvlink-4", 8)
    model, ideal, measured = plt.gca().lines
    assert len(measured.get_xdata()) == 9
    sizes = 2**20 * np.asarray(model.get_xdata())
    assert model.get_ydata()[-1] == pytest.approx(fabric("nvlink-4").all_reduce_time(sizes[-1], 8).m_as("us"))
    assert (np.asarray(ideal.get_ydata()) < model.get_ydata()).all()
    figures.published()
    assert len(plt.gca().patches) == 8 * len(figures.PARTS)
    ends = [max(bar.get_x() + bar.get_width() for bar in plt.gca().patches[place::8]) for place in range(8)]
    assert all(91 < end < 109 for end in ends)
    figures.schedules({"one": schedule(2, 2), "two": schedule(2, 2, order="gpipe")})
    assert [len(ax.patches) for ax in plt.gcf().axes] == [8, 8]


def test_the_parts_of_the_published_figure_are_the_whole_step() -> None:
    shown = {name for _, names in figures.PARTS.values() for name in names}
    for step in figures.predicted().values():
        left = [part.m for name, part in step.parts.items() if name not in shown]
        assert left == [0, 0]  # no experts, no data groups


def test_a_record_is_read_and_what_is_missing_is_said() -> None:
    data = {
        "device": "NVIDIA H200",
        "versions": {"torch": "2.11.0"},
        "nccl": "2.28",
        "measured_on": "2026-12-01",
        "links": [{"what": "all-reduce", "bytes": 64, "measured_s": 1e-5}],
        "steps": [{"width": 4096, "sequences": 2, "tensor_s": 5e-3}],
    }
    record = two_gpus.read(data)
    assert record.label == "two NVIDIA H200 of one host, torch 2.11.0, NCCL 2.28, 2026-12-01"
    assert two_gpus.time_of(record, "all-reduce", 64) == 1e-5
    assert two_gpus.time_of(record, "all-reduce", 128) is None
    assert two_gpus.step_of(record, 4096, 2, "tensor_s") == 5e-3
    assert two_gpus.step_of(record, 4096, 2, "data_s") is None
    assert two_gpus.time_of(None, "all-reduce", 64) is two_gpus.step_of(None, 4096, 2, "data_s") is None


@pytest.mark.parametrize("changed", PLANS)
def test_every_plan_of_the_browser_test_divides(changed: dict[str, Any]) -> None:
    chosen = {**calculator.FIRST, **changed}
    calculator.plan_of(chosen).check(calculator.decoders()[chosen["model"]][1])


@pytest.mark.browser
def test_the_calculator_agrees_with_the_package_and_says_what_does_not_divide(browser: Any, site: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((site / "book/systems/multi-chip.html").as_uri())
    figure = page.locator("figure[data-figure=parallelism]")
    figure.locator("svg .room").wait_for(state="attached")
    lists = {
        "model": "Model",
        "cluster": "Chips",
        "tensor": "Chips of a tensor group",
        "microbatch": "Sequences of a microbatch",
        "recompute": "Computed again",
        "sharding": "Shared by the data groups",
    }
    fields = {
        "batch": "Sequences of a step",
        "data": "Data groups",
        "pipeline": "Stages of the pipeline",
        "interleaving": "Groups of layers on a stage",
    }

    def said(name: str) -> float:
        return float(figure.locator(f".result data.{name}").get_attribute("value"))

    def choose(chosen: dict[str, Any]) -> None:
        for name, label in lists.items():
            figure.get_by_role("combobox", name=label, exact=True).select_option(value=str(chosen[name]))
        for name, label in fields.items():
            figure.get_by_role("spinbutton", name=label, exact=True).fill(str(chosen[name]))

    for changed in PLANS:
        chosen = {**calculator.FIRST, **changed}
        choose(chosen)
        held, step = calculator.computed(chosen)
        plan = calculator.plan_of(chosen)
        assert said("chips") == plan.chips, changed
        assert said("held") == pytest.approx(held.total.m_as("byte"), rel=1e-6), changed
        assert said("time") == pytest.approx(step.total.m_as("s"), rel=1e-6), changed
        if step.exchanged.m:
            assert said("inside") + said("between") == pytest.approx(step.exchanged.m_as("s"), rel=1e-6), changed
    for changed in (
        {"pipeline": 7, "interleaving": 1},
        {"batch": 63, "data": 2},
        {"batch": 20},
        {"pipeline": 8, "interleaving": 5},
    ):
        choose({**calculator.FIRST, **changed})
        with pytest.raises(PlanDoesNotDivide) as refusal:
            calculator.plan_of({**calculator.FIRST, **changed}).check(calculator.decoders()["gpt3-175b"][1])
        text = figure.locator(".result").inner_text()
        assert "do not divide" in text or "does not divide" in text
        assert text.split(" ")[0].lower() == str(refusal.value).split(" ")[0].lower()  # the same number comes first
    choose({**calculator.FIRST, "data": 5000})
    answer = "Data groups: 5000 is not possible. Enter a whole number from 1 to 4,096."
    assert figure.locator(".result").inner_text() == answer
    page.close()
