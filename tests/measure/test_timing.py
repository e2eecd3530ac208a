import time
from contextlib import contextmanager

import numpy as np
import pytest

from mlsys.errors import InvalidValue
from mlsys.measure import clock, timing
from mlsys.measure.clock import CpuClock, GpuClock
from mlsys.measure.timing import Timing, rotate, time_kernel, time_pair

pytestmark = pytest.mark.alone


def wait(seconds):
    return lambda: time.sleep(seconds)


def test_a_sleep_is_timed_as_long_as_it_sleeps():
    found = time_kernel(wait(0.01), on_gpu=False, budget_s=0.05)
    assert 0.0099 < found.p20_s <= found.median_s <= found.p80_s < 0.1
    assert found.low_s <= found.median_s <= found.high_s
    assert found.laps >= 5


def test_timing_stops_when_the_interval_is_narrow_and_at_the_budget_otherwise(monkeypatch):
    now = 0.0
    durations = iter(())

    def work():
        nonlocal now
        now += next(durations)

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    durations = iter(lambda: 0.01, None)  # always the same
    assert time_kernel(work, on_gpu=False, budget_s=10).laps == 5
    alternating = np.tile([0.01, 0.03], 10_000)  # no median of these is known to 0.5%
    durations = iter(alternating)
    found = time_kernel(work, on_gpu=False, budget_s=10)
    assert found.laps * 0.02 == pytest.approx(10, rel=0.05)


def test_the_interval_holds_the_median_about_as_often_as_it_says():
    draws = np.random.default_rng(1).lognormal(size=(2000, 25))  # its median is 1
    held = [found.low_s <= 1 <= found.high_s for found in map(Timing.of, draws.tolist())]
    assert 0.93 < np.mean(held) < 0.99


@pytest.mark.parametrize("times", [[], [1.0, 0.0]])
def test_no_times_and_impossible_times_are_an_error_and_not_a_zero(times):
    with pytest.raises(InvalidValue, match="above zero"):
        Timing.of(times)


def test_rotated_inputs_come_in_turn():
    seen = []
    call = rotate(seen.append, [(1,), (2,), (3,)])
    for _ in range(7):
        call()
    assert seen == [1, 2, 3, 1, 2, 3, 1]
    with pytest.raises(InvalidValue, match="at least one"):
        rotate(seen.append, [])


def test_a_cold_cache_makes_reading_slower(monkeypatch):
    monkeypatch.setattr(clock, "cpu_cache_bytes", lambda: 2**27)
    data = np.ones(2**17)  # 1 MiB: it stays in the cache if nothing pushes it out
    warm = time_kernel(data.sum, on_gpu=False, budget_s=0.3)
    cold = time_kernel(data.sum, on_gpu=False, cold=True, budget_s=0.3)
    assert cold.median_s > warm.median_s


def test_a_graph_counts_its_calls():
    one_by_one = time_kernel(wait(1e-3), on_gpu=False)
    together = time_kernel(wait(1e-3), on_gpu=False, graph=True)
    assert together.median_s == pytest.approx(one_by_one.median_s, rel=0.3)


def test_work_that_takes_twice_as_long_has_half_the_speed():
    pair = time_pair(wait(2e-3), wait(1e-3), on_gpu=False, batch_s=5e-3)
    assert pair.low <= pair.ratio <= pair.high
    assert pair.ratio == pytest.approx(0.5, rel=0.25)
    assert pair.candidate_s == pytest.approx(2e-3, rel=0.5)


def test_a_steady_drift_cancels(monkeypatch):
    now = 0.0

    def slower_each_time():
        nonlocal now
        now += 1e-3 * (1 + now)  # every call takes longer than the one before

    monkeypatch.setattr(timing, "WARMUP_S", 0)
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    pair = time_pair(slower_each_time, slower_each_time, on_gpu=False, batch_s=1e-2)
    assert pair.ratio == pytest.approx(1, abs=2e-3)


def test_compilation_in_the_first_call_does_not_count():
    calls = []

    def compiles_once():
        time.sleep(0.1 if not calls else 1e-4)
        calls.append(1)

    assert time_pair(compiles_once, wait(1e-4), on_gpu=False, batch_s=2e-3).candidate_s < 5e-3


