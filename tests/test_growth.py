import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import growth
from mlsys.errors import InvalidValue, UnknownName
from mlsys.growth import DOMAIN_SPECIFIC, GENERAL_PURPOSE, SCurve


def test_memory_wall_over_20_years() -> None:
    """The paper prints 60,000, 100 and 30."""
    over_20_years = {
        name: growth.law(name).after(20) for name in ("compute", "memory-bandwidth", "interconnect-bandwidth")
    }
    assert over_20_years["compute"] == pytest.approx(59_000, rel=0.002)
    assert over_20_years["memory-bandwidth"] == pytest.approx(110, rel=0.002)
    assert over_20_years["interconnect-bandwidth"] == pytest.approx(29, rel=0.01)
    assert growth.wall_gap(20) == pytest.approx(over_20_years["compute"] / over_20_years["memory-bandwidth"])


def test_demand_doubles_in_months_and_moore_in_years() -> None:
    assert growth.law("moore").doubling_time.m_as("year") == pytest.approx(2)
    assert growth.law("demand-2018").doubling_time.m_as("month") == pytest.approx(3.4)
    assert growth.model_demand(1, since_2010=False) == pytest.approx(11.5, abs=0.1)
    assert growth.model_demand(1) == pytest.approx(4.6)


def test_openai_trend_gives_the_growth_it_reports() -> None:
    """More than 300,000 between AlexNet in 2012 and AlphaGo Zero in late 2017."""
    assert growth.model_demand(5.2, since_2010=False) == pytest.approx(300_000, rel=0.15)


def test_huang_outruns_moore() -> None:
    assert growth.huang(10) == pytest.approx(1000)
    assert growth.moore(10) == 32


@given(name=st.sampled_from(sorted(growth.laws())), a=st.floats(-20, 20), b=st.floats(-20, 20))
def test_growth_over_two_spans_multiplies(name: str, a: float, b: float) -> None:
    law = growth.law(name)
    assert law.after(a + b) == pytest.approx(law.after(a) * law.after(b))
    assert law.after(0) == 1


@pytest.mark.parametrize(("decade", "per_year", "months"), [(19, 1.34, 28.3), (250, 1.74, 15.1)])
def test_yearly_growth_behind_a_decade(decade: float, per_year: float, months: float) -> None:
    assert growth.growth_per_year(decade, 10) == pytest.approx(per_year, abs=0.005)
    assert growth.doubling_time(growth.growth_per_year(decade, 10)).m_as("month") == pytest.approx(months, abs=0.1)


def test_gap_between_the_demand_and_the_supply_of_the_course() -> None:
    demand, supply = growth.growth_per_year(4.6e8, 11), growth.growth_per_year(250, 10)
    assert demand == pytest.approx(6.13, abs=0.01)
    assert growth.doubling_time(demand).m_as("month") == pytest.approx(4.6, abs=0.05)
    assert (demand / supply) ** 8 == pytest.approx(2.4e4, rel=0.02)


@given(
    per_year=st.floats(0.5, 12),
    start=st.floats(1e-3, 1e20),
    years=st.lists(st.integers(1990, 2030), min_size=2, max_size=9, unique=True),
)
def test_fit_recovers_an_exact_trend(per_year: float, start: float, years: list[int]) -> None:
    values = [start * per_year ** (year - 2010) for year in years]
    assert growth.fit_growth(years, values) == pytest.approx(per_year, rel=1e-6)


def test_fit_agrees_with_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    years, values = [2012, 2015, 2016, 2020, 2022], [3.9, 21.0, 125.0, 312.0, 989.0]
    slope, _ = numpy.polyfit(numpy.array(years) - 2012, numpy.log(values), 1)
    assert growth.fit_growth(years, values) == pytest.approx(math.exp(slope))


def test_twin_curves_of_the_course() -> None:
    assert DOMAIN_SPECIFIC.at(2029) / GENERAL_PURPOSE.at(2029) == pytest.approx(92, abs=0.5)
    assert (GENERAL_PURPOSE.at(2000), DOMAIN_SPECIFIC.at(2022)) == (50, 5000)


@given(ceiling=st.floats(1, 1e6), rate=st.floats(0.01, 5), midpoint=st.floats(1900, 2100), years=st.floats(0, 5000))
def test_s_curve_is_symmetric_about_its_midpoint(ceiling: float, rate: float, midpoint: float, years: float) -> None:
    curve = SCurve(ceiling, rate, midpoint)
    before, after = curve.at(midpoint - years), curve.at(midpoint + years)
    assert before + after == pytest.approx(ceiling)
    assert 0 <= before <= after <= ceiling


def test_every_law_names_document_and_place() -> None:
    for law in growth.laws().values():
        for number in (law.factor, law.period):
            assert number.source.title
            assert number.where


def test_nonsense_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'moore'"):
        growth.law("more")
    with pytest.raises(InvalidValue, match="above 1 a year"):
        growth.doubling_time(0.9)
    with pytest.raises(InvalidValue, match="more than 0"):
        growth.growth_per_year(0, 10)
    with pytest.raises(InvalidValue, match="two or more years"):
        growth.fit_growth([2012], [1.0])
    with pytest.raises(InvalidValue, match="cannot grow exponentially"):
        growth.fit_growth([2012, 2013], [1.0, 0.0])


def test_training_runs_grow_as_two_of_them_say() -> None:
    """From 4.7e17 to 2.1e25 operations in eleven years; a run takes six operations for each parameter and token."""
    runs = growth.training_runs()
    years = [run.year for run in runs.values()]
    assert years == sorted(years)
    assert growth.fit_growth(years, [run.flops.m for run in runs.values()]) == pytest.approx(
        (2.1e25 / 4.7e17) ** (1 / 11), rel=0.03
    )
    assert runs["palm"].flops.m == pytest.approx(6 * 540e9 * 780e9, rel=0.01)
    assert runs["gpt-3"].flops.m == pytest.approx(6 * 175e9 * 300e9, rel=0.01)


def test_parts_of_huangs_law_multiply_to_the_whole() -> None:
    assert math.prod(part.value.m for part in growth.huang_parts().values()) == pytest.approx(growth.huang(10))
