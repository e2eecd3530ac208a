"""The chapter on using the roofline: what its figures draw, and what the figure of decode by batch says to a reader."""

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _figures import roofline, roofline_practice
from _interactive import serving

from mlsys import Hardware, models
from mlsys.roofline import Roofline

ROOFS = Roofline("chip", 4e12, {"tensor": 800e12, "vector": 60e12}, "tensor", "measured")


def test_the_ceiling_at_the_data_sheets_clock_is_the_data_sheets_peak() -> None:
    """132 SMs of 4,096 FLOP per cycle at 1,830 MHz: NVIDIA's 989.4 TFLOP/s."""
    assert roofline_practice.per_clock_ceiling(1830, 132, 4096) == pytest.approx(989.4, abs=0.1)


@pytest.mark.parametrize("job", ["cublas", "10_persistent", "09_wide_tiles"])
def test_rate_and_clock_of_a_profile_give_the_activity_that_it_counts(job: str) -> None:
    seen = roofline.profile(job)
    most = roofline_practice.per_clock_ceiling(seen["SM clock"] / 1e6, 132, 4096)
    assert 100 * 2 * 4096**3 / seen["time"] / 1e3 / most == pytest.approx(seen["tensor pipe active"], rel=0.005)


def test_groups_hold_all_kernels_and_their_sums() -> None:
    network = [op for op in models.resnet50(batch=4).ops if op.kind != "batchnorm"]
    found = roofline_practice.shares(network, ROOFS)
    assert sum(one.kernels for one in found.values()) == len(network)
    assert sum(one.least_us for one in found.values()) == pytest.approx(ROOFS.time(network).m_as("us"))
    convolutions = found["conv, compute"].flops + found["conv, memory"].flops
    assert convolutions == 4 * (2 * 4_089_184_256 - 2 * 2048 * 1000)


def test_a_pass_of_kernels_with_one_limit_is_on_its_roof() -> None:
    """All of decode waits for the memory, so the sum of its times is the time of all its bytes."""
    one = roofline_practice.Pass.of(models.gpt2("xl", seq=512, decode=True).ops, ROOFS)
    assert one.rate == pytest.approx(4 * one.intensity, rel=1e-3)
    mixed = roofline_practice.Pass.of(models.gpt2("xl", seq=512).ops, ROOFS)
    assert mixed.intensity > 200
    assert mixed.rate < 800


def test_a_step_is_counted_in_bytes_arithmetic_and_launches() -> None:
    """Bytes: all weights but the embedding of positions, the cache, and a little for what passes between kernels."""
    small = models.gpt2("small", seq=512, decode=True)
    moved, arithmetic, replayed, queued = roofline_practice.step_parts(small, ROOFS, 1.0, 6.0)
    held = small.weight_bytes.m_as("byte") - 2 * 1024 * 768 + small.kv_cache_bytes(512).m_as("byte")
    assert moved == pytest.approx(1e6 * held / 4e12, rel=0.01)
    assert arithmetic < 0.01 * moved
    assert (replayed, queued) == (125, 750)


def decode_s(numbers: dict[str, Any], chip: str, model: str, batch: int, context: int) -> float:
    """Sum of the kernels as the script computes it."""
    [roofs] = [one for one in numbers["chips"] if one["id"] == chip]
    [kernels] = [one["decode"] for one in numbers["models"] if one["id"] == model]
    return sum(
        one["count"]
        * max(
            batch * (one["f0"] + one["f1"] * context) / roofs["peaks"][one["engine"]],
            (one["b0"] + batch * (one["b1"] + one["b2"] * context)) / roofs["bandwidth"],
        )
        for one in kernels
    )


@pytest.mark.parametrize("batch", [1, 16, 700])
@pytest.mark.parametrize("model", serving.MODELS)
def test_coefficients_from_three_small_steps_give_every_step(model: str, batch: int) -> None:
    numbers: Any = serving.content().numbers
    make = serving.MODELS[model][1]
    expected = Roofline.of(Hardware.get("h200"), "fp16").time(make(batch=batch, seq=999, decode=True).ops)
    assert decode_s(numbers, "h200", model, batch, 999) == pytest.approx(expected.m_as("s"), rel=1e-12)


@pytest.mark.parametrize("model", serving.MODELS)
def test_coefficients_of_a_prompt_give_every_prompt(model: str) -> None:
    make = serving.MODELS[model][1]
    ops = make(batch=1, seq=777).ops
    found = serving.prefill_ops(make)
    assert sum(one["count"] for one in found) == len(ops)
    flops = sum(one["count"] * (one["f1"] * 777 + one["f2"] * 777**2) for one in found)
    moved = sum(one["count"] * (one["b0"] + one["b1"] * 777) for one in found)
    assert flops == sum(op.flop_count for op in ops)
    assert moved == pytest.approx(sum(op.read_count + op.write_count for op in ops), rel=1e-12)


@pytest.mark.browser
def test_the_page_says_what_a_step_takes_and_what_is_allowed(browser: Any, site: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((site / "book/performance/roofline-practice.html").as_uri())
    figure = page.locator("figure[data-figure=serving]")
    figure.locator("svg .curve").wait_for(state="attached")

    def said(name: str) -> float:
        return float(figure.locator(f".result data.{name}").get_attribute("value"))

    def enter(name: str, text: str) -> None:
        figure.get_by_role("spinbutton", name=name).fill(text)

    roofs = Roofline.of(Hardware.get("h200"), "fp16")
    step = models.gpt2("xl", batch=16, seq=512, decode=True)
    assert said("step") == pytest.approx(roofs.time(step.ops).m_as("s"))
    assert said("rate") == pytest.approx(16 / roofs.time(step.ops).m_as("s"))
    assert said("prefill") == pytest.approx(roofs.time(models.gpt2("xl", seq=512).ops).m_as("s"))
    moved = sum(op.read_count + op.write_count for op in step.ops)
    assert said("intensity") == pytest.approx(sum(op.flop_count for op in step.ops) / moved)
    assert "memory is the limit" in figure.locator(".result").inner_text()

    figure.get_by_role("combobox", name="Model").select_option(label="Llama 2 7B")
    enter("Tokens of context", "64")
    enter("Sequences", "1024")
    assert "arithmetic is the limit" in figure.locator(".result").inner_text()
    room = 141e9 - models.llama2_7b().weight_bytes.m_as("byte")
    assert said("largest") == room // models.llama2_7b().kv_cache_bytes(64).m_as("byte")

    figure.get_by_role("combobox", name="Model").select_option(label="Llama 2 70B")
    figure.get_by_role("combobox", name="Chip").select_option(label=Hardware.get("h100-sxm").name)
    assert "The weights do not fit" in figure.locator(".result").inner_text()
    enter("Tokens of context", "4097")
    answer = "Tokens of context: 4097 is not possible. Enter a whole number from 1 to 4,096."
    assert figure.locator(".result").inner_text() == answer
    page.close()
