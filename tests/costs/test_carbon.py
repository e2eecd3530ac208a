from itertools import product

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.costs.carbon import (
    EMBODIED,
    embodied,
    emissions,
    energy_per_inference,
    fleet_emissions,
    fleet_energy,
    grid,
    grids,
    payback_time,
    pue,
)
from mlsys.costs.dated import OtherYear
from mlsys.errors import InvalidValue, UnknownName
from mlsys.units import tonne_co2, ureg

KWH = ureg.kW * ureg.hour
CPUS = fleet_energy(power=100, chips=1000)
NPUS = fleet_energy(power=5, chips=100)


def test_a_day_of_both_fleets():
    assert CPUS.m_as(KWH) == 2400
    assert NPUS.m_as(KWH) == 12


@pytest.mark.parametrize(("energy", "joules"), [(CPUS, 8.64), (NPUS, 0.0432)])
def test_energy_of_one_of_a_thousand_million_inferences(energy, joules):
    assert energy_per_inference(energy, 1e9).m_as("J") == pytest.approx(joules)


@pytest.mark.parametrize(("grams", "tonnes"), [(400, 348.6), (50, 43.6)])
def test_tonnes_saved_in_a_year(grams, tonnes):
    assert emissions(365 * (CPUS - NPUS), grams).m_as(tonne_co2) == pytest.approx(tonnes, abs=0.05)


def test_payback_of_a_hundred_npus():
    saved = emissions(CPUS - NPUS, 400)
    assert saved.m_as(tonne_co2) == pytest.approx(0.955, abs=5e-4)
    assert round(payback_time(100 * 150_000, saved).m_as("day")) == 16


def test_a_cleaner_grid_delays_the_payback_in_proportion():
    slow, fast = (payback_time(15 * tonne_co2, emissions(CPUS - NPUS, grams)) for grams in (50, 400))
    assert slow / fast == pytest.approx(8)


def test_gram_per_kilowatt_hour_and_per_joule_agree():
    per_joule = ureg.Quantity(360 / 3.6e6, "gCO2/J")
    assert emissions(10 * KWH, per_joule).m_as("gCO2") == pytest.approx(3600)


@given(st.integers(1, 10_000), st.floats(1, 1000), st.floats(1, 2))
def test_fleet_energy_grows_with_chips_power_and_pue(chips, power, ratio):
    assert fleet_energy(power, chips, pue=ratio).m == pytest.approx(chips * ratio * fleet_energy(power, 1).m)


@pytest.mark.parametrize("year", [2023, 2025])
def test_grids_state_their_year_and_lie_between_hydro_and_coal(year):
    for entry in grids(year).values():
        assert entry.condition.startswith(f"{year}, ")
        assert 10 < entry.value.m_as("gCO2/(kW*hour)") < 1100


def test_one_year_has_grids_from_hydro_to_coal():
    assert len(grids(2023)) >= 14
    assert grid("norway", 2023) < grid("france", 2023) < grid("world", 2023) < grid("india", 2023)


def test_a_grid_of_another_year_is_refused_by_name_with_what_to_do():
    with pytest.raises(OtherYear) as error:
        grid("france", 2025)
    assert str(error.value) == (
        "the carbon intensity of france is known for 2023, not for 2025: name that year, or give a number of your own"
    )
    with pytest.raises(OtherYear, match="no carbon intensity of a grid is known for 1999: take one of 2025, 2023"):
        grids(1999)


def test_embodied_estimates_say_what_they_count():
    assert all(20 < estimate.value.m_as("kgCO2") < 2000 and estimate.condition for estimate in EMBODIED.all())
    assert 8 * embodied("h100-share-of-board").value.m_as("kgCO2") == 1312  # as the vendor prints it
    assert embodied("a100-card").value < embodied("a100-with-server").value


def test_a_well_run_facility_is_below_the_average():
    assert 1 < pue("google").value < pue("average").value


def test_unknown_names_list_what_there_is():
    with pytest.raises(UnknownName, match="did you mean 'france'"):
        grid("frnace", 2023)
    with pytest.raises(UnknownName, match="average"):
        pue("mean")


def test_impossible_inputs_are_refused():
    with pytest.raises(InvalidValue, match="pue"):
        fleet_energy(100, 1, pue=0.5)
    with pytest.raises(InvalidValue, match="chips"):
        fleet_energy(100, 0)
    with pytest.raises(InvalidValue, match="saved_per_day"):
        payback_time(1, 0)
    with pytest.raises(pint.DimensionalityError):
        emissions(10 * tonne_co2, 400)
    with pytest.raises(InvalidValue, match="least first"):
        fleet_emissions(power=(8, 5), chips=1, intensity=400)
    with pytest.raises(InvalidValue, match="pue"):
        fleet_emissions(power=5, chips=1, intensity=400, pue=(0.9, 1.1))


def pairs(least, most):
    return st.tuples(st.floats(least, most), st.floats(least, most)).map(lambda ends: tuple(sorted(ends)))


@given(pairs(1, 1000), pairs(1, 9000), pairs(1, 2), pairs(1, 1000), st.integers(1, 10_000))
def test_a_span_holds_every_corner_of_its_factors_and_is_no_wider(power, hours, ratio, intensity, chips):
    corners = [
        chips * watts / 1000 * time * share * grams / 1e6
        for watts, time, share, grams in product(power, hours, ratio, intensity)
    ]
    span = fleet_emissions(power, chips, intensity, hours=hours, pue=ratio)
    assert span.low.m_as(tonne_co2) == pytest.approx(min(corners))
    assert span.high.m_as(tonne_co2) == pytest.approx(max(corners))


def test_a_number_without_a_range_has_two_equal_ends():
    span = fleet_emissions(100, 1000, 400, hours=24)
    assert span.low == span.high
    assert span.low.m_as(tonne_co2) == pytest.approx(0.96)
