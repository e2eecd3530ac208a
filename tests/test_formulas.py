import math
from itertools import pairwise
from typing import Any

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import formulas, ops
from mlsys.core.arguments import amount, positive_amount
from mlsys.errors import InvalidValue
from mlsys.feasibility import feasibility
from mlsys.units import GB, TB, TFLOP, GiB, byte, flop, ms, param, second, token

A100 = {"peak": 312 * TFLOP / second, "bandwidth": 2.039 * TB / second}
H100 = {"peak": 989.4 * TFLOP / second, "bandwidth": 3.35 * TB / second}
shares = st.floats(0, 1)
factors = st.floats(1, 1e6)


@pytest.mark.parametrize(
    ("p", "s", "speedup"),
    [
        (0.95, 500, 19.3),
        (0.80, 500, 4.96),
        (0.8, 1000, 4.98),
        (0.9, math.inf, 10),
        (0.95, 247, 18.6),
        (0.8, 247, 4.92),
        (0.95, 100, 16.8),
        (0.95, 1000, 19.6),
        (0.95, 64, 15.4),
        (0.95, 128, 17.4),
        (0.6, 1.6, 1.29),
        (0.999, 1000, 500.25),
    ],
)
def test_amdahl_numbers_of_the_course(p: float, s: float, speedup: float) -> None:
    assert formulas.amdahl(p, s) == pytest.approx(speedup, rel=2e-3)


@given(p=shares, s=factors)
def test_amdahl_is_original_time_over_new_time(p: float, s: float) -> None:
    serial, accelerated = (1 - p) * 3600, p * 3600
    assert formulas.amdahl(p, s) == pytest.approx(3600 / (serial + accelerated / s))


@given(p=st.floats(0, 0.999), s=factors)
def test_amdahl_never_passes_its_ceiling_nor_the_part(p: float, s: float) -> None:
    assert 1 - 1e-9 <= formulas.amdahl(p, s) <= min(formulas.amdahl_ceiling(p), s) * (1 + 1e-9)
    assert formulas.amdahl_ceiling(p) == formulas.amdahl(p, math.inf)


@given(p=st.floats(0.01, 1), s=st.floats(1.01, 1e6))
def test_required_share_inverts_amdahl(p: float, s: float) -> None:
    assert formulas.required_share(formulas.amdahl(p, s), s) == pytest.approx(p)


def test_required_share_of_the_course() -> None:
    assert formulas.required_share(50, 100) == pytest.approx(0.990, abs=5e-4)
    assert formulas.required_share(5, 1000) == pytest.approx(0.80, abs=0.001)
    assert formulas.required_share(20, 100) == pytest.approx(0.96, abs=0.001)


def test_amdahl_grid_rises_along_rows_and_columns() -> None:
    grid = formulas.amdahl_grid([0.8, 0.9, 0.99, 0.999], [1, 10, 100, 1000])
    assert [row[0] for row in grid] == pytest.approx([1.0] * 4)
    assert all(a < b for row in grid for a, b in pairwise(row))
    assert all(a < b for low, high in pairwise(grid) for a, b in zip(low[1:], high[1:], strict=True))
    assert max(map(max, grid)) == pytest.approx(500.25, abs=0.01)


@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan])
def test_share_outside_0_to_1_is_refused(p: float) -> None:
    with pytest.raises(InvalidValue, match="between 0 and 1"):
        formulas.amdahl(p, 10)


@pytest.mark.parametrize("s", [0, -2, math.nan])
def test_speedup_of_the_part_must_be_positive(s: float) -> None:
    with pytest.raises(InvalidValue, match="more than 0"):
        formulas.amdahl(0.5, s)


def test_speedup_beyond_the_part_is_out_of_reach() -> None:
    with pytest.raises(InvalidValue, match="at most s"):
        formulas.required_share(11, 10)


def test_iron_law_divides_by_the_efficiency() -> None:
    full = formulas.iron_law(0, 1, 1 * TFLOP, 1 * TFLOP / second)
    half = formulas.iron_law(0, 1, 1 * TFLOP, 1 * TFLOP / second, efficiency=0.5)
    assert half == 2 * full


