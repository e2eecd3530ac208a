import csv
from pathlib import Path

import numpy as np
import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import scaling
from mlsys.errors import InvalidValue
from mlsys.scaling.ring import ring_all_reduce
from mlsys.units import GB, TFLOP, byte, flop, ms, second

with (Path(__file__).parents[1] / "golden" / "collectives.csv").open(newline="") as _file:
    GOLDEN = {row["quantity"]: row["formula_or_value"] for row in csv.DictReader(_file)}

ranks = st.integers(1, 9)


def test_golden_example_of_an_all_reduce() -> None:
    expected_ms = float(GOLDEN["1 GB on 8 GPUs at 300 GB/s per direction"].removesuffix(" ms"))
    quantity = scaling.ring_all_reduce_time(1 * GB, 8, 300 * GB / second)
    plain = scaling.ring_all_reduce_time(1e9, 8, 300e9)
    assert quantity == plain
    assert quantity.m_as("ms") == pytest.approx(expected_ms, abs=0.005)


@given(size=st.floats(1, 1e12), n=ranks, bandwidth=st.floats(1e6, 1e13))
def test_times_follow_the_golden_formulas(size: float, n: int, bandwidth: float) -> None:
    names = {"bytes": size, "B": bandwidth, "n": n}
    for quantity, function in (
        ("ring all-reduce time", scaling.ring_all_reduce_time),
        ("ring reduce-scatter or all-gather", scaling.ring_reduce_scatter_time),
        ("ring reduce-scatter or all-gather", scaling.ring_all_gather_time),
    ):
        formula = GOLDEN[quantity].removesuffix(" with B per direction").replace("2(n", "2*(n")
        expected = eval(formula, {"__builtins__": {}}, names)
        assert function(size, n, bandwidth).m_as("s") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gigabytes", "n", "gb_per_s", "milliseconds"),
    [
        (1, 2, 300, 3.33),
        (1, 4, 300, 5.0),
        (2, 4, 450, 6.67),
        (14, 8, 300, 82),
        (14, 8, 450, 54),
        (14, 8, 64, 383),
        (14, 8, 32, 766),
    ],
)
def test_all_reduce_times_of_the_course(gigabytes: float, n: int, gb_per_s: float, milliseconds: float) -> None:
    time = scaling.ring_all_reduce_time(gigabytes * GB, n, gb_per_s * GB / second)
    assert time.m_as("ms") == pytest.approx(milliseconds, rel=0.01)


@pytest.mark.parametrize(("gb_per_s", "overlap", "expected"), [(300, 0, 7.16), (600, 0, 7.56), (300, 1, 8.0)])
def test_speedups_of_the_course(gb_per_s: float, overlap: float, expected: float) -> None:
    reduction = scaling.ring_all_reduce_time(1 * GB, 8, gb_per_s * GB / second)
    assert scaling.speedup(8, 50 * ms, reduction, overlap) == pytest.approx(expected, abs=0.005)


@given(compute=st.floats(1e-6, 1e3), communication=st.floats(0, 1e3), overlap=st.floats(0, 1), n=ranks)
def test_speedup_lies_between_none_and_linear(compute: float, communication: float, overlap: float, n: int) -> None:
    total = scaling.step_time(compute, communication, overlap).m_as("s")
    assert max(compute, communication) * (1 - 1e-9) <= total <= (compute + communication) * (1 + 1e-9)
    assert 0 < scaling.speedup(n, compute, communication, overlap) <= n * (1 + 1e-9)
    assert scaling.step_time(compute, communication).m_as("s") == pytest.approx(compute + communication)
    assert scaling.step_time(compute, communication, 1).m_as("s") == pytest.approx(max(compute, communication))


def test_ring_time_hardly_grows_with_the_ranks_but_latency_does() -> None:
    few, many = (scaling.ring_all_reduce_time(1e9, n, 1e11).m_as("ms") for n in (64, 1024))
    assert many / few < 1.02
    late_few, late_many = (scaling.ring_all_reduce_time(1e9, n, 1e11, 10e-6).m_as("ms") for n in (64, 1024))
    assert late_many - many == pytest.approx(2 * 1023 * 10e-3)
    assert late_few - few == pytest.approx(2 * 63 * 10e-3)


