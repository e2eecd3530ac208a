"""The scheduler of a phone: its numbers against the package, and what it says to a reader."""

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _figures import soc as drawn
from _interactive import soc as scheduler

from mlsys.soc import camera_pipeline, exhaustive_plan, govern, run
from mlsys.soc import soc as chip


def test_the_buttons_set_the_best_plans() -> None:
    """At the top clock nothing is faster; and at no clock is a plan of all more frugal and in time."""
    stages, phone = camera_pipeline(), chip("phone")
    presets = scheduler.presets()
    best = run(stages, exhaustive_plan(stages, phone), phone)
    assert scheduler.at(presets["fastest"]["places"], 1.0).total_s == pytest.approx(best.total_s)
    for rate in scheduler.RATES:
        chosen = presets["frugal"][str(rate)]
        frame = scheduler.at(chosen["places"], scheduler.CLOCKS[chosen["clock"]])
        assert frame.total_s <= 1 / rate
        for clock in scheduler.CLOCKS[1:]:
            try:
                found = exhaustive_plan(stages, phone, least="energy", deadline_s=1 / rate, clocks=(clock,))
            except ValueError:
                continue  # too slow at this clock
            other = run(stages, found, phone)
            assert scheduler.mean_power_w(frame, rate) <= scheduler.mean_power_w(other, rate) * (1 + 1e-9)


def test_every_stage_says_on_which_blocks_it_runs() -> None:
    listed = {one["name"]: set(one["seconds"]) for one in scheduler.content().numbers["stages"]}
    assert listed["boxes"] == {"CPU"}
    assert listed["detect"] == {"CPU", "GPU", "NPU", "DSP"}
    assert "NPU" not in listed["denoise"]


@pytest.mark.usefixtures("closed_figures")
def test_the_figure_of_heat_shows_both_governors() -> None:
    import matplotlib.pyplot as plt

    phone = chip("phone")
    samples = govern(phone.body, (0.5, 1.0), lambda clock: 9 * clock, seconds=1200)
    drawn.heat({"one": samples, "other": samples}, phone.body.limit_c)
    assert len(plt.gcf().axes) == 3
    drawn.timelines({"fast": scheduler.at(scheduler.presets()["fastest"]["places"], 1.0)}, phone, 1 / 30)
    assert {text.get_text() for text in plt.gcf().axes[0].texts} >= {"detect", "boxes", "listen"}


@pytest.mark.browser
def test_the_scheduler_computes_what_the_package_does_and_refuses_what_no_block_runs(browser: Any, site: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((site / "book/systems/soc.html").as_uri())
    figure = page.locator("figure[data-figure=soc]")
    figure.locator("svg .deadline").wait_for(state="attached")

    def said(name: str) -> float:
        return float(figure.locator(f".result data.{name}").get_attribute("value"))

    def choose(name: str, label: str) -> None:
        figure.get_by_role("combobox", name=name, exact=True).select_option(label=label)

    def is_that_of(places: dict[str, str], clock: float, others: str, rate: int) -> None:
        frame = scheduler.at(places, clock, others)
        power = scheduler.mean_power_w(frame, rate)
        assert said("time") == pytest.approx(frame.total_s, rel=1e-6)
        assert said("energy") == pytest.approx(frame.energy_until_j(1 / rate, scheduler.PHONE.base_w), rel=1e-6)
        assert said("power") == pytest.approx(power, rel=1e-6)
        body = scheduler.PHONE.body
        if body.steady_c(power) > body.limit_c:
            assert said("minutes") == pytest.approx(body.time_to_limit_s(body.ambient_c, power) / 60, rel=1e-6)
        else:
            assert said("case") == pytest.approx(body.steady_c(power), rel=1e-6)

    presets = scheduler.presets()
    places = dict(presets["fastest"]["places"])
    is_that_of(places, 1.0, "nothing", 30)
    for others in scheduler.OTHERS:
        choose("A language model also reads", others)
        is_that_of(places, 1.0, others, 30)
    assert figure.locator("svg .held-up").count() >= 3
    choose("Images per second", "60")
    figure.get_by_role("button", name="Most frugal plan in time").click()
    frugal = presets["frugal"]["60"]
    is_that_of(frugal["places"], scheduler.CLOCKS[frugal["clock"]], "40 GB/s, served first", 60)
    choose("A language model also reads", "nothing")
    figure.get_by_role("button", name="Everything on the CPU").click()
    is_that_of(dict.fromkeys(places, "CPU"), 1.0, "nothing", 60)
    assert "too long" in figure.locator(".result").inner_text()
    choose("boxes", "NPU")
    refused = "The NPU does not run “boxes”: it has no branches operations. Put this stage on the CPU."
    assert " ".join(figure.locator(".result").inner_text().split()) == refused
    choose("boxes", "CPU")
    choose("denoise", "DSP")
    choose("shrink", "CPU")
    choose("listen", "DSP")
    is_that_of({**dict.fromkeys(places, "CPU"), "denoise": "DSP", "listen": "DSP"}, 1.0, "nothing", 60)
    page.close()
