"""The packing of 2:4 by hand: what it says without a browser, and what the browser computes."""

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _interactive import packing  # noqa: E402


def test_the_first_example_is_packed_as_on_paper() -> None:
    packed, dense = packing.pack("3 0 -1 2 0.5 -0.75 4 0.25", "fp16")
    assert packed.values.tolist() == [[3, 2, -0.75, 4]]
    assert f"{packing.metadata(packed):08b}" == "10011100"  # places 1 and 2, then 0 and 3, each pair from the right
    assert (dense.nbytes, packed.nbytes) == (16, 9)


@pytest.mark.parametrize("text", packing.EXAMPLES.values())
@pytest.mark.parametrize("name", packing.FORMATS)
def test_every_example_fits_the_figure(text: str, name: str) -> None:
    if name == "int8" and "." in text:
        return  # the figure refuses fractions in INT8, which the browser test sees
    packed, dense = packing.pack(text, name)
    assert dense.size in packing.COUNTS
    assert packed.nbytes * 8 == dense.size * (dense.itemsize * 8 // 2 + 1)  # half the values, a bit for each weight


@pytest.mark.browser
def test_packing_is_that_of_the_package_and_refuses_what_does_not_fit(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/hardware/sparsity.html").as_uri())
    figure = page.locator('figure[data-figure="packing"]')
    typed, result = figure.get_by_role("textbox"), figure.locator(".result").first
    said = {name: figure.locator(f"data.{name}") for name in ("before", "after", "metadata")}
    for name, label in (("fp16", "FP16, 16 bits"), ("int8", "INT8, 8 bits")):
        figure.get_by_label("Format").select_option(name)
        for text in (packing.EXAMPLES["sixteen weights"], "0 0 5 2 1 1 1 1", "-128 127 0 3 0 0 0 0"):
            typed.fill(text)
            packed, dense = packing.pack(text, name)
            shown = {key: float(mark.get_attribute("value")) for key, mark in said.items()}
            assert shown == {"before": dense.nbytes, "after": packed.nbytes, "metadata": packing.metadata(packed)}, (
                label
            )
    for wrong, allowed in (
        ("1 2 3", "You typed 3 weights. Type 8 or 16"),
        ("128 0 0 0 0 0 0 0", "whole numbers from −128 to 127"),
        ("0.5 0 0 0 0 0 0 0", "“0.5” does not fit INT8"),
    ):
        typed.fill(wrong)
        assert allowed in " ".join(result.inner_text().split())
        assert typed.get_attribute("aria-invalid") == "true"
    page.close()
