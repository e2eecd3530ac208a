"""Clocks, voltages and energy, against the law C V^2 f by hand and against a fine search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.core.sourced import load_toml, sources
from mlsys.errors import InvalidValue, UnknownName
from mlsys.soc.power import EnergyCurve, OperatingPoints, operating_points

M4 = operating_points("apple-m4-gpu")


def test_a_fifth_less_voltage_and_clock_halves_the_power():
    points = OperatingPoints("example", (800, 1000), (0.8, 1.0), next(iter(sources().values())))
    curve = EnergyCurve(points, dynamic_w=10, static_w=0)
    assert curve.power_w(0.8) == pytest.approx(10 * 0.512)
    assert curve.energy_j(1, 0.8) == pytest.approx(10 * 0.64)


def test_states_that_another_state_beats_are_dropped():
    states = load_toml("operating_points.toml")["apple-m4-gpu"]["states"]
    kept = {(clock, round(1000 * volt)) for clock, volt in zip(M4.clocks_mhz, M4.volts, strict=True)}
    for clock, millivolt in states:
        beaten = any(c > clock and v <= millivolt for c, v in states)
        assert ((clock, millivolt) in kept) is not beaten
    assert list(M4.clocks_mhz) == sorted(M4.clocks_mhz)
    assert list(M4.volts) == sorted(M4.volts)


@given(st.floats(0, 1))
def test_voltage_rises_with_the_clock_and_stays_between_its_neighbors(share):
    low, high = M4.clocks[0], 1.0
    clock = low + share * (high - low)
    assert M4.volts[0] <= M4.voltage(clock) <= M4.volts[-1]
    assert M4.voltage(clock) <= M4.voltage(min(1.0, clock + 0.01)) + 1e-12


@pytest.mark.parametrize("clock", [0.0, 0.2, 1.01, float("nan")])
def test_a_clock_outside_the_table_is_refused_with_its_range(clock):
    with pytest.raises(InvalidValue, match=r"use a share from 0\.214 to 1"):
        M4.voltage(clock)


def test_without_static_power_the_slowest_clock_is_best_and_without_switching_the_fastest():
    assert EnergyCurve(M4, 1.0, 0.0).best_clock(1.0) == M4.clocks[0]
    assert EnergyCurve(M4, 0.0, 1.0).best_clock(1.0) == 1.0


@given(st.floats(0.01, 10), st.floats(0.01, 10))
def test_the_best_point_is_next_to_the_minimum_of_the_curve(dynamic_w, static_w):
    curve = EnergyCurve(M4, dynamic_w, static_w)
    fine = [M4.clocks[0] + k / 2000 * (1 - M4.clocks[0]) for k in range(2000)] + [1.0]
    lowest = min(fine, key=lambda clock: curve.energy_j(1.0, clock))
    best = curve.best_clock(1.0)
    assert curve.energy_j(1.0, best) <= min(curve.energy_j(1.0, clock) for clock in M4.clocks)
    assert curve.energy_j(1.0, best) <= 1.12 * curve.energy_j(1.0, lowest)


def test_more_static_power_asks_for_a_higher_clock():
    clocks = [EnergyCurve(M4, 4.0, static).best_clock(1.0) for static in (0.0, 0.2, 0.5, 1, 2, 4, 8, 100)]
    assert clocks == sorted(clocks)
    assert len(set(clocks)) > 4


def test_a_deadline_excludes_slow_clocks_and_an_impossible_one_is_refused():
    curve = EnergyCurve(M4, 4.0, 0.1)
    assert 0.010 / curve.best_clock(0.010, deadline_s=0.0125) <= 0.0125
    assert curve.best_clock(0.010, deadline_s=0.0125) > curve.best_clock(0.010)
    with pytest.raises(InvalidValue, match=r"0\.01 s at the top clock is not done in 0\.009 s"):
        curve.best_clock(0.010, deadline_s=0.009)


def test_an_unknown_table_and_a_negative_power_are_refused():
    with pytest.raises(UnknownName, match="apple-m4-gpu"):
        operating_points("apple-m4")
    with pytest.raises(InvalidValue, match="static_w"):
        EnergyCurve(M4, 1.0, -0.1)
