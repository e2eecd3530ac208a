"""The journey of a tensor: its numbers against data sheets worked out by hand, and what a reader may type."""

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _interactive import journey


def test_32_kb_from_the_device_memory_of_an_h100_are_mostly_latency() -> None:
    near, middle, far = journey.levels("h100-sxm")
    assert far["latency"] == pytest.approx(702 / 1.98e9)
    assert journey.time_s(far, 32_000) == pytest.approx(354.5e-9 + 9.55e-9, rel=1e-3)
    assert journey.time_s(near, 32_000) == pytest.approx(29 / 1.98e9 + 32_000 / (132 * 127.5 * 1.98e9))
    assert near["capacity"] == 132 * 228 * 1024
    assert middle["energy"] == pytest.approx(1.45e-12 + 4.87e-12)
    assert far["energy"] == pytest.approx(18.0e-12)


def test_the_table_leaves_out_what_a_memory_cannot_hold() -> None:
    head, *rows = journey.content().tables[0].rows
    by_size = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert by_size["32,000"]["device memory"] == "364 ns"
    assert by_size["1,000,000,000"]["L2 cache"] == "does not fit"


@pytest.mark.browser
def test_the_journey_says_what_rules_and_what_may_be_typed(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/memory/hierarchy.html").as_uri())
    figure = page.locator("figure[data-figure=journey]")
    typed, result = figure.get_by_role("spinbutton"), figure.locator(".result")
    for size, rules, nearest in (
        ("32000", "latency", "shared memories"),
        ("40000000", "bandwidth", "L2 cache"),
        ("1000000000", "bandwidth", "device memory"),
    ):
        typed.fill(size)
        assert result.locator(".limit").inner_text() == rules
        assert result.locator(".nearest").inner_text() == nearest
        told = float(result.locator("data.from-far").get_attribute("value"))
        assert told == pytest.approx(702 / 1.98e9 + float(size) / 3.35e12)
    for wrong in ("0", "1.5", "", "80000000001"):
        typed.fill(wrong)
        assert "Enter a whole number of bytes from 1 to 80,000,000,000" in result.inner_text()
        assert typed.get_attribute("aria-invalid") == "true"
    figure.get_by_role("slider").press("ArrowLeft")
    assert typed.get_attribute("aria-invalid") is None
    page.close()
