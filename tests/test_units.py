import itertools

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import units
from mlsys.units import ureg

DISTINCT = ("flop", "byte", "param", "token", "dollar", "gram_co2", "second", "joule")


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(DISTINCT, 2)))
def test_different_kinds_do_not_add(one, other):
    with pytest.raises(pint.DimensionalityError):
        ureg.Quantity(1, one) + ureg.Quantity(1, other)


@given(st.integers(min_value=1, max_value=2**23))
def test_binary_and_decimal_prefixes_convert_exactly(count):
    # Up to here every product is a whole number below 2^53, so floating point has no excuse.
    assert (count * units.GiB).m_as("byte") == count * 1024**3
    assert (count * units.GB).m_as("byte") == count * 10**9
    assert count * units.GiB != count * units.GB


def test_a_network_rate_in_bits_is_an_eighth_in_bytes():
    assert ureg("200 Gbps").m_as("GB/s") == pytest.approx(25)


def test_a_multiply_add_is_two_flops():
    assert ureg("1 GMAC").m_as("GFLOP") == pytest.approx(2)


def test_watt_hours_and_joules():
    assert ureg("1 kW*h").m_as("J") == pytest.approx(3.6e6)
