import re
from itertools import pairwise

import pint
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mlsys import Hardware
from mlsys.costs.economics import (
    break_even,
    break_even_share,
    crossing_intensity,
    owning_cost,
    power_cost,
    price_per_attainable,
    price_per_bandwidth,
    price_per_million_tokens,
    price_per_rate,
)
from mlsys.costs.prices import purchase_price, rent
from mlsys.errors import InvalidValue
from mlsys.hardware import UnknownPrecision
from mlsys.units import dollar, hour, ureg

year = ureg.year

# Prices as the course uses them: approximate, dated, and inputs of the calculation.
PRICES = {"v100-sxm2": 9_000, "a100-80gb-sxm": 15_000, "tpu-v4": 8_000, "gaudi-2": 12_000}


def bandwidth_of(chip):
    return chip.memory_bw.m_as("byte/s")


def peak_of(chip):
    return chip.peak("fp16").m_as("flop/s")


def half(chip):
    return "fp16" if any(p.precision == "fp16" for p in chip.peaks) else "bf16"


@pytest.mark.parametrize(
    ("chip", "per_tflops", "per_gb_s"),
    [("v100-sxm2", 72, 10.0), ("a100-80gb-sxm", 48, 7.4), ("tpu-v4", 29, 6.7), ("gaudi-2", 27.8, 4.9)],
)
def test_price_of_rate_and_of_bandwidth(chip, per_tflops, per_gb_s):
    spec, price = Hardware.get(chip), PRICES[chip]
    rate = price_per_rate(price, spec.peak(half(spec))).m_as("USD/(TFLOP/s)")
    assert rate == pytest.approx(per_tflops, abs=0.5 if per_tflops > 28 else 0.05)
    assert price_per_bandwidth(price, spec.memory_bw).m_as("USD/(GB/s)") == pytest.approx(per_gb_s, abs=0.05)


def test_price_range_of_an_h100():
    h100, price = Hardware.get("h100-sxm"), purchase_price("h100-sxm", 2023)
    ends = (price.low.value, price.high.value)
    assert [price_per_rate(end, h100.peak("fp16")).m for end in ends] == pytest.approx([25.3, 30.3], abs=0.05)
    assert [price_per_bandwidth(end, h100.memory_bw).m for end in ends] == pytest.approx([7.5, 9.0], abs=0.05)


@pytest.mark.parametrize(("utilization", "delivered"), [(0.1, 31), (0.8, 250)])
def test_a_delivered_rate_counts_not_the_peak(utilization, delivered):
    price = price_per_rate(15_000, Hardware.Cloud.A100.peak("fp16"), utilization).m_as("USD/(TFLOP/s)")
    assert price == pytest.approx(15_000 / delivered, rel=0.01)


def test_work_of_low_intensity_is_ranked_by_bandwidth_and_of_high_intensity_by_peak():
    a100, v100 = Hardware.get("a100-80gb-sxm"), Hardware.get("v100-sxm2")
    for intensity, ratio in ((1, (9000 / 900) / (15_000 / 2039)), (1000, (9000 / 125) / (15_000 / 312))):
        prices = [price_per_attainable(price, chip, intensity) for price, chip in ((9000, v100), (15_000, a100))]
        assert (prices[0] / prices[1]).m_as("") == pytest.approx(ratio)


def test_a_price_at_a_precision_that_the_chip_lacks_is_refused():
    with pytest.raises(UnknownPrecision):
        price_per_attainable(8_000, Hardware.Cloud.TPUv4, intensity=100, precision="fp16")


@pytest.mark.parametrize(("chip", "dollars"), [("a100-80gb-sxm", 456), ("h100-sxm", 797)])
def test_electricity_of_a_year(chip, dollars):
    assert round(power_cost(Hardware.get(chip).tdp, 0.10, pue=1.3).m_as(dollar)) == dollars


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_electricity_follows_load_and_time(share):
    assert power_cost(400, 0.1, utilization=share) == share * power_cost(400, 0.1)
    assert power_cost(400, 0.1, hours=24 * hour).m_as(dollar) == pytest.approx(400 / 1000 * 24 * 0.1)


def test_break_even_in_hours_and_days():
    time = break_even(25_000, 2.50)
    assert time.m_as(hour) == 10_000
    assert round(time.m_as("day")) == 417


@given(st.floats(100, 1e6), st.floats(1, 10), st.floats(0, 0.9))
def test_at_break_even_both_have_cost_the_same(price, hourly, running):
    hours = break_even(price, hourly, running).m_as(hour)
    assert hours * hourly == pytest.approx(price + hours * running)