@given(n=ranks, length=st.integers(0, 50), seed=st.integers(0, 999))
def test_ring_leaves_the_sum_on_every_rank(n: int, length: int, seed: int) -> None:
    buffers = list(np.random.default_rng(seed).integers(-99, 99, (n, length)))
    before = [b.copy() for b in buffers]
    run = ring_all_reduce(buffers)
    for result in run.buffers:
        np.testing.assert_array_equal(result, np.sum(before, axis=0))
    for kept, original in zip(buffers, before, strict=True):
        np.testing.assert_array_equal(kept, original)


@given(n=ranks, chunk=st.integers(1, 20), bandwidth=st.floats(1, 1e12))
def test_bytes_moved_round_the_ring_agree_with_the_formula(n: int, chunk: int, bandwidth: float) -> None:
    buffers = [np.ones(n * chunk, dtype=np.float32) for _ in range(n)]
    run = ring_all_reduce(buffers)
    size = buffers[0].nbytes
    assert set(run.bytes_sent) == {2 * (n - 1) * size // n}
    time = scaling.ring_all_reduce_time(size, n, bandwidth).m_as("s")
    assert run.bytes_in_turn / bandwidth == pytest.approx(time)


@given(n=st.integers(2, 9), length=st.integers(1, 50))
def test_only_neighbors_talk_and_each_rank_sends_once_a_step(n: int, length: int) -> None:
    run = ring_all_reduce([np.zeros(length) for _ in range(n)])
    assert all(t.receiver == (t.sender + 1) % n for t in run.transfers)
    steps = 2 * (n - 1)
    assert sorted((t.step, t.sender) for t in run.transfers) == [(s, r) for s in range(steps) for r in range(n)]
    # No chunk is sent by two ranks in one step: each is at one place of the ring.
    for step in range(steps):
        assert len({t.chunk for t in run.transfers if t.step == step}) == n
    # A ragged vector costs at most what its largest chunk costs.
    assert run.bytes_in_turn == steps * -(-length // n) * 8


def test_gpt3_takes_a_decade_on_one_chip_and_a_month_on_306() -> None:
    peak = 989.4 * TFLOP / second
    assert scaling.training_time(3.14e23 * flop, 1, peak).m_as("year") == pytest.approx(10.1, abs=0.05)
    assert scaling.training_time(3.14e23, 1, peak, 0.6).m_as("year") == pytest.approx(17, abs=0.3)
    assert scaling.training_time(3.14e23, 1, peak, 0.4).m_as("year") == pytest.approx(25, abs=0.3)
    assert scaling.training_time(3.14e23, 306, peak, 0.4).m_as("day") == pytest.approx(30, abs=0.1)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"\bn must be a positive integer, got 0"):
        scaling.ring_all_reduce_time(1e9, 0, 1e9)
    with pytest.raises(InvalidValue, match="bandwidth_per_direction"):
        scaling.ring_all_reduce_time(1e9, 2, 0)
    with pytest.raises(pint.DimensionalityError):
        scaling.ring_all_reduce_time(1 * flop, 2, 1e9)
    with pytest.raises(pint.DimensionalityError):
        scaling.ring_all_reduce_time(1 * byte, 2, 1 * GB)
    with pytest.raises(InvalidValue, match="overlap is 1.5"):
        scaling.step_time(1, 1, 1.5)
    with pytest.raises(InvalidValue, match="compute"):
        scaling.scaling_efficiency(0, 1)
    with pytest.raises(InvalidValue, match="share of the peak"):
        scaling.training_time(1, 1, 1, 0)
    with pytest.raises(InvalidValue, match="one length"):
        ring_all_reduce([np.zeros(2), np.zeros(3)])
    with pytest.raises(InvalidValue, match="one vector per rank"):
        ring_all_reduce([])
