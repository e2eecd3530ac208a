"""Clock and power of a GPU: through NVIDIA's own library, which tells nothing where there is no GPU."""

import sys
import threading
import time

import pynvml
import pytest

from mlsys.bench.row import row
from mlsys.bench.table import conditions
from mlsys.measure import nvml
from mlsys.measure.device import torch_sees_gpu
from mlsys.measure.nvml import Meter, Readings, torchs_gpu
from mlsys.measure.timing import METERED_S, time_kernel

without_gpu = pytest.mark.skipif(torch_sees_gpu(), reason="has a GPU")


@without_gpu
def test_without_a_gpu_nothing_is_read_and_the_report_says_so():
    with torchs_gpu() as gpu:
        assert gpu is None
    timing = time_kernel(lambda: time.sleep(1e-3), on_gpu=False, metered=True, budget_s=0.01)
    assert timing.readings == Readings(None, None)
    found = row("lab", "wait", "once", (1,), "int8", call=lambda: time.sleep(1e-3), on_gpu=False, budget_s=0.01)
    assert (found.sm_clock_mhz, found.power_w) == (None, None)
    assert conditions([found]) == "SM clock: not read; power: not read"


def test_without_the_package_nothing_is_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Meter() as meter:
        time.sleep(2 * nvml.SAMPLE_EVERY_S)
    assert meter.readings() == Readings(None, None)


@without_gpu
def test_a_library_that_cannot_tell_is_no_error():
    """NVIDIA's driver is not loaded here, so each call of its library is refused."""
    handle = pynvml.c_nvmlDevice_t()
    with pytest.raises(pynvml.NVMLError):
        pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
    assert nvml.sm_clock_mhz(handle) is None
    assert nvml.power_w(handle) is None


def test_what_is_metered_runs_long_enough_for_ten_readings():
    start = time.perf_counter()
    time_kernel(lambda: time.sleep(1e-4), on_gpu=False, metered=True, budget_s=0.001)
    assert time.perf_counter() - start >= METERED_S >= 10 * nvml.SAMPLE_EVERY_S


def test_the_thread_that_reads_ends_with_the_work_also_when_the_work_fails():
    alive = threading.active_count()
    with pytest.raises(ZeroDivisionError), Meter():
        1 / 0  # noqa: B018
    assert threading.active_count() == alive


@pytest.mark.gpu
@pytest.mark.skipif(not torch_sees_gpu(), reason="needs a CUDA GPU")
def test_a_busy_gpu_runs_within_the_clocks_and_the_power_that_its_driver_allows():
    import torch

    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    readings = time_kernel(lambda: a @ a, on_gpu=True, metered=True).readings
    with torchs_gpu() as gpu:
        fastest = pynvml.nvmlDeviceGetMaxClockInfo(gpu, pynvml.NVML_CLOCK_SM)
        limit_w = pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1e3
    assert readings.sm_clock_mhz is not None
    assert readings.power_w is not None
    assert 300 < readings.sm_clock_mhz <= fastest
    assert 0.2 * limit_w < readings.power_w < 1.2 * limit_w
