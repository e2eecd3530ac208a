"""The figure of copies behind computing: its bars, and what it says about the numbers that a reader enters."""

import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.pieces import walked

pytest.importorskip("matplotlib", reason="matplotlib is not installed: mlsys[book] brings it")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _interactive import overlap as figure  # noqa: E402

from mlsys.runtime.streams import Copy, Gpu, Kernel, Operation, simulate  # noqa: E402

PHONE = {"width": 390, "height": 844}


@pytest.mark.parametrize(("copy", "compute", "pieces"), [(12, 24, 4), (24, 12, 6), (12, 12, 3), (6, 30, 1)])
def test_bars_are_where_simulated_streams_put_the_operations(copy: int, compute: int, pieces: int) -> None:
    """Milliseconds, on a link on which a byte is a microsecond; every piece has a stream of its own."""
    plan: list[Operation] = []
    for n in range(pieces):
        plan += [
            Copy("copy in", f"s{n}", bytes=1000 * copy // pieces),
            Kernel("compute", f"s{n}", blocks=1, block_s=1e-3 * compute / pieces),
            Copy("copy out", f"s{n}", bytes=1000 * copy // pieces, direction="to host"),
        ]
    found = simulate(plan, Gpu(sms=1, link_bandwidth=1e6)).bars
    drawn = figure.bars(figure.stages(copy, compute, "both"), pieces, cost=0.0)
    for lane, stage in zip(figure.LANES, drawn, strict=True):
        expected = [1e3 * time for bar in found if bar.name == lane for time in (bar.start_s, bar.end_s)]
        assert [time for bar in stage for time in bar] == pytest.approx(expected)


@pytest.mark.browser
def test_what_is_said_is_what_every_piece_in_its_turn_takes(browser: Any, site: Path) -> None:
    page = browser.new_page(viewport=PHONE)
    page.goto((site / "book/memory/host-link.html").as_uri())
    shown = page.locator("figure[data-figure=overlap]")
    fields = {
        "copy": shown.get_by_role("spinbutton", name="One copy"),
        "compute": shown.get_by_role("spinbutton", name="Computing"),
        "pieces": shown.get_by_role("spinbutton", name="Pieces"),
        "cost": shown.get_by_role("spinbutton", name="Fixed cost"),
    }
    result = shown.locator(".result")
    said = {
        name: lambda name=name: float(result.locator(f"data.{name}").get_attribute("value"))
        for name in ("turns", "now", "best", "least")
    }
    for ways, copy, compute, pieces, cost in (
        ("in", 10, 30, 4, 50),
        ("both", 20, 7.5, 11, 400),
        ("both", 3, 90, 64, 0),
    ):
        shown.get_by_role("combobox").select_option(value=ways)
        for name, number in (("copy", copy), ("compute", compute), ("pieces", pieces), ("cost", cost)):
            fields[name].fill(str(number))
        times = list(figure.stages(copy, compute, ways))
        all_times = {n: walked(times, n, cost / 1000) for n in range(1, 65)}
        assert said["turns"]() == pytest.approx(all_times[1])
        assert said["now"]() == pytest.approx(all_times[pieces])
        assert said["least"]() == pytest.approx(min(all_times.values()))
        assert said["best"]() == min(all_times, key=lambda n: all_times[n])
        assert shown.locator("svg .place").count() == len(times) * (1 + pieces)
    for name, typed, answer in (
        ("pieces", "65", "65 is not possible. Enter a whole number from 1 to 64."),
        ("pieces", "2.5", "2.5 is not possible. Enter a whole number from 1 to 64."),
        ("copy", "", "nothing is not possible. Enter a number from 0.1 to 100."),
        ("cost", "-1", "-1 is not possible. Enter a number from 0 to 1,000."),
    ):
        fields[name].fill(typed)
        assert answer in result.inner_text()
        assert fields[name].get_attribute("aria-invalid") == "true"
        fields[name].fill("1")
    assert result.locator("data.now").count() == 1
    page.close()
