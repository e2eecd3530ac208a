import csv
import operator
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.errors import InvalidValue, UnknownName
from mlsys.hardware.links import BothDirections, MixedDirections, link, links
from mlsys.units import ureg

GOLDEN = Path(__file__).parents[1] / "golden" / "hardware.csv"
ROWS = {row["chip"]: row for row in csv.DictReader(GOLDEN.open())}
LINKS_OF_ROW = {
    "NVLink 3 (A100)": ["nvlink-3"],
    "NVLink 4 (H100)": ["nvlink-4"],
    "PCIe Gen4 x16 / Gen5 x16": ["pcie-4-x16", "pcie-5-x16"],
    "InfiniBand HDR / NDR": ["infiniband-hdr", "infiniband-ndr"],
}
COMPARISONS = (operator.add, operator.sub, operator.truediv, operator.eq, operator.ne, operator.lt, operator.ge)


@pytest.mark.parametrize("row", LINKS_OF_ROW)
def test_one_direction_has_the_published_rate(row):
    printed = [float(number) for number in re.findall(r"\d+", ROWS[row]["bandwidth_gb_s"])]
    assert [link(name).per_direction.m_as("GB/s") for name in LINKS_OF_ROW[row]] == pytest.approx(printed)


@pytest.mark.parametrize(("name", "printed"), [("nvlink-3", 600), ("nvlink-4", 900), ("nvlink-5", 1800)])
def test_vendors_print_nvlink_both_ways(name, printed):
    assert link(name).both_directions.total.m_as("GB/s") == printed


@pytest.mark.parametrize("one", links(), ids=lambda one: one.id)
def test_both_directions_are_twice_one(one):
    both = one.both_directions
    assert both.total == 2 * one.per_direction
    assert both.per_direction == one.per_direction


@pytest.mark.parametrize("operation", COMPARISONS)
@pytest.mark.parametrize("swapped", [False, True])
def test_one_way_and_two_way_rates_do_not_meet(operation, swapped):
    pair = link("nvlink-4").per_direction, link("pcie-5-x16").both_directions
    with pytest.raises(MixedDirections, match="per_direction"):
        operation(*(reversed(pair) if swapped else pair))


def test_two_way_rates_add_divide_and_compare_among_themselves():
    nvlink, pcie = link("nvlink-4").both_directions, link("pcie-5-x16").both_directions
    assert nvlink > pcie
    assert pcie <= nvlink
    assert nvlink != pcie
    assert (nvlink + pcie).total.m_as("GB/s") == 900 + 128
    assert len({nvlink, link("nvlink-4").both_directions}) == 1


@given(st.floats(1, 1e4), st.floats(1, 1e4))
def test_the_ratio_of_two_links_does_not_depend_on_the_direction(one, other):
    one_way, other_way = ureg.Quantity(one, "GB/s"), ureg.Quantity(other, "GB/s")
    assert BothDirections(one_way) / BothDirections(other_way) == pytest.approx(one / other)


def test_nvlink_is_several_times_pcie():
    a100 = link("nvlink-3").both_directions / link("pcie-4-x16").both_directions
    h100 = link("nvlink-4").both_directions / link("pcie-5-x16").both_directions
    assert (round(a100, 1), round(h100, 1)) == (9.4, 7.0)


@pytest.mark.parametrize(("size_mb", "efficiency", "milliseconds"), [(201.3, 1.0, 3.15), (201.3, 25 / 64, 8.05)])
def test_transfer_time_is_size_over_the_rate_that_is_reached(size_mb, efficiency, milliseconds):
    time = link("pcie-5-x16").transfer_time(size_mb * ureg.MB, efficiency)
    assert time.m_as("ms") == pytest.approx(milliseconds, rel=2e-3)


@pytest.mark.parametrize("efficiency", [0, -0.5, 1.01])
def test_an_impossible_efficiency_is_refused(efficiency):
    with pytest.raises(InvalidValue, match="efficiency"):
        link("nvlink-4").transfer_time(1e9, efficiency)


def test_a_misspelt_link_gets_the_nearest_id():
    with pytest.raises(UnknownName, match="did you mean 'nvlink-4'"):
        link("nvlink4")
