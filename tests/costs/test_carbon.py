import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.costs.carbon import emissions, energy_per_inference, fleet_energy, grid, grids, payback_time, pue
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


def test_grids_state_their_year_and_lie_between_hydro_and_coal():
    assert len(grids()) >= 10
    for entry in grids().values():
        assert entry.condition[:4].isdigit()
        assert 10 < entry.value.m_as("gCO2/(kW*hour)") < 1100
    assert grid("france") < grid("world") < grid("india")


def test_a_well_run_facility_is_below_the_average():
    assert 1 < pue("google").value < pue("average").value


def test_unknown_names_list_what_there_is():
    with pytest.raises(UnknownName, match="did you mean 'france'"):
        grid("frnace")
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
