"""Prices by year: ranges in order, with their sources, and no other year in place of the one asked for."""

import tomllib

import pytest

from mlsys.core.sourced import data_folder
from mlsys.costs.dated import OtherYear, of_year
from mlsys.costs.prices import electricity, purchase_price, rent, rents
from mlsys.errors import UnknownName

FILE = tomllib.loads(data_folder().joinpath("prices.toml").read_text(encoding="utf-8"))
QUOTED = [
    pytest.param(lookup, chip, int(year), id=f"{kind}-{chip}-{year}")
    for kind, lookup in (("purchase", purchase_price), ("rent", rent))
    for year, chips in FILE[kind].items()
    for chip in chips
]


@pytest.mark.parametrize(("lookup", "chip", "year"), QUOTED)
def test_a_quotation_is_in_order_and_no_older_than_its_document(lookup, chip, year):
    price = lookup(chip, year)
    assert 0 < price.low.value <= price.high.value
    assert price.low.value.dimensionality == price.high.value.dimensionality
    assert price.year == year == int(price.low.source.date[:4])


def test_a_price_of_another_year_is_refused_in_one_sentence():
    with pytest.raises(OtherYear) as error:
        rent("h100-sxm", 2023)
    assert str(error.value) == (
        "the rent of h100-sxm is known for 2026, not for 2023: name that year, or give a number of your own"
    )
    with pytest.raises(OtherYear, match="known for 2023 and 2026, not for 2025: name one of those years"):
        purchase_price("h100-sxm", 2025)
    with pytest.raises(OtherYear, match="no rent is known for 2025: take one of 2026"):
        rents(2025)


def test_a_chip_without_a_quoted_price_is_refused_with_those_that_have_one():
    with pytest.raises(UnknownName, match="h100-sxm"):
        purchase_price("tpu-v4", 2023)


def test_the_year_decides_between_entries_of_one_name():
    entries = {"2023": {"a": 1}, "2026": {"a": 2, "b": 3}}
    assert [of_year("price", "a", year, entries) for year in (2023, 2026)] == [1, 2]
    with pytest.raises(OtherYear):
        of_year("price", "b", 2023, entries)


def test_electricity_is_cents_per_kilowatt_hour():
    for place in FILE["electricity"]["2023"]:
        assert 1 < 100 * electricity(place, 2023).value.m_as("USD/(kW*hour)") < 50
