"""The two clocks behind one interface: CUDA events for work on a GPU, the monotonic clock for work on a CPU."""

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from mlsys.measure.device import torch_sees_gpu

Work = Callable[[], object]


class Clock(Protocol):
    """Times work in laps; every time is in seconds per call."""

    def laps(self, work: Work, calls: int, laps: int) -> list[float]:
        """Time `laps` laps of `calls` calls each, one call straight after the other."""

    def cold_laps(self, work: Work, laps: int) -> list[float]:
        """Time `laps` single calls, each after the caches were filled with something else."""

    def graph(self, work: Work, calls: int) -> Work:
        """Make one callable of `calls` calls of `work`, without a launch by the host for each where that exists."""


def clock_of(on_gpu: bool | None = None) -> Clock:
    """Return the GPU's clock or the CPU's; None means the GPU's wherever torch sees one."""
    return GpuClock() if (torch_sees_gpu() if on_gpu is None else on_gpu) else CpuClock()


class CpuClock:
    """The monotonic clock, read around each lap."""

    def laps(self, work: Work, calls: int, laps: int) -> list[float]:
        """See `Clock`."""
        times = []
        for _ in range(laps):
            start = time.perf_counter()
            for _ in range(calls):
                work()
            times.append((time.perf_counter() - start) / calls)
        return times

    def cold_laps(self, work: Work, laps: int) -> list[float]:
        """See `Clock`; what fills the caches is twice as large as the last-level cache."""
        import numpy as np

        other = np.empty(2 * cpu_cache_bytes(), dtype=np.uint8)
        times = []
        for _ in range(laps):
            other.fill(0)
            times += self.laps(work, 1, 1)
        return times

    def graph(self, work: Work, calls: int) -> Work:
        """See `Clock`; a CPU has no graphs, so the calls run one by one."""

        def run() -> None:
            for _ in range(calls):
                work()

        return run


class GpuClock:
    """CUDA events, queued between the calls: the GPU notes the time when it comes to them."""

    def laps(self, work: Work, calls: int, laps: int) -> list[float]:
        """See `Clock`."""
        import torch

        events = [torch.cuda.Event(enable_timing=True) for _ in range(laps + 1)]
        torch.cuda.synchronize()
        work()  # keeps the GPU busy until the first event and the calls behind it are queued
        events[0].record()
        for event in events[1:]:
            for _ in range(calls):
                work()
            event.record()
        torch.cuda.synchronize()
        return [a.elapsed_time(b) * 1e-3 / calls for a, b in pairwise(events)]

    def cold_laps(self, work: Work, laps: int) -> list[float]:
        """See `Clock`; what fills the L2 is twice as large, and hides the launch. Adds the 1 to 2 us of an event."""
        import torch

        l2_bytes = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        other = torch.empty(2 * l2_bytes, dtype=torch.uint8, device="cuda")
        spans = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(laps)]
        torch.cuda.synchronize()
        for start, end in spans:
            other.zero_()
            start.record()
            work()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e-3 for start, end in spans]

    def graph(self, work: Work, calls: int) -> Work:
        """See `Clock`; one CUDA graph holds the calls, so `work` must not wait for the GPU or copy pageable memory."""
        import torch

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries set themselves up on a stream's first call, which no graph may hold
            work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                work()
        return graph.replay


def cpu_cache_bytes() -> int:
    """Return the size of the largest cache that Linux lists for the first core; 64 MiB where it lists none."""
    kib = [int(file.read_text().strip().removesuffix("K")) for file in CPU_CACHES.glob("index*/size")]
    return 1024 * max(kib, default=64 * 1024)


CPU_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
