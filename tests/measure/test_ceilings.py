import pytest

from mlsys.measure import cpu_ceilings
from mlsys.measure.ceilings import Ceilings, measure_ceilings
from mlsys.measure.device import Device, cpu_device
from mlsys.units import ureg


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(cpu_ceilings, "ARRAY_BYTES", 2**24)
    monkeypatch.setattr(cpu_ceilings, "MATMUL_SIZE", 256)


def test_cpu_ceilings_are_of_this_machine(small):
    found = measure_ceilings(cpu_device(), budget_s=0.01)
    assert found.device.kind == "cpu"
    assert set(found.bandwidths) == {"read", "add", "fill"}
    assert all(0.1 < found.bandwidth(mix).m_as("GB/s") < 10_000 for mix in ("copy", *found.bandwidths))
    assert set(found.matmul) == {"fp32", "fp64"}
    assert all(0.1 < rate.m_as("GFLOP/s") < 100_000 for rate in found.matmul.values())
    assert 0.01 < found.launch_latency["back to back"].m_as("us") < 1_000


def test_bandwidth_counts_every_array_that_crosses_the_interface(small, monkeypatch):
    # With every mix held to one second, the rates are the bytes that each is said to move.
    monkeypatch.setattr(cpu_ceilings, "time_kernel", lambda call, **how: type("OneSecond", (), {"median_s": 1.0}))
    rates = cpu_ceilings.bandwidths(budget_s=0.01)
    moved = {mix: rate.m_as("byte/s") / cpu_ceilings.ARRAY_BYTES for mix, rate in rates.items()}
    assert moved == pytest.approx({"read": 1, "copy": 2, "add": 3, "fill": 1})


def test_an_unmeasured_mix_lists_the_measured_ones():
    ceilings = Ceilings(Device("cpu", "a CPU"), ureg("20 GB/s"), {}, {"read": ureg("30 GB/s")})
    assert ceilings.bandwidth("read").m_as("GB/s") == 30
    with pytest.raises(LookupError, match="did you mean 'read'.*Known: copy, read"):
        ceilings.bandwidth("reads")


def test_a_roof_is_of_other_work_than_what_is_held_against_it_where_there_is_such_work():
    slow, fast = ureg("100 TFLOP/s"), ureg("120 TFLOP/s")
    known = Ceilings(
        Device("gpu", "a GPU"),
        ureg("900 GB/s"),
        {"fp16": fast, "fp64": slow, "fp32": slow},
        {"add": ureg("930 GB/s"), "triad": ureg("920 GB/s")},
        {"fp32": fast},
        mma={"fp16": slow},
    )
    assert known.memory_roof == known.bandwidth("triad")
    assert [known.product_roof(one) for one in ("fp16", "fp32", "fp64")] == [slow, fast, slow]
    with pytest.raises(LookupError, match="'fp8'.*Known: fp16, fp32, fp64"):
        known.product_roof("fp8")


def test_without_a_kernel_of_its_own_the_memory_roof_is_the_librarys_addition():
    ceilings = Ceilings(Device("gpu", "a T4"), ureg("250 GB/s"), {}, {"add": ureg("260 GB/s")})
    assert ceilings.memory_roof.m_as("GB/s") == 260
