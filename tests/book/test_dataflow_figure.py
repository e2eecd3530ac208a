"""The player of dataflows: its walks against counts in closed form, and what the browser shows of them."""

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _interactive import dataflow as player  # noqa: E402

from mlsys.dataflow import convolution, order_accesses  # noqa: E402
from mlsys.dataflow.row_stationary import RowMapping, row_stationary  # noqa: E402

NEST = convolution(filters=1, kernel=3, height=5, width=5)


@pytest.mark.parametrize(("dataflow", "order"), [("ws", "mrspq"), ("os", "mpqrs")])
def test_one_multiplier_moves_what_its_loop_order_moves(dataflow: str, order: str) -> None:
    moved = order_accesses(NEST, order)
    assert player.walks()[dataflow].counts[-1] == (moved.weights, moved.inputs, moved.sums)


def test_inputs_that_stay_are_read_once_and_sums_leave_after_each_product() -> None:
    _, inputs, sums = player.walks()["is"].counts[-1]
    assert inputs == 5 * 5
    assert sums == 81 + (81 - 9)  # no two products in a row have the same sum


def test_rows_that_stay_move_what_the_row_stationary_model_counts() -> None:
    mapping = RowMapping(m=1, n=1, e=3, p=1, q=1, r=1, t=1)
    counts = row_stationary(mapping, filters=1, channels=1, kernel=3, output=3).counts
    walk = player.rows_stay()
    assert walk.counts[-1] == tuple(counts[operand]["dram"] for operand in ("weights", "inputs", "sums"))
    assert walk.passed[-1] == sum(by_level["array"] for by_level in counts.values())


@pytest.mark.parametrize("dataflow", player.DATAFLOWS)
def test_every_dataflow_makes_every_product_of_the_convolution_once(dataflow: str) -> None:
    steps = player.walks()[dataflow].steps
    made = [use for uses in steps for use in uses]
    right = {
        (3 * r + s, 5 * (p + r) + q + s, 3 * p + q)
        for p in range(3)
        for q in range(3)
        for r in range(3)
        for s in range(3)
    }
    assert len(made) == NEST.macs
    assert set(made) == right


@pytest.mark.browser
def test_player_says_the_counts_of_every_dataflow_and_frames_what_stays(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/mapping/dataflow.html").as_uri())
    figure = page.locator('figure[data-figure="dataflow"]')
    for name, walk in player.walks().items():
        figure.get_by_label("Dataflow", exact=True).select_option(name)
        assert figure.locator(".operand.stayed").count() == 0, "nothing is near before the first step"
        for _ in range(2):  # the input in the corner is used only once, so inputs stay from the second one on
            figure.get_by_role("button", name="Next").click()
        stays = {"ws": "weights", "os": "sums", "is": "inputs", "rs": "sums"}[name]
        assert figure.locator(f".operand.{stays}.stayed").count() > 0
        if name == "rs":  # in the third step: two columns of weights and of inputs, and the three sums
            near = [figure.locator(f".operand.{part}.stayed").count() for part in ("weights", "inputs", "sums")]
            assert near == [6, 10, 3]
        figure.get_by_role("slider").focus()
        page.keyboard.press("End")
        shown = [float(figure.locator(f"data.{part}").get_attribute("value")) for part in ("weights", "inputs", "sums")]
        assert tuple(shown) == walk.counts[-1]
    page.close()
