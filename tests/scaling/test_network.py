"""What collectives reach on real links: against published profiles, and against bounds."""

from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.errors import InvalidValue, UnknownName
from mlsys.scaling import Fabric, fabric, fabrics, ring_all_reduce_time, timed

NVLINK = ("nvlink-3", "nvlink-4")


def error(one) -> float:
    """Share by which the predicted time of a published one is off."""
    joined = fabric(one.link)
    said = joined.send_time(one.size) if one.operation == "send" else joined.all_reduce_time(one.size, one.chips)
    return float(abs(said / one.time - 1))


@pytest.mark.parametrize("link", ["nvlink-3", "nvlink-4", "pcie-4-x16", "pcie-5-x16"])
def test_all_reduces_of_a_node_are_within_a_tenth_of_the_profile_in_the_median(link):
    rows = [one for one in timed() if one.link == link and one.operation == "all-reduce"]
    assert len(rows) >= 9
    assert median(map(error, rows)) < 0.10


@pytest.mark.parametrize("link", NVLINK)
def test_so_are_those_of_four_gpus_to_which_nothing_was_fitted(link):
    rows = [one for one in timed() if (one.link, one.operation, one.chips) == (link, "all-reduce", 4)]
    assert len(rows) == 9
    assert median(map(error, rows)) < 0.10


@pytest.mark.parametrize(("link", "near"), [("nvlink-3", 0.15), ("nvlink-4", 0.05)])
def test_copies_between_two_gpus_are_near_the_profile(link, near):
    """An A100's are slower from 32 MiB on, which one rate cannot follow."""
    rows = [one for one in timed() if one.link == link and one.operation == "send"]
    assert len(rows) == 9
    assert median(map(error, rows)) < near


def test_plain_ring_time_is_a_fifth_short_of_eight_h100s_at_64_mib():
    [measured] = [one for one in timed() if one.link == "nvlink-4" and one.size == 2**26 and one.chips == 8]
    plain = ring_all_reduce_time(2**26, 8, fabric("nvlink-4").bandwidth)
    assert 1 - plain / measured.time == pytest.approx(0.19, abs=0.01)


@given(st.floats(0, 1e10), st.integers(1, 8))
def test_a_real_collective_takes_no_less_than_the_ideal_one(size, n):
    for joined in fabrics():
        assert joined.all_reduce_time(size, n) >= joined.ideal.all_reduce_time(size, n)
        assert joined.ideal.all_reduce_time(size, n) == ring_all_reduce_time(size, n, joined.bandwidth)


@given(st.floats(1, 1e10), st.integers(2, 8))
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather_that_start_once(size, n):
    for joined in fabrics():
        halves = joined.reduce_scatter_time(size, n) + joined.all_gather_time(size, n)
        started = halves.m_as("s") - joined.start_s
        assert joined.all_reduce_time(size, n).m_as("s") == pytest.approx(started, rel=1e-9)


def test_as_many_bytes_leave_a_chip_in_an_all_to_all_as_a_count_of_tokens_says():
    """Tokens are dealt to chips one by one; those that stay do not count."""
    chips, tokens, width = 4, 10_000, 8
    goes_to = np.random.default_rng(0).integers(0, chips, size=(chips, tokens))
    left = np.mean([(goes_to[chip] != chip).sum() * width for chip in range(chips)])
    wire = Fabric("wire", bandwidth=1.0)
    assert wire.all_to_all_time(tokens * width, chips).m_as("s") == pytest.approx(left, rel=0.01)


def test_what_is_wrong_is_named():
    with pytest.raises(InvalidValue, match="NVLink 4 and switch joins at most 8 chips, not 16"):
        fabric("nvlink-4").all_reduce_time(1, 16)
    with pytest.raises(UnknownName, match="nvlink-4"):
        fabric("nvlink4")
    with pytest.raises(InvalidValue, match=r"efficiency is 1\.2"):
        Fabric("wire", 1e9, efficiency=1.2)
    with pytest.raises(InvalidValue, match="step_s"):
        Fabric("wire", 1e9, step_s=-1)
    with pytest.raises(InvalidValue, match="bandwidth"):
        Fabric("wire", 0)
