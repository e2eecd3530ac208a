"""Decoding held against chips: by hand-computed sizes, and gate by gate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import Hardware, models
from mlsys.errors import InvalidValue
from mlsys.feasibility import decode_feasibility, feasibility
from mlsys.hardware import UnknownPrecision
from mlsys.units import ms

H100, T4 = Hardware.Cloud.H100, Hardware.get("t4")
PARAMS_7B, CACHE_7B = 6_738_415_616, 2 * 32 * 4096 * 2  # parameters; bytes of keys and values for a token in FP16


def test_a_7b_model_on_a_t4_by_hand():
    verdict = decode_feasibility(models.llama2_7b, T4, 50 * ms, context=2048)
    held = 2 * PARAMS_7B + 2048 * CACHE_7B
    assert verdict.memory.need.m_as("byte") == pytest.approx(held, rel=2e-4)  # results of one token are small
    assert verdict.bandwidth.need.m_as("s") == pytest.approx(held / 320e9)
    assert verdict.compute.need.m_as("s") == pytest.approx(2 * PARAMS_7B / 65e12, rel=0.12)  # and attention
    assert verdict.feasible


def test_narrower_weights_open_gates_and_leave_the_arithmetic():
    wide = decode_feasibility(models.llama2_70b, H100, 50 * ms, context=2048)
    narrow = decode_feasibility(models.llama2_70b, H100, 50 * ms, context=2048, dtype="int4")
    assert [gate.name for gate in wide.shut] == ["memory"]
    assert narrow.feasible
    assert narrow.compute.need == wide.compute.need
    weights = 68_976_648_192
    assert (wide.memory.need - narrow.memory.need).m_as("byte") == pytest.approx(1.5 * weights)


def test_several_chips_add_up():
    one, two = (decode_feasibility(models.llama2_70b, H100, 50 * ms, context=2048, chips=n) for n in (1, 2))
    for before, after in zip(one.gates, two.gates, strict=True):
        assert after.load == pytest.approx(before.load / 2)


def test_the_binding_gate_moves_from_memory_to_compute():
    """One user: the memory is fullest. A tight deadline: the bytes. A large batch on a slow chip: the arithmetic."""
    roomy = decode_feasibility(models.llama2_7b, T4, 1.0, context=128)
    tight = decode_feasibility(models.llama2_7b, H100, 2 * ms, context=128)
    slow = decode_feasibility(models.llama2_7b, H100, 5 * ms, batch=64, context=1, utilization=0.1)
    assert [verdict.binding.name for verdict in (roomy, tight, slow)] == ["memory", "bandwidth", "compute"]


@given(st.floats(0.05, 1), st.floats(0.05, 1))
def test_a_reached_share_lengthens_its_own_gate_only(bandwidth_share, utilization):
    work = {"weights": 14e9, "flops": 14e9, "deadline": 0.05, "memory": 80e9, "bandwidth": 3e12, "peak": 1e15}
    full = feasibility(**work)
    part = feasibility(**work, bandwidth_share=bandwidth_share, utilization=utilization)
    assert part.bandwidth.load == pytest.approx(full.bandwidth.load / bandwidth_share)
    assert part.compute.load == pytest.approx(full.compute.load / utilization)
    assert part.memory == full.memory


def test_what_chip_or_model_cannot_do_is_refused():
    with pytest.raises(UnknownPrecision):
        decode_feasibility(models.llama2_7b, T4, 1, context=1, precision="bf16")
    with pytest.raises(InvalidValue, match="4096 positions"):
        decode_feasibility(models.llama2_7b, T4, 1, context=5000)
    with pytest.raises(InvalidValue, match="bandwidth_share"):
        decode_feasibility(models.llama2_7b, T4, 1, context=1, bandwidth_share=2)
