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