@given(
    data=st.floats(0, 1e12),
    work=st.floats(0, 1e15),
    efficiency=st.floats(0.01, 1),
    latency=st.floats(0, 1),
)
def test_overlap_hides_the_shorter_term_and_never_the_latency(
    data: float, work: float, efficiency: float, latency: float
) -> None:
    serial, overlapped = (
        formulas.iron_law(data, 1e11, work, 1e14, efficiency, latency, overlap=overlap).m_as("s")
        for overlap in (False, True)
    )
    moving, computing = data / 1e11, work / 1e14 / efficiency
    assert serial - overlapped == pytest.approx(min(moving, computing), abs=1e-9)
    assert max(moving, computing) + latency == pytest.approx(overlapped, abs=1e-9)
    assert serial <= 2 * overlapped + 1e-9


def test_offload_of_a_matmul_by_the_iron_law() -> None:
    """4096^3 in FP16: 0.23 ms at 600 TFLOP/s, 4.0 ms to copy the three matrices, 137 ms on a CPU of 1 TFLOP/s."""
    product = ops.matmul(m=4096, n=4096, k=4096)
    copies = formulas.iron_law(product.bytes, 25 * GB / second, 0, 1)
    kernel = formulas.iron_law(0, 1, product.flops, 600 * TFLOP / second)
    cpu = formulas.iron_law(0, 1, product.flops, 1 * TFLOP / second)
    assert copies.m_as("ms") == pytest.approx(4.0, abs=0.05)
    assert kernel.m_as("ms") == pytest.approx(0.23, abs=0.005)
    assert cpu.m_as("ms") == pytest.approx(137, abs=0.5)
    assert (cpu / (copies + kernel)).m_as("dimensionless") == pytest.approx(32, abs=0.6)


def test_balance_is_the_ridge_point() -> None:
    assert formulas.hardware_balance(**A100).m_as("flop/byte") == pytest.approx(153, abs=0.5)
    assert formulas.hardware_balance(**H100).m_as("flop/byte") == pytest.approx(295, abs=0.5)
    assert formulas.hardware_balance(300e12, 2e12).m_as("flop/byte") == 150


@pytest.mark.parametrize(
    ("chip", "intensity", "tflops"),
    [(A100, 200, 312), (H100, 200, 670), (H100, 100, 335), (A100, 1, 2.04), (A100, 1.5, 3.06), (A100, 31.0, 63)],
)
def test_attainable_rates_of_the_course(chip: dict[str, Any], intensity: float, tflops: float) -> None:
    rate = formulas.attainable(**chip, intensity=intensity * flop / byte)
    assert rate.m_as("TFLOP/s") == pytest.approx(tflops, rel=5e-3)


@given(intensity=st.floats(0.01, 1e5))
def test_bandwidth_required_at_the_attainable_rate_is_within_what_there_is(intensity: float) -> None:
    rate = formulas.attainable(**A100, intensity=intensity)
    needed = formulas.required_bandwidth(rate, intensity)
    assert needed.m_as("TB/s") <= 2.039 * (1 + 1e-9)
    assert rate <= A100["peak"]


def test_bandwidth_required_to_reach_the_peak() -> None:
    layer = ops.linear(batch=32, d_in=2048, d_out=2048)
    assert formulas.required_bandwidth(A100["peak"], layer.intensity).m_as("TB/s") == pytest.approx(10.1, abs=0.05)


@pytest.mark.parametrize(
    ("batch", "intensity"), [(1, 0.999), (32, 31.0), (64, 60.2), (128, 114), (256, 204.8), (512, 341)]
)
def test_batch_intensities_of_the_course(batch: int, intensity: float) -> None:
    assert formulas.batch_intensity(batch, 2048).m_as("flop/byte") == pytest.approx(intensity, rel=2e-3)


@given(b=st.integers(1, 4096), m=st.integers(1, 8192), n=st.integers(1, 8192))
def test_batch_intensity_is_the_closed_form(b: int, m: int, n: int) -> None:
    exact = formulas.batch_intensity(b, m, n).m_as("flop/byte")
    assert exact == pytest.approx(2 * b * m * n / (2 * b * m + 2 * m * n + 2 * b * n))
    assert exact < min(b, m * n / (m + n))


def test_approximation_by_the_batch_is_too_high_by_a_known_factor() -> None:
    assert 256 / formulas.batch_intensity(256, 2048).m_as("flop/byte") == pytest.approx(1 + 2 * 256 / 2048)


@pytest.mark.parametrize(("ridge", "m", "batch"), [(153, 2048, 180), (295, 2048, 414), (295, 4096, 345)])
def test_crossing_batches_of_the_course(ridge: float, m: int, batch: float) -> None:
    assert formulas.crossing_batch(ridge, m) == pytest.approx(batch, abs=0.7)


