"""The assumed phone: what is assumed has a reason, and a block says which other block has what it lacks."""

import pytest

from mlsys.core.sourced import load_toml
from mlsys.errors import InvalidValue, UnknownName
from mlsys.soc import CannotRun, soc
from mlsys.soc.chip import assumptions, make_unit

PHONE = soc("phone")


def test_every_assumption_says_why():
    listed = assumptions("phone")
    assert len(listed) == 8
    assert all(why for _, why in listed.values())
    units = load_toml("socs.toml")["phone"]["units"]
    assert all(unit["why"] for unit in units.values())


def test_the_phone_is_made_of_its_file():
    assert [unit.name for unit in PHONE.units] == ["CPU", "GPU", "NPU", "DSP"]
    assert PHONE.unit("NPU").rate("conv2d") == 4e12
    assert PHONE.unit("NPU").rate("conv2d", 0.5) == 2e12
    assert (PHONE.memory_bandwidth, PHONE.memory_j_per_byte, PHONE.handoff_s) == (50e9, 40e-12, pytest.approx(3e-4))
    assert PHONE.body.sustained_w == 4


def test_no_block_asks_the_memory_for_more_than_there_is():
    assert all(unit.bandwidth <= PHONE.memory_bandwidth for unit in PHONE.units)


def test_a_block_that_lacks_an_operation_names_the_others():
    with pytest.raises(CannotRun, match="the GPU runs no 'branches': use CPU"):
        PHONE.unit("GPU").rate("branches")
    with pytest.raises(CannotRun, match="the GPU runs no 'branches': no block of this chip does"):
        PHONE.without("CPU").unit("GPU").rate("branches")
    with pytest.raises(UnknownName, match="unknown block of the assumed phone 'TPU': did you mean"):
        PHONE.unit("TPU")
    with pytest.raises(UnknownName, match="Known: phone"):
        soc("telephone")
    with pytest.raises(InvalidValue, match="rate of 'p' on the X"):
        make_unit("X", {"p": 0}, 1, PHONE.units[0].curve)
