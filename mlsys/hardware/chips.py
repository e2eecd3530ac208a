"""Accelerators by name, with peaks keyed by precision, engine and sparsity, each number with its source.

>>> from mlsys import Hardware
>>> h100 = Hardware.get("h100-sxm")
>>> h100.peak("fp16").m_as("TFLOP/s")
989.4
>>> h100.peak("fp32", engine="vector").m_as("TFLOP/s")
67
>>> round(h100.ridge_point("fp16").m_as("flop/byte"))
295
>>> Hardware.get("t4").peak("bf16")
Traceback (most recent call last):
...
mlsys.hardware.chips.UnknownPrecision: NVIDIA T4 has no dense bf16; it has fp16 (tensor), int8 (tensor), ...
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from mlsys.core.sourced import Catalog, DataFolder, Entry, Number, Sourced
from mlsys.errors import InvalidValue, UnknownName, UserError
from mlsys.units import Quantity, flop, ureg

GPUS_SINCE_2012 = {
    "k20x": "fp32",
    "p100-sxm2": "fp16",
    "v100-sxm2": "fp16",
    "a100-80gb-sxm": "fp16",
    "h100-sxm": "fp16",
    "b200": "fp16",
}
"""A large GPU of each generation, by the number format in which its peak is counted; the K20X has none below FP32."""


class UnknownPrecision(UserError, LookupError):
    """A precision, engine or sparsity that the chip does not have, or that its documents do not give."""


class UnknownField(UserError, LookupError):
    """A property that no document of the chip gives."""


@dataclass(frozen=True)
class Peak:
    """A peak rate: `engine` is "tensor" or "vector", `sparse` marks 2:4 sparsity."""

    precision: str
    engine: str
    sparse: bool
    rate: Sourced


@dataclass(frozen=True)
class Accelerator:
    """One chip in one form factor. Properties that its documents do not give raise `UnknownField`."""

    id: str
    name: str
    vendor: str
    peaks: tuple[Peak, ...]
    fields: Mapping[str, Sourced]

    def peak(
        self, precision: str, engine: str | None = None, sparse: bool = False, *, unit: str | None = None
    ) -> Quantity:
        """Return the peak rate for a precision, in FLOP/s (integer operations count alike).

        Args:
            precision: such as "fp32", "tf32", "bf16", "fp16", "fp8" or "int8".
            engine: "tensor" or "vector"; without it, the fastest engine that has the precision.
            sparse: the rate with 2:4 structured sparsity instead of the dense one.
            unit: another name of `engine`, which notebooks outside the package use.

        Raises:
            UnknownPrecision: lists what the chip has; there is no fallback to another precision.
            InvalidValue: if `engine` and `unit` are both given.
        """
        if engine and unit:
            raise InvalidValue(f"engine is {engine!r} and unit is {unit!r}, which mean the same: give engine alone")
        return self.peak_entry(precision, engine or unit, sparse).rate.value

    def peak_entry(self, precision: str, engine: str | None = None, sparse: bool = False) -> Peak:
        """Return the same as `peak`, with engine and source."""
        found = [p for p in self.peaks if (p.precision, p.sparse) == (precision, sparse) and engine in (None, p.engine)]
        if not found:
            has = ", ".join(f"{p.precision} ({p.engine})" for p in self.peaks if p.sparse == sparse) or "none"
            kind = "sparse" if sparse else "dense"
            asked = f"{precision} on a {engine} engine" if engine else precision
            raise UnknownPrecision(f"{self.name} has no {kind} {asked}; it has {has}")
        return max(found, key=lambda p: p.rate.value)

    def field(self, name: str) -> Sourced:
        """Return a property with its source, such as `field("memory_bandwidth")`.

        Raises:
            UnknownField: lists the properties that are known for this chip.
        """
        if name not in self.fields:
            raise UnknownField(f"{self.name}: no sourced {name!r}; known: {', '.join(sorted(self.fields))}")
        return self.fields[name]

    def ridge_point(self, precision: str | None = None, engine: str | None = None, sparse: bool = False) -> Quantity:
        """Return the intensity at which compute and memory take equally long: peak / bandwidth, in FLOP/byte.

        Args:
            precision: of the peak; without it, `matrix_precision`.
            engine: of the peak.
            sparse: of the peak.

        Raises:
            UnknownPrecision: lists what the chip has; there is no fallback to another precision.

        >>> round(Hardware.Cloud.TPUv4.ridge_point())
        <Quantity(229, 'flop / byte')>
        """
        rate = self.peak(precision or self.matrix_precision, engine, sparse)
        return ureg.Quantity(rate.m_as("flop/s") / self.memory_bw.m_as("byte/s"), "flop/byte")

    def peak_from_clock(self, engine: str = "tensor") -> Quantity:
        """Compute the peak from the parts of the chip: units x FLOP per unit and clock x clock.

        For "tensor" it is the dense peak of the precision that `field("tensor_flop_per_clock").condition` names; for
        "vector" it is the fp32 peak, each lane doing one multiply-add per clock.

        Raises:
            UnknownField: if the documents do not give the parts.
            UnknownName: if the engine is neither "tensor" nor "vector".

        >>> round(Hardware.get("h100-sxm").peak_from_clock().to("TFLOP/s"))
        <Quantity(989, 'teraflop / second')>
        """
        if engine == "tensor":
            per_clock = self.field("tensor_units").value * self.field("tensor_flop_per_clock").value
            clock = self.field("tensor_clock").value
        elif engine == "vector":
            per_clock = self.field("vector_lanes").value * (2 * flop)
            clock = self.field("boost_clock").value
        else:
            raise UnknownName.of("engine", engine, ("tensor", "vector"))
        return ureg.Quantity(per_clock.m_as("FLOP") * clock.m_as("hertz"), "FLOP/s")

    def special_rate(self) -> Quantity:
        """Compute the rate of special functions, such as 2**x or 1/sqrt(x): SMs x results per SM and clock x clock.

        The clock is that of the tensor cores, since the two are compared where they work side by side. A special
        function counts as one operation.

        Raises:
            UnknownField: if the documents do not give the parts.

        >>> round(Hardware.get("h100-sxm").special_rate().to("TFLOP/s"), 1)
        <Quantity(3.9, 'teraflop / second')>
        """
        per_clock = self.field("special_per_clock").value.m_as("") * self.field("sm_count").value.m_as("")
        return ureg.Quantity(per_clock * self.field("tensor_clock").value.m_as("hertz"), "FLOP/s")

    @property
    def memory_bw(self) -> Quantity:
        """Bandwidth of the device memory."""
        return self.field("memory_bandwidth").value

    @property
    def memory_capacity(self) -> Quantity:
        """Size of the device memory."""
        return self.field("memory_capacity").value

    @property
    def tdp(self) -> Quantity:
        """Thermal design power."""
        return self.field("tdp").value

    @property
    def year(self) -> int:
        """The year in which the chip was announced.

        >>> Hardware.get("v100-sxm2").year
        2017
        """
        return int(self.field("announced").value.m_as("dimensionless"))

    @property
    def matrix_precision(self) -> str:
        """The 16-bit format of the chip's matrix units: "fp16" where it has it, else "bf16".

        Raises:
            UnknownPrecision: it has neither.

        >>> Hardware.Cloud.H100.matrix_precision, Hardware.Cloud.TPUv4.matrix_precision
        ('fp16', 'bf16')
        """
        dense = {peak.precision for peak in self.peaks if not peak.sparse}
        return "bf16" if "bf16" in dense and "fp16" not in dense else self.peak_entry("fp16").precision

    @property
    def peak_flops(self) -> Quantity:
        """Dense peak in `matrix_precision`, the number that data sheets print largest once sparsity is left out.

        >>> Hardware.Cloud.TPUv4.peak_flops.to("TFLOP/s")
        <Quantity(275, 'teraflop / second')>
        """
        return self.peak(self.matrix_precision)

    @property
    def peak_flops_fp32(self) -> Quantity:
        """Dense fp32 peak of the vector units, where no tensor core helps."""
        return self.peak("fp32", engine="vector")

    @property
    def tf32_flops(self) -> Quantity:
        """Dense tf32 peak of the tensor units."""
        return self.peak("tf32")


class _PeakEntry(Number, frozen=True, kw_only=True):
    precision: str
    engine: Literal["tensor", "vector"]
    sparse: bool = False


class _ChipEntry(Entry, frozen=True, kw_only=True):
    """A file of `data/chips`; the properties are in the order in which pages show them."""

    name: str
    vendor: str
    same_chip_as: str = ""
    peak: tuple[_PeakEntry, ...] = ()
    memory_bandwidth: Number | None = None
    memory_capacity: Number | None = None
    neural_engine_rate: Number | None = None
    rate: Number | None = None
    tdp: Number | None = None
    clock: Number | None = None
    sm_count: Number | None = None
    compute_units: Number | None = None
    power_max: Number | None = None
    boost_clock: Number | None = None
    array_dim: Number | None = None
    tensor_clock: Number | None = None
    tensor_units: Number | None = None
    tensor_flop_per_clock: Number | None = None
    on_chip_memory: Number | None = None
    vector_lanes: Number | None = None
    special_per_clock: Number | None = None
    last_level_cache: Number | None = None
    shared_memory_per_block: Number | None = None
    shared_memory_per_sm: Number | None = None
    registers_per_sm: Number | None = None
    threads_per_sm: Number | None = None
    blocks_per_sm: Number | None = None
    threads_per_block: Number | None = None
    registers_per_thread: Number | None = None
    sm_partitions: Number | None = None
    register_allocation: Number | None = None
    shared_memory_allocation: Number | None = None
    shared_memory_reserved: Number | None = None
    l1_capacity_per_sm: Number | None = None
    l2_capacity: Number | None = None
    transistors: Number | None = None
    die_area: Number | None = None
    announced: Number | None = None


def _chip(chip_id: str, entry: _ChipEntry) -> Accelerator:
    """Make a chip from its data file; with `same_chip_as`, what it does not state is the named chip's."""
    peaks = tuple(Peak(peak.precision, peak.engine, peak.sparse, peak.sourced) for peak in entry.peak)
    stated = {name: getattr(entry, name) for name in entry.__struct_fields__}
    fields = {name: number.sourced for name, number in stated.items() if isinstance(number, Number)}
    if entry.same_chip_as:
        base = CHIPS.get(entry.same_chip_as)
        peaks, fields = peaks or base.peaks, {**base.fields, **fields}
    return Accelerator(chip_id, entry.name, entry.vendor, peaks, MappingProxyType(fields))