@given(
    ridge=st.floats(1, 400),
    m=st.integers(2000, 9000),
    n=st.integers(2000, 9000),
    dtype=st.sampled_from(["fp16", "fp8"]),
)
def test_intensity_passes_the_ridge_at_the_crossing_batch(ridge: float, m: int, n: int, dtype: str) -> None:
    crossing = formulas.crossing_batch(ridge, m, n, dtype)
    above, below = math.ceil(crossing) + 1, math.floor(crossing) - 1
    assert formulas.batch_intensity(above, m, n, dtype).m_as("flop/byte") > ridge
    assert below < 1 or formulas.batch_intensity(below, m, n, dtype).m_as("flop/byte") < ridge


def test_ridge_that_no_batch_reaches_names_the_limit() -> None:
    with pytest.raises(InvalidValue, match=r"stays below 256\.0"):
        formulas.crossing_batch(295, 512)


@pytest.mark.parametrize("params", [7e9, 7e9 * param])
@pytest.mark.parametrize("size", [2, 2 * byte, 2 * byte / param])
def test_model_memory_takes_numbers_and_quantities(params: Any, size: Any) -> None:
    assert formulas.model_memory(params, size, GB) == pytest.approx(14.0)
    assert formulas.model_memory(params, size, GiB) == pytest.approx(14e9 / 2**30)


def test_model_memory_refuses_other_dimensions() -> None:
    with pytest.raises(pint.DimensionalityError):
        formulas.model_memory(7e9 * token, 2 * byte, GB)
    with pytest.raises(pint.DimensionalityError):
        formulas.model_memory(7e9, 2 * flop, GB)
    with pytest.raises(pint.DimensionalityError):
        formulas.model_memory(7e9, 2 * byte, TFLOP)


def test_gpt2_xl_decodes_at_most_680_tokens_a_second_on_an_a100() -> None:
    weights = 3.0 * GB
    assert formulas.token_latency(weights, A100["bandwidth"]).m_as("ms") == pytest.approx(1.47, abs=0.005)
    assert formulas.decode_throughput(weights, A100["bandwidth"]).m_as("token/s") == pytest.approx(680, abs=1)
    int4 = formulas.decode_throughput(0.75 * GB, A100["bandwidth"])
    assert int4.m_as("token/s") == pytest.approx(2700, rel=0.01)


@pytest.mark.parametrize(("batch", "latency_ms", "rate"), [(1, 7.4, 135), (8, 11.1, 722), (32, 23.7, 1349)])
def test_decode_of_a_7b_model_at_2048_tokens(batch: int, latency_ms: float, rate: float) -> None:
    """14 GB of weights and 524,288 bytes of cache per token, on 2.039 TB/s."""
    cache = 2048 * 524_288 * byte
    step = formulas.token_latency(14 * GB, A100["bandwidth"], cache, batch)
    assert step.m_as("ms") == pytest.approx(latency_ms, abs=0.05)
    assert formulas.decode_throughput(14 * GB, A100["bandwidth"], cache, batch).m_as("token/s") == pytest.approx(
        rate, abs=1
    )


@given(batch=st.integers(1, 4096), cache=st.floats(0, 1e9))
def test_throughput_rises_with_the_batch_up_to_what_the_cache_allows(batch: int, cache: float) -> None:
    one, two = (formulas.decode_throughput(14e9, 2e12, cache, b).m_as("token/s") for b in (batch, batch + 1))
    assert two >= one
    if cache > 1:
        assert two <= 2e12 / cache


def test_large_batch_decodes_at_the_peak() -> None:
    rate = formulas.decode_throughput(
        14 * GB, **{"bandwidth": A100["bandwidth"]}, batch=4096, flops_per_token=14e9, peak=A100["peak"]
    )
    assert rate.m_as("token/s") == pytest.approx(312e12 / 14e9)
    with pytest.raises(InvalidValue, match="give the peak"):
        formulas.token_latency(14e9, 2e12, flops_per_token=14e9)
    with pytest.raises(InvalidValue, match="must move or compute"):
        formulas.decode_throughput(0, 2e12)


