"""Heat, against a step-by-step integration of its equation and against the energy that goes in and out."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.errors import InvalidValue
from mlsys.soc.power import EnergyCurve, operating_points
from mlsys.soc.thermal import Body, govern, mean_clock

PHONE = Body(ambient_c=25, limit_c=43, kelvin_per_w=4.5, joule_per_kelvin=180)
CURVE = EnergyCurve(operating_points("apple-m4-gpu"), 7.0, 0.5)


@given(st.floats(0, 20), st.floats(20, 60), st.floats(1, 3000))
def test_the_closed_form_is_what_small_steps_add_up_to(power_w, start_c, seconds):
    temperature, steps = start_c, 4000
    for _ in range(steps):
        flow = power_w - (temperature - PHONE.ambient_c) / PHONE.kelvin_per_w
        temperature += flow / PHONE.joule_per_kelvin * seconds / steps
    assert PHONE.after(start_c, power_w, seconds) == pytest.approx(temperature, abs=0.05)


def test_two_short_times_are_one_long_time():
    halfway = PHONE.after(25, 6, 100)
    assert PHONE.after(halfway, 6, 250) == pytest.approx(PHONE.after(25, 6, 350))


def test_the_limit_is_reached_when_the_answer_says():
    seconds = PHONE.time_to_limit_s(25, 8)
    assert PHONE.after(25, 8, seconds) == pytest.approx(43)
    assert PHONE.time_to_limit_s(25, PHONE.sustained_w) == math.inf
    assert PHONE.time_to_limit_s(50, 1) == 0
    assert PHONE.steady_c(PHONE.sustained_w) == pytest.approx(PHONE.limit_c)


@pytest.mark.parametrize("policy", ["budget", "step"])
def test_a_governor_holds_the_limit_and_uses_what_can_be_sustained(policy):
    samples = govern(PHONE, CURVE.points.clocks, CURVE.power_w, seconds=7200, policy=policy)
    assert samples[0].clock == 1.0
    assert max(sample.temperature_c for sample in samples) < PHONE.limit_c + 0.1
    late = [sample.power_w for sample in samples if sample.time_s > 3600]
    assert sum(late) / len(late) == pytest.approx(PHONE.sustained_w, rel=0.06)
    assert mean_clock(samples, 3600) < 0.9 * mean_clock(samples[:300])


def test_a_budget_swings_between_neighbors_and_steps_swing_further():
    def spread(policy):
        samples = govern(PHONE, CURVE.points.clocks, CURVE.power_w, seconds=7200, policy=policy)
        return {sample.clock for sample in samples if sample.time_s > 3600}

    steady = sorted(spread("budget"))
    places = [CURVE.points.clocks.index(clock) for clock in steady]
    assert places[-1] - places[0] <= 1
    assert len(spread("step")) > 2


def test_the_heat_that_is_stored_is_what_came_in_less_what_went_out():
    samples = govern(PHONE, CURVE.points.clocks, CURVE.power_w, seconds=900, step_s=0.5)
    came = sum(sample.power_w * 0.5 for sample in samples)
    went = sum((sample.temperature_c - PHONE.ambient_c) / PHONE.kelvin_per_w * 0.5 for sample in samples)
    stored = PHONE.joule_per_kelvin * (samples[-1].temperature_c - PHONE.ambient_c)
    assert came - went == pytest.approx(stored, rel=0.01)


def test_power_that_can_be_sustained_is_never_throttled():
    samples = govern(PHONE, CURVE.points.clocks, lambda clock: 3.9 * clock, seconds=20_000, step_s=10)
    stepped = govern(PHONE, CURVE.points.clocks, lambda clock: 3.9 * clock, seconds=20_000, step_s=10, policy="step")
    assert {sample.clock for sample in stepped} == {1.0}
    assert {sample.clock for sample in samples} == {1.0}


def test_even_the_lowest_clock_may_be_too_hot_and_is_then_all_that_is_left():
    samples = govern(PHONE, (0.5, 1.0), lambda clock: 20 * clock, seconds=3600)
    assert samples[-1].clock == 0.5
    assert samples[-1].temperature_c > PHONE.limit_c


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidValue, match="raise the limit or cool the room"):
        Body(45, 43, 4.5, 180)
    with pytest.raises(InvalidValue, match="kelvin_per_w"):
        Body(25, 43, 0, 180)
    with pytest.raises(InvalidValue, match="at least one operating point"):
        govern(PHONE, (), CURVE.power_w, seconds=1)
    with pytest.raises(InvalidValue, match="did you mean 'budget'"):
        govern(PHONE, (1.0,), CURVE.power_w, seconds=1, policy="budge")
    with pytest.raises(InvalidValue, match="no sample from 5 s on"):
        mean_clock(govern(PHONE, (1.0,), CURVE.power_w, seconds=2), 5)
