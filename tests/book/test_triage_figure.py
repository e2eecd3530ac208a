"""Figures of the summary, and the form that says why a program is slow: against sums of their own, and in a browser."""

import sys
from pathlib import Path
from typing import Any

import pytest

from mlsys import models
from mlsys.measure import records

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
BOOK = Path(__file__).parents[2] / "book"
sys.path.insert(0, str(BOOK))

from _figures import summary  # noqa: E402
from _interactive import triage  # noqa: E402

pytestmark = pytest.mark.usefixtures("closed_figures")
STEP = {"time": 3.03, "gflop": 3.27, "mb": 3275, "kernels": 485}


def test_a_bar_ends_where_both_parts_end_and_says_how_far_that_is_from_the_diamond() -> None:
    summary.steps({"one": summary.Step(1.0, 3.0, 4.0), "two": summary.Step(1.0, 2.0, 4.0)}, fitted="one")
    ends = {round(bar.get_x() + bar.get_width(), 9) for bar in plt.gca().patches}
    assert ends == {1.0, 4.0, 3.0}
    assert [text.get_text() for text in plt.gca().texts] == ["fitted", "−25%"]


def test_at_the_half_batch_bytes_take_as_long_as_kernels() -> None:
    batch = summary.half_batch(weights=3e9, cache=0.15e9, kernels_s=2e-3, bandwidth=4e12)
    assert (3e9 + batch * 0.15e9) / 4e12 == pytest.approx(2e-3)


def test_every_question_has_a_box_and_a_change() -> None:
    summary.triage()
    texts = [text.get_text() for text in plt.gca().texts]
    assert texts.count("yes") == len(summary.QUESTIONS) - 1
    assert all(question in texts and change in texts for _, question, change, _ in summary.QUESTIONS)


def test_the_form_begins_with_what_was_measured_and_counted() -> None:
    start = triage.first()
    layers, width, words, places, context = 48, 1600, 50257, 1024, 512
    matrices = layers * 12 * width**2 + words * width
    cache = 2 * layers * context * width
    assert start["gflop"] == pytest.approx(2 * (matrices + cache) / 1e9, rel=2e-3)
    assert start["mb"] == pytest.approx(2 * (matrices + cache) / 1e6, rel=3e-3)  # and intermediate results
    assert start["kernels"] == 10 * layers + 5
    assert models.gpt2("xl").params.m == pytest.approx(matrices + places * width, rel=1e-3)


@pytest.mark.parametrize(
    ("changed", "way", "cause"),
    [
        ({}, "graph", "short kernels"),
        ({"time": 20.7}, "python", "host"),
        ({"time": 0.6}, "graph", "impossible"),
        ({"time": 0.8}, "graph", "bytes"),
        ({"time": 3.5}, "python", "launches"),
        ({"gflop": 2000, "kernels": 48}, "graph", "arithmetic"),
        ({"time": 30, "kernels": 48}, "graph", "long kernels"),
    ],
)
def test_each_cause_is_found(changed: dict[str, float], way: str, cause: str) -> None:
    assert triage.verdict("h200", way, **{**STEP, **changed}).cause == cause


def test_shares_are_those_of_plain_sums() -> None:
    """The A100's data sheet: 2,039 GB/s and 312 TFLOP/s."""
    said = triage.verdict("a100-80gb-sxm", "graph", time=10, gflop=312, mb=2039, kernels=100)
    assert (said.bytes, said.arithmetic) == pytest.approx((0.1, 0.1))
    assert said.left_us == pytest.approx(90)
    [row] = [row for row in records.load("nvidia-h200").named("launch latency", "graph") if row.shape == (1,)]
    assert said.launches == pytest.approx(100 * row.median_s / 10e-3)


def test_every_cause_leads_to_chapters_that_exist() -> None:
    pages = [page for links in triage.PAGES.values() for page, _ in links]
    assert [page for page in pages if not (BOOK / f"{page}.md").is_file()] == []


@pytest.mark.browser
def test_the_form_says_what_the_package_computes_and_refuses_what_is_out_of_range(browser: Any, site: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((site / "book/choosing/summary.html").as_uri())
    figure = page.locator("figure[data-figure=triage]")
    figure.locator("svg > *").first.wait_for(state="attached")
    labels = {"time": "Measured time", "gflop": "FLOPs", "mb": "Bytes that", "kernels": "Kernels"}
    for device, way, changed in (
        ("h200", "graph", {}),
        ("h200", "python", {"time": 20.7}),
        ("t4", "graph", {"time": 14, "kernels": 60}),
        ("b200", "python", {"gflop": 20000, "time": 11, "kernels": 3}),
        ("h200", "graph", {"time": 0.5}),
    ):
        now = STEP | changed
        figure.get_by_role("combobox", name="Device").select_option(value=device)
        figure.get_by_role("combobox", name="Launches").select_option(value=way)
        for key, label in labels.items():
            figure.get_by_role("spinbutton", name=label).fill(str(now[key]))
        said = triage.verdict(device, way, **now)
        assert figure.locator(".result .cause").get_attribute("data-cause") == said.cause
        for name in ("bytes", "arithmetic", "launches"):
            shown = float(figure.locator(f".result data.{name}").get_attribute("value"))
            assert shown == pytest.approx(getattr(said, name), rel=1e-9)
        for link in figure.locator(".result a").all():
            assert (site / "book/choosing" / link.get_attribute("href")).resolve().is_file()
    figure.get_by_role("spinbutton", name="Kernels").fill("0")
    assert "0 is not possible. Enter a whole number from 1 to 1,000,000." in figure.locator(".result").inner_text()
    page.close()
