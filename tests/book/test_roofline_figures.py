"""The numbers that the figures of the roofline chapter draw: counts of operations, bounds, and shares of a roof."""

import dataclasses
import sys
from pathlib import Path

import pytest

from mlsys import models
from mlsys.errors import UnknownName
from mlsys.measure.records import Record, Row, Run
from mlsys.roofline import Roofline

sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _figures import roofline as figures

ROOFS = Roofline("chip", 4e12, {"tensor": 800e12}, "tensor", "measured")


def row(name: str, shape: tuple[int, ...], dtype: str, achieved: float = 1000.0, **peers: float) -> Row:
    return Row("book", name, "torch", shape, dtype, 1e-5, 1e-5, 1e-5, achieved, 5000.0, "GB/s", peers)


@pytest.mark.parametrize(("name", "intensity"), [("softmax", 5 / 4), ("layernorm", 8 / 4)])
def test_every_step_on_every_element_of_a_row_counts(name: str, intensity: float) -> None:
    """Two bytes are read and two written for each element; the 2 x 1024 parameters of LayerNorm hardly matter."""
    assert figures.op_of(row(name, (65536, 1024), "bf16")).intensity.m == pytest.approx(intensity, rel=1e-4)


def test_a_measurement_without_an_operation_is_refused() -> None:
    with pytest.raises(UnknownName, match="launch latency"):
        figures.op_of(row("launch latency", (1,), "fp32"))


def test_a_square_product_has_the_bounds_of_a_count_by_hand() -> None:
    """1024^3: 2.147 GFLOP at 800 TFLOP/s are 2.684 us, 6.291 MB at 4 TB/s are 1.573 us."""
    op = figures.op_of(row("matmul by dtype", (1024, 1024, 1024), "fp16"))
    assert figures.bounds_us(ROOFS, op) == pytest.approx((2.684, 2.684 + 1.573), abs=2e-3)


@pytest.mark.parametrize("batch", [1, 64, 200, 512, 4096])
def test_the_sum_is_at_most_twice_the_longer_time(batch: int) -> None:
    lower, upper = figures.bounds_us(ROOFS, figures.op_of(row("dense layer by batch", (batch, 2048, 2048), "fp16")))
    assert lower < upper <= 2 * lower


def test_shares_are_those_of_the_lab_over_the_ratios_of_times() -> None:
    """PyTorch needs three times as long as the lab's kernel, and the faster of the two others 1.5 times as long."""
    raced = row("fused softmax", (8, 1024), "bf16", 3000.0, **{"eager torch": 3.0, "one": 2.0, "two": 1.5})
    assert figures.rows_shares([raced], 4000.0) == [("softmax, 1,024", 0.25, 0.5, 0.75)]


def test_the_bounds_of_a_network_are_the_times_of_all_its_bytes_and_flops() -> None:
    """With one limit out of the way, the lower bound is a single division for the whole network."""
    resnet = models.resnet50(batch=2)
    kept = [op for op in resnet.ops if op.kind != "batchnorm"]
    moved = sum(op.read_count + op.write_count for op in kept)
    only_memory = Roofline("chip", 1e12, {"tensor": 1e30, "vector": 1e30}, "tensor", "measured")
    only_arithmetic = Roofline("chip", 1e30, {"tensor": 1e12, "vector": 1e30}, "tensor", "measured")
    assert figures.network_bounds_us(only_memory, 2, 0.0)[0] == pytest.approx(moved / 1e6)
    lower, upper = figures.network_bounds_us(only_arithmetic, 2, 1.0)
    assert lower == pytest.approx(2 * 2 * 4_089_184_256 / 1e6, rel=1e-3)
    assert upper == pytest.approx(lower + len(kept))


def test_a_network_is_found_by_its_batch() -> None:
    made = row("ResNet-50", (32, 3, 224, 224), "fp16")
    graph = dataclasses.replace(made, variant="graph")
    smaller = dataclasses.replace(graph, shape=(1, 3, 224, 224))
    record = Record("GPU", "1", {}, {}, (Run("abc", "2026-11-20", "a CPU", (made, smaller, graph)),))
    assert figures.network_row(record, 32) is graph
    assert figures.network_row(record, 1) is smaller


def test_clock_and_power_are_named_only_if_they_were_read() -> None:
    made = row("ResNet-50", (32, 3, 224, 224), "fp16")
    assert figures.conditions(made).endswith("contains neither clock nor power")
    read = dataclasses.replace(made, sm_clock_mhz=1515.0, power_w=698.6)
    assert figures.conditions(read).endswith("1.51 GHz and drew 699 W")


def test_a_profile_is_read_by_the_names_of_its_quantities() -> None:
    """A product of 4096^3 on the tensor cores, at most at their peak, moves each matrix at least once."""
    counted = figures.profile("10_persistent")
    assert counted["time"] / 1e9 > 2 * 4096**3 / 989.4e12
    assert counted["device memory bytes read"] >= 2 * 2 * 4096**2
