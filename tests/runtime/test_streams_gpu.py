"""The simulator of streams against CUDA: `python -m pytest tests/runtime/test_streams_gpu.py -m gpu`.

The same plans run on a GPU, with kernels whose blocks wait for a given time, and the record of what was measured is
written to `tests/runtime/results`. Without a GPU, the committed records are held to the simulator.
"""

import time
from dataclasses import asdict
from pathlib import Path
from statistics import median

import pytest
import torch
import triton
import triton.language as tl
from helpers.on_gpu import needs_gpu, read_records, write_record
from triton.language.extra.cuda import globaltimer

from mlsys.runtime.streams import Copy, Gpu, Kernel, Operation, Record, Wait, simulate

RESULTS = Path(__file__).parent / "results"
TOLERANCE = 0.15
"""How far a simulated time may be from the measured one, as a share of it."""
MIB = 2**20
WARPS = 32
"""Warps of a block of the waiting kernel; an SM holds two such blocks."""
RUNS = 7


def tiles(streams: int) -> list[Operation]:
    """Six tiles, each copied in, computed on and copied out, in so many streams."""
    plan: list[Operation] = []
    for tile in range(6):
        stream = f"s{tile % streams}"
        plan += [
            Copy(f"in {tile}", stream, 64 * MIB),
            Kernel(f"f {tile}", stream, 264, 1.5e-3, 0.5),
            Copy(f"out {tile}", stream, 32 * MIB, "to host"),
        ]
    return plan


PLANS: dict[str, list[Operation]] = {
    "tiles in one stream": tiles(1),
    "tiles in two streams": tiles(2),
    "tiles in three streams": tiles(3),
    "small kernels share the SMs": [Kernel(f"k{n}", f"s{n}", 60, 2e-3, 0.5) for n in range(4)],
    "large kernels take turns": [Kernel(f"k{n}", f"s{n}", 264, 1e-3, 0.5) for n in range(4)],
    "waves leave room": [Kernel("long", "a", 330, 1e-3, 0.5), Kernel("short", "b", 190, 1e-3, 0.5)],
    "both directions at once": [
        *(Copy(f"in {n}", "a", 64 * MIB) for n in range(3)),
        *(Copy(f"out {n}", "b", 64 * MIB, "to host") for n in range(3)),
    ],
    "an event between two streams": [
        Copy("in", "a", 64 * MIB),
        Record("there", "a"),
        Wait("there", "b"),
        Kernel("f", "b", 264, 2e-3, 0.5),
        Copy("next", "a", 64 * MIB),
    ],
    "small kernels, launched one by one": [Kernel(f"k{n}", "s", 8, 2e-6, 0.5) for n in range(400)],
}
"""Plans by name. Their kernels fill the 132 SMs of an H100 or H200 with 264 blocks."""


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(600)
def test_plans_take_on_a_gpu_what_the_simulator_says():
    cuda = _Cuda()
    rows = []
    for name, plan in PLANS.items():
        gpu = cuda.calibrate()  # each time anew: how fast a host launches depends on what else it does
        times = {"simulated_s": simulate(plan, gpu).total_s, "measured_s": cuda.seconds(plan)}
        rows.append({"plan": name, "calibration": asdict(gpu), **times})
    write_record(RESULTS, {"rows": rows})
    assert {row["plan"]: row for row in rows if not _agrees(row)} == {}


@pytest.mark.parametrize("record", read_records(RESULTS), ids=lambda record: record["device"])
def test_the_committed_record_agrees_with_the_present_simulator(record):
    assert {row["plan"] for row in record["rows"]} == set(PLANS), "run this file again on a GPU"
    for row in record["rows"]:
        simulated_s = simulate(PLANS[row["plan"]], Gpu(**row["calibration"])).total_s
        assert _agrees({**row, "simulated_s": simulated_s}), row


def test_the_plans_can_be_simulated_and_differ_as_they_should():
    gpu = Gpu(sms=132, link_bandwidth=55e9, issue_s=8e-6)
    times = {name: simulate(plan, gpu).total_s for name, plan in PLANS.items()}
    assert times["tiles in three streams"] < times["tiles in two streams"] < times["tiles in one stream"]
    assert times["small kernels share the SMs"] == pytest.approx(2e-3, rel=0.1)
    assert times["large kernels take turns"] == pytest.approx(4e-3, rel=0.1)
    assert times["waves leave room"] == pytest.approx(2e-3, rel=0.1)


def _agrees(row):
    return abs(row["simulated_s"] / row["measured_s"] - 1) <= TOLERANCE


@triton.jit
def wait(out_ptr, ns):
    """Keep an SM busy for a time, and store how long it was, so that the loop is not removed."""
    start = globaltimer()
    now = start
    while now - start < ns:
        now = globaltimer()
    tl.store(out_ptr + tl.program_id(0), now - start)


class _Cuda:
    """Runs plans with torch's streams and events; a kernel's blocks watch the GPU's clock until their time is over."""

    def __init__(self) -> None:
        self.sms = torch.cuda.get_device_properties(0).multi_processor_count
        self.out = torch.zeros(4096, dtype=torch.int64, device="cuda")
        self.buffers: dict[tuple[str, int, str], tuple] = {}

    def run(self, plan) -> None:
        """Issue a plan, every operation in its stream."""
        for one in plan:
            if one.stream not in self.streams:
                self.streams[one.stream] = torch.cuda.Stream()
            stream = self.streams[one.stream]
            with torch.cuda.stream(stream):
                if isinstance(one, Copy):
                    device, host = self.buffer(one)
                    source, target = (host, device) if one.direction == "to device" else (device, host)
                    target.copy_(source, non_blocking=True)
                elif isinstance(one, Kernel):
                    wait[(one.blocks,)](self.out, round(one.block_s * 1e9), num_warps=WARPS)
                elif isinstance(one, Record):
                    self.events[one.event] = stream.record_event()
                else:
                    stream.wait_event(self.events[one.event])

    def buffer(self, copy):
        """The pinned and the device buffer of a copy, made once."""
        key = (copy.name, copy.bytes, copy.direction)
        if key not in self.buffers:
            new = {"dtype": torch.uint8}
            self.buffers[key] = (
                torch.zeros(copy.bytes, device="cuda", **new),
                torch.zeros(copy.bytes, pin_memory=True, **new),
            )
        return self.buffers[key]

    def seconds(self, plan) -> float:
        """Median time from the first operation issued until the device is idle."""
        self.streams, self.events = {}, {}
        found = []
        for _ in range(RUNS + 2):
            torch.cuda.synchronize()
            start = time.perf_counter()
            self.run(plan)
            torch.cuda.synchronize()
            found.append(time.perf_counter() - start)
        return median(found[2:])

    def calibrate(self) -> Gpu:
        """Measure what the simulator is told, the link and the host, by plans other than those that are compared."""
        one, two = (self.seconds([Copy("c", "s", size)]) for size in (128 * MIB, 256 * MIB))
        bandwidth = 128 * MIB / (two - one)
        few, many = (self.seconds([Kernel("k", "s", 1, 0.0, 0.5)] * count) for count in (100, 500))
        return Gpu(
            sms=self.sms,
            link_bandwidth=bandwidth,
            copy_latency_s=max(0.0, one - 128 * MIB / bandwidth),
            issue_s=(many - few) / 400,
        )