CHIPS = Catalog("chip", lambda: DataFolder("chips", _ChipEntry), _chip)
"""Return every chip, in the order of their ids."""


class _Shelf:
    """Attribute access to chips: `Hardware.Cloud.H100`."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Accelerator:
        if name not in self._names:
            raise AttributeError(f"no {name!r} here; there are {', '.join(self._names)}; or use Hardware.get(id)")
        return CHIPS.get(self._names[name])

    def __dir__(self) -> Iterator[str]:
        return iter(self._names)


class Hardware:
    """All chips of the course: `Hardware.get(id)`, `Hardware.all()` and usual names such as `Hardware.Cloud.H100`."""

    Cloud = _Shelf(
        {
            "V100": "v100-sxm2",
            "T4": "t4",
            "L4": "l4",
            "A100": "a100-80gb-sxm",
            "H100": "h100-sxm",
            "H200": "h200",
            "B200": "b200",
            "MI300X": "mi300x",
            "Gaudi2": "gaudi-2",
            "Gaudi3": "gaudi-3",
            "TPUv4": "tpu-v4",
            "TPUv5e": "tpu-v5e",
            "TPUv5p": "tpu-v5p",
            "TPUv6e": "tpu-v6e",
        }
    )

    @staticmethod
    def get(chip_id: str) -> Accelerator:
        """Return the chip with this id.

        Raises:
            UnknownName: with the nearest id and all of them.
        """
        return CHIPS.get(chip_id)

    @staticmethod
    def all() -> tuple[Accelerator, ...]:
        """Return every chip, in the order of their ids."""
        return CHIPS.all()
