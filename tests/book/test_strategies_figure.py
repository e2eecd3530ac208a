"""The chapter on mapping strategies: networks against the package's models, and the figure against the networks."""

import sys
from pathlib import Path
from typing import Any

import pytest

from mlsys import models, ops
from mlsys.measure import records

pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _figures import strategies as figures  # noqa: E402
from _interactive import strategies as player  # noqa: E402

VIT_GMAC = 17.56
"""Of ViT-B/16 at 224 x 224, as torchvision's table of models prints it."""


def test_networks_do_the_arithmetic_of_the_models() -> None:
    assert figures.resnet50(32).flops == models.resnet50(batch=32).flops.m
    for batch, decode in ((1, False), (64, True)):
        assert (
            figures.gpt2_xl(batch, 512, decode=decode).flops == models.gpt2(seq=512, batch=batch, decode=decode).flops.m
        )
    assert figures.vit(1).flops / 2e9 == pytest.approx(VIT_GMAC, abs=0.01)


def test_rows_between_the_products_move_the_bytes_of_the_models() -> None:
    """Without embeddings, which the figure leaves out."""
    gpt = [op for op in models.gpt2(seq=512, dtype="bf16").ops if op.kind in ("layernorm", "elementwise")]
    apart = figures.gpt2_xl(1, 512, decode=False).apart
    embedding = next(op for op in gpt if op.name == "embed.add").bytes.m
    assert apart == pytest.approx(sum(op.bytes.m for op in gpt) - embedding, rel=1e-3)


def test_attention_moves_the_bytes_of_the_package() -> None:
    attention = figures.vit(32).attention
    assert attention is not None
    for fused in (False, True):
        op = ops.attention(batch=32, heads=12, seq=197, head_dim=64, fused=fused, dtype="bf16")
        cost = figures.attention_cost(figures.SMALL, attention, "ws", fused=fused)
        assert cost.moved == 12 * op.bytes.m
        assert cost.flops == 12 * op.flops.m


def test_every_layer_of_the_record_is_counted_once() -> None:
    record = records.load("nvidia-h200")
    counts = figures.layer_counts(32)
    assert sum(counts.values()) == 53
    for name in ("fast convolution", "fast convolution + bias + ReLU"):
        assert {tuple(row.shape) for row in record.named(name)} == set(counts)


def test_steps_of_the_record_add_up() -> None:
    record = records.load("nvidia-h200")
    alone, joined = ({tuple(row.shape): row for row in record.named(name)}
                     for name in ("fast convolution", "fast convolution + bias + ReLU"))  # fmt: skip
    steps = figures.resnet_steps(32, alone, joined)
    by_hand = 0.0
    for sizes, count in figures.layer_counts(32).items():
        for _ in range(count):
            by_hand += joined[sizes].reference_s["cuDNN fused"]
    assert sum(steps["channels last,\none kernel"]) == pytest.approx(by_hand)


def test_the_best_of_each_group_is_no_slower_than_any_uniform_mapping() -> None:
    for key in figures.networks():
        for chip in figures.machines():
            uniform = min(player.uniform(chip, key, flow) for flow in figures.FLOWS)
            assert player.hybrid(chip, key) <= 1.001 * uniform


@pytest.mark.browser
def test_the_figure_says_what_the_package_computes(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/mapping/strategies.html").as_uri())
    figure = page.locator('figure[data-figure="strategies"]')

    def said(name: str) -> float:
        return float(figure.locator(f".result data.{name}").get_attribute("value"))

    for key, network in figures.networks().items():
        figure.get_by_role("combobox", name="Network").select_option(key)
        for chip in figures.machines():
            figure.get_by_role("combobox", name="Chip").select_option(chip)
            for flow in figures.FLOWS:
                figure.get_by_role("combobox", name="Stays everywhere").select_option(flow)
                assert said("time") == pytest.approx(player.uniform(chip, key, flow))
                assert said("least") == pytest.approx(player.hybrid(chip, key))
            figure.get_by_role("button", name="Best of each").press("Enter")
            assert said("time") == pytest.approx(player.hybrid(chip, key))
            peak = figures.machines()[chip].peak
            assert said("share") == pytest.approx(network.flops / peak / player.hybrid(chip, key))
    page.close()


@pytest.mark.browser
def test_one_group_can_be_mapped_alone(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/mapping/strategies.html").as_uri())
    figure = page.locator('figure[data-figure="strategies"]')
    before = float(figure.locator(".result data.time").get_attribute("value"))
    figure.get_by_role("combobox", name="attention").select_option("ws-fused")
    after = float(figure.locator(".result data.time").get_attribute("value"))
    options = figures.choices(figures.machines()["tpu-v4"], figures.vit(32))["attention"]
    assert before - after == pytest.approx(options["ws-apart"].time_s - options["ws-fused"].time_s)
    assert "one kernel, keys and values stay" in figure.locator(".result").inner_text()
    page.close()