def test_feasibility_of_the_course() -> None:
    fits = feasibility(weights=14 * GB, flops=14e9, deadline=50 * ms, memory=16 * GB, bandwidth=TB / second, peak=1e14)
    assert fits.feasible
    assert fits.headroom.m_as("GB") == pytest.approx(2)
    # Two gigabytes are about 3,800 tokens of a 7B model's cache.
    assert fits.headroom.m_as("byte") / 524_288 == pytest.approx(3800, rel=0.01)
    too_big = feasibility(
        weights=26 * GB, flops=26e9, deadline=1 * second, memory=24 * GB, bandwidth=TB / second, peak=1e14
    )
    assert (too_big.feasible, too_big.binding.name) == (False, "memory")
    assert too_big.headroom.m_as("GB") == pytest.approx(-2)


def test_70b_model_misses_50_ms_by_bandwidth_until_it_has_4_bits() -> None:
    rest: dict[str, Any] = {
        "flops": 140e9,
        "deadline": 50 * ms,
        "memory": 160 * GB,
        "bandwidth": TB / second,
        "peak": 1e14,
    }
    half, quarter = feasibility(weights=140 * GB, **rest), feasibility(weights=35 * GB, **rest)
    assert half.binding.name == "bandwidth"
    assert half.bandwidth.need.m_as("ms") == pytest.approx(140)
    assert half.bandwidth.load == pytest.approx(2.8)
    assert quarter.bandwidth.passes
    assert quarter.feasible


def test_compute_gate_counts_the_reached_share_of_the_peak() -> None:
    """8.2 GFLOP at 30 frames a second."""
    rest: dict[str, Any] = {"weights": 51e6, "flops": 8.2e9, "deadline": 33.3 * ms, "memory": 4 * GB, "bandwidth": 5e10}
    assert feasibility(**rest, peak=0.3e12).feasible
    slow = feasibility(**rest, peak=0.3e12, utilization=0.5)
    assert (slow.binding.name, slow.compute.passes) == ("compute", False)


def test_weights_cache_and_activations_share_the_memory() -> None:
    rest: dict[str, Any] = {"flops": 1, "deadline": 1, "memory": 16 * GB, "bandwidth": 1e12, "peak": 1e12}
    full = feasibility(weights=14 * GB, kv_cache=1.5 * GB, activations=0.5 * GB, **rest)
    assert full.memory.load == pytest.approx(1)
    # Only weights and cache cross the memory interface in a step, unless the traffic is stated.
    assert full.bandwidth.need.m_as("ms") == pytest.approx(15.5)
    stated = feasibility(weights=14 * GB, traffic=3 * GB, **rest)
    assert stated.bandwidth.need.m_as("ms") == pytest.approx(3)


@given(
    weights=st.floats(1, 1e12), cache=st.floats(0, 1e12), activations=st.floats(0, 1e12), memory=st.floats(1e9, 1e12)
)
def test_memory_gate_passes_exactly_when_there_is_headroom(
    weights: float, cache: float, activations: float, memory: float
) -> None:
    verdict = feasibility(
        weights=weights,
        kv_cache=cache,
        activations=activations,
        flops=1,
        deadline=1e9,
        memory=memory,
        bandwidth=1e12,
        peak=1e12,
    )
    assert verdict.memory.passes == (verdict.headroom.magnitude >= 0)
    assert verdict.binding.load == max(gate.load for gate in verdict.gates)


@pytest.mark.parametrize("utilization", [0, 1.2, -1])
def test_share_of_the_peak_outside_its_range_is_refused(utilization: float) -> None:
    with pytest.raises(InvalidValue, match="share of the peak"):
        feasibility(weights=1, flops=1, deadline=1, memory=1, bandwidth=1, peak=1, utilization=utilization)
    with pytest.raises(InvalidValue, match="share of the peak"):
        formulas.iron_law(1, 1, 1, 1, efficiency=utilization)


@pytest.mark.parametrize("bad", [-1, math.inf, math.nan, "much", None])
def test_amount_refuses_what_is_no_finite_amount(bad: Any) -> None:
    with pytest.raises(InvalidValue, match="data is"):
        amount("data", bad, "byte")


def test_amount_converts_units_exactly_and_refuses_other_dimensions() -> None:
    assert amount("data", 1 * GiB, "byte") == 2**30
    assert amount("data", 1.5, "byte") == 1.5
    assert amount("bandwidth", TB / second, "byte/second") == 1e12
    with pytest.raises(pint.DimensionalityError):
        amount("data", 1 * param, "byte")
    with pytest.raises(InvalidValue, match="more than zero"):
        positive_amount("bandwidth", 0, "byte/second")
