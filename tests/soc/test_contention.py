"""Shares of a bandwidth, against another way to find them: a water level, raised until everything is given out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.errors import InvalidValue
from mlsys.soc.contention import share

demands = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 100), max_size=6)


def water_level(wanted: list[float], capacity: float) -> float:
    low, high = 0.0, max(wanted, default=0.0)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(min(one, middle) for one in wanted) <= capacity else (low, middle)
    return high


@given(demands, st.floats(0, 300))
def test_everyone_gets_the_demand_or_the_water_level(wanted, capacity):
    level = water_level(list(wanted.values()), capacity)
    for name, granted in share(wanted, capacity).items():
        assert granted == pytest.approx(min(wanted[name], level), abs=1e-6)


@given(demands, st.floats(0, 300), st.dictionaries(st.sampled_from("abcdef"), st.integers(-2, 2)))
def test_nothing_is_given_twice_and_nothing_is_left_over(wanted, capacity, priority):
    granted = share(wanted, capacity, priority)
    assert sum(granted.values()) == pytest.approx(min(capacity, sum(wanted.values())), abs=1e-6)
    assert all(0 <= granted[name] <= wanted[name] for name in wanted)


@given(demands, demands, st.floats(0, 300))
def test_lower_priorities_get_what_the_higher_leave(high, low, capacity):
    low = {name.upper(): rate for name, rate in low.items()}
    granted = share({**high, **low}, capacity, dict.fromkeys(high, 1))
    first = share(high, capacity)
    rest = share(low, max(0.0, capacity - sum(first.values())))
    for name, rate in {**first, **rest}.items():
        assert granted[name] == pytest.approx(rate, abs=1e-6)


def test_a_negative_demand_is_refused_by_name():
    with pytest.raises(InvalidValue, match="demand of 'npu'"):
        share({"npu": -1.0}, 50)
    with pytest.raises(InvalidValue, match="capacity"):
        share({}, float("inf"))