def test_two_rounds_give_no_interval():
    with pytest.raises(InvalidValue, match="3 or more"):
        time_pair(wait(0), wait(0), rounds=2, on_gpu=False)


class SimulatedGpu:
    """A GPU that does what is queued in order, on which an event notes the time when it is reached."""

    def __init__(self, monkeypatch):
        torch = pytest.importorskip("torch")
        self.now_ms = 0.0
        self.launch_ms = 0.0
        self.flushed = 0
        self.graphs = []
        gpu = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at_ms = gpu.now_ms

            def elapsed_time(self, end):
                return end.at_ms - self.at_ms

        class Graph:
            def replay(self):
                gpu.now_ms += self.length_ms

        class Stream:
            def wait_stream(self, other):
                pass

        class Other:
            def zero_(self):
                gpu.now_ms += 50
                gpu.flushed += 1

        @contextmanager
        def capture(graph):
            start, launch_ms, gpu.launch_ms = gpu.now_ms, gpu.launch_ms, 0.0
            yield
            graph.length_ms, gpu.now_ms, gpu.launch_ms = gpu.now_ms - start, start, launch_ms
            gpu.graphs.append(graph)

        @contextmanager
        def on(stream):
            yield

        fakes = {"Event": Event, "CUDAGraph": Graph, "Stream": Stream, "graph": capture, "stream": on}
        fakes |= {"current_stream": Stream, "synchronize": lambda: None, "current_device": lambda: 0}
        fakes |= {"get_device_properties": lambda device: type("Properties", (), {"L2_cache_size": 2**20})}
        for name, fake in fakes.items():
            monkeypatch.setattr(torch.cuda, name, fake)
        monkeypatch.setattr(torch, "empty", lambda *shape, **how: Other())

    def kernel(self):
        self.now_ms += self.launch_ms + 0.25


def test_the_gpu_clock_gives_seconds_per_call(monkeypatch):
    gpu = SimulatedGpu(monkeypatch)
    assert GpuClock().laps(gpu.kernel, calls=8, laps=3) == pytest.approx([0.25e-3] * 3)
    assert GpuClock().cold_laps(gpu.kernel, laps=4) == pytest.approx([0.25e-3] * 4)
    assert gpu.flushed == 4
    assert GpuClock().laps(GpuClock().graph(gpu.kernel, 10), calls=2, laps=1) == pytest.approx([2.5e-3])


@pytest.mark.parametrize("how", [{}, {"cold": True}, {"graph": True}, {"cold": True, "graph": True}])
def test_a_gpu_kernel_takes_as_long_however_it_is_timed(how, monkeypatch):
    gpu = SimulatedGpu(monkeypatch)
    monkeypatch.setattr(timing, "WARMUP_S", 0)
    assert time_kernel(gpu.kernel, on_gpu=True, **how).median_s == pytest.approx(0.25e-3)
    pair = time_pair(gpu.kernel, lambda: (gpu.kernel(), gpu.kernel()), on_gpu=True, **how)
    assert (pair.low, pair.ratio, pair.high) == pytest.approx((2, 2, 2))


def test_a_lap_of_a_graph_is_long_where_a_launch_takes_longer_than_the_kernel(monkeypatch):
    gpu = SimulatedGpu(monkeypatch)
    gpu.launch_ms = 10
    monkeypatch.setattr(timing, "WARMUP_S", 0)
    assert time_kernel(gpu.kernel, on_gpu=True, graph=True).median_s == pytest.approx(0.25e-3)
    assert gpu.graphs[-1].length_ms == pytest.approx(1e3 * timing.LAP_S)


def test_a_cpu_cache_is_read_from_the_system(tmp_path, monkeypatch):
    for index, size in enumerate(("32K", "1024K", "32768K")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    monkeypatch.setattr(clock, "CPU_CACHES", tmp_path)
    assert clock.cpu_cache_bytes() == 32 * 2**20
    assert CpuClock().cold_laps(lambda: None, 1)[0] > 0
