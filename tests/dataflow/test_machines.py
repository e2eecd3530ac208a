"""Layers on whole chips: counts by hand, identities, and the closed form of a systolic array."""

from dataclasses import replace
from math import inf

import pytest

from mlsys.dataflow import compulsory, matmul
from mlsys.dataflow.machines import Machine, Product
from mlsys.errors import InvalidValue, UnknownName
from mlsys.systolic import gemm_cycles

FLOWS = ("ws", "os", "is")
ONE = Machine("one array", peak=2 * 32 * 32 * 1e9, arrays=1, rows=32, cols=32, fill=94, near_bytes=2**20, bandwidth=inf)
"""An array at 1 GHz, so that a step is a nanosecond, and a memory that never limits."""


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("sides", [(128, 64, 256), (1, 100, 33), (97, 31, 5)])
def test_one_systolic_array_takes_the_cycles_of_the_simulated_one(flow: str, sides: tuple[int, int, int]) -> None:
    m, n, k = sides
    found = ONE.map(Product("layer", m, n, k), flow)
    assert 1e9 * found.time_s == pytest.approx(gemm_cycles(m, n, k, rows=32, cols=32, dataflow=flow))


@pytest.mark.parametrize("chip", ["h200", "tpu-v4"])
def test_the_arrays_of_a_chip_make_its_peak(chip: str) -> None:
    """With pieces for every array, whole ones, and a stream that hides the fill, nothing is lost."""
    machine = Machine.of(chip)
    layer = Product("long", m=10**9, n=machine.cols * machine.arrays, k=machine.rows)
    found = machine.map(layer, "ws")
    assert layer.flops / machine.peak / found.compute_s == pytest.approx(1, abs=1e-5)


def test_a_tpu_of_eight_arrays_runs_at_its_clock() -> None:
    tpu = Machine.of("tpu-v4")
    assert tpu.peak / (2 * tpu.arrays * tpu.rows * tpu.cols) == pytest.approx(1.05e9, rel=2e-3)


@pytest.mark.parametrize("flow", FLOWS)
def test_no_mapping_beats_the_roofline(flow: str) -> None:
    for chip in ("h200", "tpu-v4"):
        machine = Machine.of(chip)
        for m, n, k in ((1, 4096, 4096), (197, 768, 3072), (6304, 3072, 768), (100352, 64, 256)):
            found = machine.map(Product("layer", m, n, k), flow)
            least = 2 * compulsory(matmul(m, n, k)).total
            assert found.moved >= least
            assert found.time_s >= max(2 * m * n * k / machine.peak, least / machine.bandwidth) * (1 - 1e-12)
            assert 0 < found.utilization <= 1 + 1e-12
            assert found.limit == ("memory" if found.memory_s > found.compute_s else "compute")


def test_pieces_at_an_edge_and_idle_arrays_are_paid_for() -> None:
    """33 outputs need two pieces of 32 columns; on four arrays they take one round, as one piece would."""
    narrow, wide = (ONE.map(Product("layer", 500, n, 32), "ws").compute_s for n in (32, 33))
    assert wide == 2 * narrow
    four = replace(ONE, arrays=4, peak=4 * ONE.peak)
    assert four.map(Product("layer", 500, 33, 32), "ws").compute_s == pytest.approx(narrow)


def test_products_that_may_run_together_share_the_arrays() -> None:
    four = replace(ONE, arrays=4, peak=4 * ONE.peak)
    apart, together = (Product("heads", 50, 32, 32, count=8, together=flag) for flag in (False, True))
    assert four.map(apart, "ws").compute_s == pytest.approx(4 * four.map(together, "ws").compute_s)
    assert four.map(apart, "ws").moved == four.map(together, "ws").moved


def test_the_best_operand_takes_the_least_time() -> None:
    tpu = Machine.of("tpu-v4")
    for m in (1, 197, 6304):
        layer = Product("layer", m, 3072, 768)
        assert tpu.map(layer, tpu.best(layer)).time_s == min(tpu.map(layer, flow).time_s for flow in FLOWS)


def test_what_is_not_known_is_said() -> None:
    with pytest.raises(UnknownName, match="h200, tpu-v4"):
        Machine.of("h300")
    with pytest.raises(InvalidValue, match="dataflow"):
        ONE.map(Product("layer", 1, 1, 1), "rs")
    with pytest.raises(InvalidValue, match="count"):
        Product("layer", 1, 1, 1, count=0)
