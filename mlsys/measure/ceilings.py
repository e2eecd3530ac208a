"""Ceilings of the device at hand: the rates that a program reaches, of memory, arithmetic, launches and the host link.

A data sheet gives the rate that no program exceeds; these are measured, and a measured roofline is drawn from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlsys.errors import UnknownName
from mlsys.measure.device import Device, detect_device
from mlsys.units import Quantity


@dataclass(frozen=True)
class Ceilings:
    """Measured rates of one device.

    Attributes:
        device: what was measured.
        copy_bandwidth: bytes read plus bytes written per second when an array is copied, far larger than any cache.
        matmul: FLOP/s of the vendor library's matrix product by precision, the best of several sizes.
        bandwidths: the same as `copy_bandwidth` for other mixes of reads and writes: "read" (1:0), "add" (2:1),
            "fill" (0:1); and, on a GPU, "cached copy": 1:1 between arrays that stay in the L2.
        fma: FLOP/s of chains of multiply-adds in registers, by precision: the vector units without any memory. Empty
            on a CPU, where numpy keeps nothing in registers; there `matmul` is the nearest.
        launch_latency: time per launch of the smallest work: "back to back" (the host queues one after the other),
            "launch and wait" (the host waits for each) and, on a GPU, "graph" (replayed without the host).
        host_link: bytes per second between host and GPU, keyed "pinned to device", "pageable to device",
            "pinned to host", "pageable to host". Empty on a CPU.
    """

    device: Device
    copy_bandwidth: Quantity
    matmul: Mapping[str, Quantity]
    bandwidths: Mapping[str, Quantity] = field(default_factory=dict)
    fma: Mapping[str, Quantity] = field(default_factory=dict)
    launch_latency: Mapping[str, Quantity] = field(default_factory=dict)
    host_link: Mapping[str, Quantity] = field(default_factory=dict)

    def bandwidth(self, mix: str) -> Quantity:
        """Memory bandwidth of a mix of reads and writes: "copy", or one of `bandwidths`.

        Raises:
            UnknownName: if that mix was not measured; it lists those that were.
        """
        known = {"copy": self.copy_bandwidth, **self.bandwidths}
        if mix not in known:
            raise UnknownName.of(f"mix of reads and writes measured on {self.device.name}", mix, known)
        return known[mix]


def measure_ceilings(device: Device | None = None, *, budget_s: float = 0.25) -> Ceilings:
    """Measure the device at hand; takes a few seconds.

    Args:
        device: from `detect_device()`; pass `cpu_device()` to measure the CPU of a machine that has a GPU.
        budget_s: most seconds of timed calls per ceiling, beyond the five laps that each takes.
    """
    device = device or detect_device()
    if device.kind == "gpu":
        from mlsys.measure import gpu_ceilings

        bandwidths = gpu_ceilings.bandwidths(device, budget_s)
        return Ceilings(
            device,
            bandwidths.pop("copy"),
            gpu_ceilings.matmul_rates(device, budget_s),
            bandwidths,
            gpu_ceilings.fma_rates(device, budget_s),
            gpu_ceilings.launch_latencies(budget_s),
            gpu_ceilings.host_link_rates(budget_s),
        )
    from mlsys.measure import cpu_ceilings

    bandwidths = cpu_ceilings.bandwidths(budget_s)
    return Ceilings(
        device,
        bandwidths.pop("copy"),
        cpu_ceilings.matmul_rates(budget_s),
        bandwidths,
        launch_latency=cpu_ceilings.call_latency(budget_s),
    )
