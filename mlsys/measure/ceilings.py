"""Ceilings of the device at hand: the rates of its memory, arithmetic, launches and host link, as measured.

A data sheet gives the rate that no program exceeds; these are rates that a program reached. A point may be held
against one only if both were measured with different programs: `memory_roof` and `product_roof` choose so.
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
            "fill" (0:1); and, on a GPU, "triad" (2:1, by a kernel of our own) and "cached copy" (1:1 between arrays
            that stay in the L2).
        fma: FLOP/s of chains of multiply-adds in registers, by precision: the vector units without any memory. Empty
            on a CPU, where numpy keeps nothing in registers; there `matmul` is the nearest.
        mma: FLOP/s of chains of products of tiles that stay on the chip, by precision: the tensor cores without any
            memory. Empty where Triton does not reach tensor cores: on a CPU, and on a GPU before Ampere.
        launch_latency: time per launch of the smallest work: "back to back" (the host queues one after the other),
            "launch and wait" (the host waits for each) and, on a GPU, "graph" (replayed without the host).
        host_link: bytes per second between host and GPU, keyed "pinned to device", "pageable to device",
            "pinned to host", "pageable to host", and "pinned both ways". Empty on a CPU.
    """

    device: Device
    copy_bandwidth: Quantity
    matmul: Mapping[str, Quantity]
    bandwidths: Mapping[str, Quantity] = field(default_factory=dict)
    fma: Mapping[str, Quantity] = field(default_factory=dict)
    launch_latency: Mapping[str, Quantity] = field(default_factory=dict)
    host_link: Mapping[str, Quantity] = field(default_factory=dict)
    mma: Mapping[str, Quantity] = field(default_factory=dict)

    @property
    def roof_mix(self) -> str:
        """Mix whose bandwidth a vector addition is held against: "triad", or "add" where no triad was measured."""
        return "triad" if "triad" in self.bandwidths else "add"

    @property
    def memory_roof(self) -> Quantity:
        """Bandwidth that a vector addition is held against; no vector addition set it, if `roof_mix` is "triad"."""
        return self.bandwidth(self.roof_mix)

    def product_roof(self, precision: str) -> Quantity:
        """Return the FLOP/s that matrix products are held against, which no library's product set.

        It is the rate of the chain of tiles, and of the chain of multiply-adds for fp32. Where neither was measured, it
        is the vendor library's best product, and then a row of that library says only how well it repeats.

        Raises:
            UnknownName: if nothing was measured at that precision; it lists what was.
        """
        known = {**self.matmul, **self.fma, **self.mma}
        if precision not in known:
            raise UnknownName.of(f"precision measured on {self.device.name}", precision, known)
        return known[precision]

    def bandwidth(self, mix: str) -> Quantity:
        """Return the memory bandwidth of a mix of reads and writes: "copy", or one of `bandwidths`.

        Raises:
            UnknownName: if that mix was not measured; it lists those that were.
        """
        known = {"copy": self.copy_bandwidth, **self.bandwidths}
        if mix not in known:
            raise UnknownName.of(f"mix of reads and writes measured on {self.device.name}", mix, known)
        return known[mix]


def measure_ceilings(device: Device | None = None, *, budget_s: float = 0.25) -> Ceilings:
    """Measure the device at hand; needs about ten seconds, and twice that on a GPU.

    Args:
        device: from `detect_device()`; pass `cpu_device()` to measure the CPU of a machine that has a GPU.
        budget_s: most seconds of timed calls per ceiling, beyond the five laps that each takes.
    """
    device = device or detect_device()
    if device.kind == "gpu":
        from mlsys.measure import gpu_ceilings

        bandwidths = gpu_ceilings.bandwidths(device, budget_s)
        roofs = gpu_ceilings.roof_rates(device, budget_s)
        if "stream triad" in roofs:
            bandwidths["triad"] = roofs["stream triad"]
        return Ceilings(
            device,
            bandwidths.pop("copy"),
            gpu_ceilings.matmul_rates(device, budget_s),
            bandwidths,
            _named(roofs, "fma chain "),
            gpu_ceilings.launch_latencies(budget_s),
            gpu_ceilings.host_link_rates(budget_s),
            _named(roofs, "mma chain "),
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


def _named(rates: Mapping[str, Quantity], start: str) -> dict[str, Quantity]:
    """Select the rates whose names begin with `start`, by the rest of their names."""
    return {name.removeprefix(start): rate for name, rate in rates.items() if name.startswith(start)}