def test_there_is_no_break_even_when_running_costs_eat_the_rent():
    with pytest.raises(InvalidValue, match="no break-even"):
        break_even(25_000, 2.50, hourly_cost=2.50)


def test_price_of_tokens_is_rent_over_rate():
    a_day = price_per_million_tokens(rent("h100-sxm", 2026).low.value, 1000).m_as(dollar) * 1000 * 86_400 / 1e6
    assert a_day == pytest.approx(24 * 2.49)
    with pytest.raises(InvalidValue):
        price_per_million_tokens(2.5, 0)


def test_owning_costs_what_a_ledger_of_every_hour_adds_up_to():
    """26,280 dollars, written off over three years; 20 cents an hour, and work in every second hour."""
    ledger = [26_280 / 26_280 + 0.2 for _ in range(3 * 8760)]
    worked = len(ledger) // 2
    assert owning_cost(26_280, 3 * year, 0.2, busy=0.5).m_as("USD/hour") == pytest.approx(sum(ledger) / worked)


@given(st.floats(100, 1e6), st.floats(1e3, 1e5), st.floats(0.5, 20), st.floats(0, 5))
def test_at_the_break_even_share_a_life_costs_what_its_rented_hours_cost(price, life, hourly, running):
    share = break_even_share(price, life, hourly, running)
    assert share * life * hourly == pytest.approx(price + life * running)
    if 0 < share <= 1:
        assert owning_cost(price, life, running, share).m == pytest.approx(hourly)


def test_break_even_in_hours_and_as_a_share_are_one_point():
    """A chip that pays off after 10,000 hours of use must work 10,000 hours of its life, if idle hours cost nothing."""
    assert break_even_share(25_000, 20_000, 2.50) == pytest.approx(break_even(25_000, 2.50).m_as(hour) / 20_000)


CHIPS = [Hardware.get(name) for name in ("v100-sxm2", "a100-80gb-sxm", "h100-sxm", "h200", "t4", "b200", "l4")]


@given(st.sampled_from(CHIPS), st.sampled_from(CHIPS), st.floats(1, 10), st.floats(1, 10))
def test_prices_cross_exactly_where_a_scan_finds_that_the_cheaper_chip_changes(one, two, price, other):
    roofs = [(cost, bandwidth_of(chip), peak_of(chip)) for cost, chip in ((price, one), (other, two))]

    def costs(intensity):
        return [cost / min(peak, bandwidth * intensity) for cost, bandwidth, peak in roofs]

    def cheaper(intensity):
        return costs(intensity).index(min(costs(intensity)))

    ratios = [price / other * rate_of(two) / rate_of(one) for rate_of in (bandwidth_of, peak_of)]
    assume(all(abs(ratio - 1) > 1e-6 for ratio in ratios))  # equal prices along a whole roof have no crossing
    scanned = [10 ** (step / 20) for step in range(-20, 81)]  # 0.1 to 10,000
    changes = [(low, high) for low, high in pairwise(scanned) if cheaper(low) != cheaper(high)]
    if changes:
        [(low, high)] = changes
        crossing = crossing_intensity(price, one, other, two).m
        assert low * 0.999 <= crossing <= high * 1.001
        assert costs(crossing)[0] == pytest.approx(costs(crossing)[1])
    else:
        name = re.escape((one, two)[cheaper(1)].name)
        with pytest.raises(InvalidValue, match=f"{name} is cheaper at every intensity"):
            crossing_intensity(price, one, other, two)


def test_two_rents_cross_where_their_plain_numbers_do_and_a_rent_is_no_price():
    h100, a100 = Hardware.Cloud.H100, Hardware.Cloud.A100
    rents = [rent(chip.id, 2026).low.value for chip in (h100, a100)]
    assert crossing_intensity(rents[0], h100, rents[1], a100) == crossing_intensity(2.49, h100, 1.49, a100)
    with pytest.raises(pint.DimensionalityError):
        crossing_intensity(rents[0], h100, 15_000 * dollar, a100)


@pytest.mark.parametrize("bad", [0, 1.1, -0.2])
def test_impossible_utilization_is_refused(bad):
    with pytest.raises(InvalidValue, match="utilization"):
        price_per_rate(15_000, 312e12, bad)
    with pytest.raises(InvalidValue, match="utilization"):
        power_cost(400, 0.1, utilization=bad)


def test_a_facility_cannot_draw_less_than_its_computers():
    with pytest.raises(InvalidValue, match="pue"):
        power_cost(400, 0.1, pue=0.9)


def test_dollars_do_not_pass_for_watts():
    with pytest.raises(pint.DimensionalityError):
        power_cost(400 * dollar, 0.1)
