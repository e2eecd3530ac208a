"""The sweep over blocks of keys: every order and every block ends at the softmax over all keys."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _interactive import attention  # noqa: E402


def whole() -> np.ndarray:
    weights = np.exp(np.array(attention.SCORES, dtype=np.float64))
    return weights @ np.array(attention.VALUES) / weights.sum()


@pytest.mark.parametrize("block", attention.BLOCKS)
@pytest.mark.parametrize("order", attention.ORDERS)
def test_every_sweep_ends_at_the_softmax_of_all_keys(order: str, block: int) -> None:
    steps: Any = attention.run(order, block)
    total, *output = steps[-1]["now"]
    np.testing.assert_allclose(np.array(output) / total, whole(), rtol=1e-12)
    assert steps[-1]["m"] == max(attention.SCORES)


def test_maxima_of_2_and_5_leave_e_to_the_minus_3() -> None:
    steps: Any = attention.run("given", 4)
    assert [step["m"] for step in steps] == [2, 5, 6]
    assert steps[1]["factor"] == pytest.approx(np.exp(-3))
    assert steps[1]["kept"][0] == pytest.approx(np.exp(-3) * steps[1]["before"][0])


def test_falling_scores_never_rescale() -> None:
    steps: Any = attention.run("falling", 2)
    assert [step["factor"] for step in steps[1:]] == [1.0] * (len(steps) - 1)


@pytest.mark.browser
def test_the_page_says_the_numbers_of_the_sweep(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/performance/attention.html").as_uri())
    figure = page.locator('figure[data-figure="attention"]')
    for name, (label, _) in attention.ORDERS.items():
        figure.get_by_role("combobox", name="Order of the keys").select_option(label=label)
        for block in (1, 4):
            figure.get_by_role("combobox", name="Keys in a block").select_option(label=str(block))
            steps: Any = attention.run(name, block)
            step = steps[1]  # the figure begins with two blocks
            for shown, right in (("factor", step["factor"]), ("sum", step["now"][0]), ("largest", step["m"])):
                assert float(figure.locator(f".result data.{shown}").get_attribute("value")) == pytest.approx(right)
    for _ in range(len(steps)):
        figure.get_by_role("button", name="Next").click()
    assert "That is exact attention" in figure.locator(".result").inner_text()
    page.close()
