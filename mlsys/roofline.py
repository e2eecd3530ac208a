"""The roofline model: the rate an operation can reach is the lower of what the chip computes and what memory feeds.

- attainable = min(peak, bandwidth x arithmetic intensity)
- ridge point = peak / bandwidth

Source: Williams, Waterman and Patterson, Roofline: an insightful visual performance model for multicore
architectures, Communications of the ACM 52(4), 2009.

>>> from mlsys import Hardware, ops
>>> roofline = Roofline.of(Hardware.Cloud.A100, "fp16")
>>> dense = ops.linear(batch=32, d_in=2048, d_out=2048, dtype="fp16")
>>> roofline.bound(dense), round(roofline.attainable(dense).m_as("TFLOP/s"))
('memory', 63)
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlsys.errors import UnknownName
from mlsys.hardware import Accelerator, UnknownPrecision
from mlsys.measure.ceilings import Ceilings
from mlsys.ops import Op
from mlsys.units import Quantity, ureg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VECTOR_PRECISION = "fp32"
"""Frameworks compute element-wise work, softmax and normalizations in fp32, also on half-precision tensors."""


@dataclass(frozen=True)
class Roofline:
    """A slanted roof, the memory's bandwidth, and a flat one for each engine that the chip has.

    Attributes:
        name: chip or device, with its precision.
        bandwidth_per_s: bytes per second.
        peaks_per_s: FLOP per second by engine, "tensor" or "vector".
        main: the engine that the roofline was asked for.
        basis: where the numbers come from: "data sheet" or "measured".
    """

    name: str
    bandwidth_per_s: float
    peaks_per_s: Mapping[str, float]
    main: str
    basis: str

    @classmethod
    def of(cls, acc: Accelerator, precision: str, engine: str | None = None) -> "Roofline":
        """The roofline of a chip's data sheet.

        Besides the roof of `precision`, it carries the fp32 roof of the vector units, if the chip's documents give
        one: an operation without a matrix product runs under that roof, whatever the tensor cores could do.

        Raises:
            UnknownPrecision: if the chip does not have the precision on that engine.
        """
        entry = acc.peak_entry(precision, engine)
        peaks = {entry.engine: entry.rate.value.m_as("flop/s")}
        if entry.engine != "vector":
            # Where no document gives a vector roof, `attainable` refuses vector work with this chip's name.
            with suppress(UnknownPrecision):
                peaks["vector"] = acc.peak(VECTOR_PRECISION, engine="vector").m_as("flop/s")
        return cls(f"{acc.name}, {precision}", acc.memory_bw.m_as("byte/s"), peaks, entry.engine, "data sheet")

    @classmethod
    def measured(cls, ceilings: Ceilings, precision: str = "fp32") -> "Roofline":
        """The roofline of a device as `mlsys.measure.measure_ceilings` found it.

        The slope is `Ceilings.memory_roof` and the flat parts are `Ceilings.product_roof`, so that no kernel is held
        against itself.

        Raises:
            UnknownName: if nothing was measured at that precision; it lists what was.
        """
        engine = "vector" if precision in ("fp32", "fp64") else "tensor"
        peaks = {engine: ceilings.product_roof(precision).m_as("flop/s")}
        with suppress(UnknownName):  # without a vector roof, `attainable` refuses vector work with this device's name
            peaks.setdefault("vector", ceilings.product_roof("fp32").m_as("flop/s"))
        name = f"{ceilings.device.name}, {precision}"
        return cls(name, ceilings.memory_roof.m_as("byte/s"), peaks, engine, "measured")

    @property
    def peak(self) -> Quantity:
        """The flat roof of the precision asked for."""
        return ureg.Quantity(self.peaks_per_s[self.main], "flop/s").to("TFLOP/s")

    @property
    def bandwidth(self) -> Quantity:
        """Bytes per second of the device memory."""
        return ureg.Quantity(self.bandwidth_per_s, "byte/s").to("GB/s")

    def ridge(self, engine: str | None = None) -> Quantity:
        """Arithmetic intensity where the roofs meet: peak / bandwidth, in FLOP/byte."""
        return ureg.Quantity(self._peak_for(engine or self.main) / self.bandwidth_per_s, "flop/byte")

    def bound(self, op: Op) -> str:
        """Which roof limits `op`: "memory" or "compute"."""
        return "memory" if op.intensity < self.ridge(op.engine) else "compute"

    def attainable(self, op: Op) -> Quantity:
        """The rate that the lower roof allows: `min(peak, bandwidth x intensity)`."""
        return ureg.Quantity(op.flop_count / self._seconds(op), "flop/s").to("TFLOP/s")

    def time(self, work: Op | Iterable[Op]) -> Quantity:
        """The least time of an op, `max(flops / peak, bytes / bandwidth)`, or of several in turn, their sum."""
        ops = [work] if isinstance(work, Op) else work
        return ureg.Quantity(sum(self._seconds(op) for op in ops), "second")

    def _seconds(self, op: Op) -> float:
        moved = op.read_count + op.write_count
        return max(op.flop_count / self._peak_for(op.engine), moved / self.bandwidth_per_s)

    def _peak_for(self, engine: str) -> float:
        """Matrix work may run on vector units, never the other way round."""
        if engine in self.peaks_per_s:
            return self.peaks_per_s[engine]
        if engine == "tensor":
            return self.peaks_per_s["vector"]
        raise UnknownPrecision(f"{self.name}: no vector roof is known, so element-wise work has no flat roof here")

    def plot(self, ops: Sequence[Op] = (), ax: "Axes | None" = None) -> "Axes":
        """Draw the roofs and one point per op at its ideal intensity, on log axes."""
        return _draw(self, ops, ax)


def _draw(roofline: Roofline, ops: Sequence[Op], ax: "Axes | None") -> "Axes":
    """Draw `roofline` with `ops` into `ax`, or into a new figure, and return the axes."""
    import numpy as np

    from mlsys import viz

    if ax is None:
        _, ax, _, _ = viz.setup_plot()
    ridges = [peak / roofline.bandwidth_per_s for peak in roofline.peaks_per_s.values()]
    shown = [*ridges, *(_intensity(op) for op in ops)]
    low, high = min(shown) / 4, max(shown) * 4
    intensity = np.geomspace(low, high, 200)
    roof_name = "peak" if roofline.basis == "data sheet" else "ceiling"
    for engine, peak in roofline.peaks_per_s.items():
        roof = np.minimum(peak, roofline.bandwidth_per_s * intensity) / 1e12
        style = "-" if engine == roofline.main else "--"
        ax.plot(intensity, roof, style, color=viz.COLORS["primary"], zorder=2)
        ax.annotate(
            f"{engine} {roof_name} {peak / 1e12:.3g} TFLOP/s",
            (high, peak / 1e12), xytext=(-2, 4), textcoords="offset points", ha="right", va="bottom", fontsize=9,
        )  # fmt: skip
    for number, op in enumerate(ops):
        rate = op.flop_count / roofline.time(op).m_as("second") / 1e12
        color = viz.CYCLE[number % len(viz.CYCLE)]
        ax.plot(_intensity(op), rate, "o", markersize=8, color=color, zorder=3, label=op.name)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(top=2.5 * max(roofline.peaks_per_s.values()) / 1e12)
    ax.set_xlabel("arithmetic intensity (FLOP/byte)")
    ax.set_ylabel("attainable TFLOP/s")
    ax.set_title(f"{roofline.name} ({roofline.basis}, {roofline.bandwidth_per_s / 1e9:,.0f} GB/s)", fontsize=11)
    if ops:
        ax.legend(loc="lower right", fontsize=9)
    return ax


def _intensity(op: Op) -> float:
    return op.flop_count / (op.read_count + op.write_count)
