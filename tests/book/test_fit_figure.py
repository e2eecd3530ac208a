"""The calculator of memory: its numbers against the package, and what it says to a reader."""

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _figures import job_memory
from _interactive import fit

from mlsys import models

LLAMA = job_memory.needs()["llama2-7b"]


def test_serving_needs_the_published_cache() -> None:
    """80 GB hold 61 caches of 2,048 tokens beside the weights, and 30 of 4,096."""
    for tokens, users in ((2048, 61), (4096, 30)):
        assert sum(LLAMA.bytes("serve", users, tokens)) < 80e9 < sum(LLAMA.bytes("serve", users + 1, tokens))


@pytest.mark.parametrize("job", ["none", "selective", "full"])
@pytest.mark.parametrize(("batch", "tokens"), [(1, 4096), (7, 300)])
def test_training_keeps_what_the_model_says(job: str, batch: int, tokens: int) -> None:
    _, _, kept, cache = LLAMA.bytes(job, batch, tokens)
    assert kept == models.llama2_7b().kept_bytes(tokens, batch, job).m_as("byte")
    assert cache == 0


def test_a_network_of_images_keeps_the_same_for_each() -> None:
    need = job_memory.needs()["resnet50"]
    assert need.bytes("none", 32, 1)[2] == pytest.approx(models.kept_bytes(models.resnet50(batch=32).ops).m_as("byte"))
    assert sum(need.bytes("none", 1, 1)[:2]) == 16 * 25_557_032


@pytest.mark.browser
def test_the_calculator_says_what_fits_and_what_is_allowed(browser: Any, site: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((site / "book/memory/memory-pressure.html").as_uri())
    figure = page.locator("figure[data-figure=fit]")
    figure.locator("svg .room").wait_for(state="attached")

    def said(name: str) -> float:
        return float(figure.locator(f".result data.{name}").get_attribute("value"))

    def choose(name: str, label: str) -> None:
        figure.get_by_role("combobox", name=name).select_option(label=label)

    assert said("total") == pytest.approx(sum(LLAMA.bytes("serve", 16, 2048)))
    assert said("largest") == 61
    choose("Job", fit.JOBS["none"])
    assert said("part2") == LLAMA.bytes("none", 16, 2048)[2]
    assert said("largest") == 0
    tokens = figure.get_by_role("spinbutton", name="Tokens")
    tokens.fill("4097")
    answer = "Tokens of each sequence: 4097 is not possible. Enter a whole number from 1 to 4,096."
    assert figure.locator(".result").inner_text() == answer
    assert tokens.get_attribute("aria-invalid") == "true"
    figure.get_by_role("spinbutton", name="Batch").fill("0")
    assert "Enter a whole number from 1 to 1,000,000." in figure.locator(".result").inner_text()
    figure.get_by_role("spinbutton", name="Batch").fill("32")
    choose("Model", "ResNet-50")
    assert not tokens.is_visible()
    assert said("total") == pytest.approx(sum(job_memory.needs()["resnet50"].bytes("none", 32, 1)))
    page.close()
