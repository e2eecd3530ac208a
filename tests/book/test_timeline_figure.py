"""The timeline of chips and the figures of its chapter: sources, order, the fitted trends, and what a reader types."""

import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import pages

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _figures import specialization as figures
from _interactive import timeline

from mlsys.errors import InvalidValue
from mlsys.measure.records import Row


def test_chips_are_in_order_and_each_names_a_document_of_the_bibliography() -> None:
    chips = timeline.milestones()
    years = [chip.year for chip in chips]
    assert years == sorted(set(years))
    assert timeline.FIRST in years
    assert {chip.row for chip in chips} == set(timeline.ROWS)
    keys = re.findall(r"^@\w+\{([\w-]+),", timeline.REFERENCES.read_text(encoding="utf-8"), re.M)
    for chip in chips:
        assert chip.cite in keys
        assert re.fullmatch(r"[^{}\\]+, (19|20)\d\d", timeline.citation(chip.cite))


def test_a_document_that_is_not_listed_is_refused() -> None:
    with pytest.raises(KeyError, match="nobody2000"):
        timeline.citation("nobody2000")


def test_dark_silicon_follows_from_energy_and_density() -> None:
    """Twice the transistors, each with the energy of its capacitance and voltage, at one clock and one power."""
    for generations in range(6):
        transistors, capacitance = 2.0**generations, 0.5 ** (generations / 2)
        assert figures.lit(generations) == pytest.approx(1 / (transistors * capacitance))
        assert figures.lit(generations, voltage_shrinks=True) == 1


def test_overhead_is_what_an_instruction_of_70_pj_leaves_to_multiply_adds_of_1_5() -> None:
    for count in (1, 32, 2048):
        assert figures.overhead(count) == pytest.approx(70 / (70 + 1.5 * count))


def test_peaks_of_the_fit_are_dense_and_in_order() -> None:
    years, peaks = figures.chip_peaks()
    assert years == sorted(years)
    assert [round(peak / 1e12, 2) for peak in peaks] == [3.95, 21.2, 125, 312, 989.4, 2250]
    slope = math.log(peaks[-1] / peaks[0]) / (years[-1] - years[0])
    assert 1.6 < math.exp(slope) < 1.8


def test_timeline_steps_and_says_which_years_it_has(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto(pages.built(site, "specialization").as_uri())
    figure = page.locator("figure[data-figure=timeline]")
    typed, result = figure.get_by_role("spinbutton"), figure.locator(".result")
    figure.get_by_role("button", name="Later").click()
    assert "TI TMS32010" in result.inner_text()
    assert typed.input_value() == "1983"
    typed.fill("2016")
    assert "Google TPU v1" in result.inner_text()
    assert "Jouppi" in result.inner_text()
    for wrong in ("1979", "2025", "", "1999.5"):
        typed.fill(wrong)
        assert "The timeline has the years 1980 to 2024" in result.inner_text()
        assert typed.get_attribute("aria-invalid") == "true"
    figure.locator("circle").last.click()
    assert "NVIDIA B200" in result.inner_text()
    assert figure.get_by_role("button", name="Later").get_attribute("aria-disabled") == "true"
    page.close()


def test_energy_of_an_operation_is_power_over_rate() -> None:
    row = Row("book", "independent roofs", "x", (1,), "bf16", 1, 1, 1, 800.0, None, "TFLOP/s", {})
    with pytest.raises(InvalidValue, match="no power"):
        figures.energy_per_operation(row)
    assert figures.energy_per_operation(replace(row, power_w=680.0)) == pytest.approx(680 / 800e12 * 1e12)
