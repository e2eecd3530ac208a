"""Will it run? Three gates, memory, bandwidth and compute, and the one that binds."""

from collections.abc import Callable
from dataclasses import dataclass

from mlsys.core.arguments import Amount, amount, positive_amount, positive_int, share
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.hardware.chips import Accelerator
from mlsys.models import LanguageModel, kv_cache_bytes
from mlsys.units import Quantity, ureg


@dataclass(frozen=True)
class Gate:
    """One requirement: what is needed against what there is, both in the same unit.

    Attributes:
        name: "memory", "bandwidth" or "compute".
        need: what the work needs: bytes of memory, or time.
        limit: what the chip has, or the deadline allows.
    """

    name: str
    need: Quantity
    limit: Quantity

    @property
    def load(self) -> float:
        """Need / limit: above 1 the gate is shut."""
        return float((self.need / self.limit).m_as("dimensionless"))

    @property
    def passes(self) -> bool:
        """Whether the need stays within the limit."""
        return self.load <= 1


@dataclass(frozen=True)
class Feasibility:
    """The three gates of one deployment."""

    memory: Gate
    bandwidth: Gate
    compute: Gate

    @property
    def gates(self) -> tuple[Gate, Gate, Gate]:
        """All three."""
        return self.memory, self.bandwidth, self.compute

    @property
    def feasible(self) -> bool:
        """Whether all gates pass."""
        return all(gate.passes for gate in self.gates)

    @property
    def binding(self) -> Gate:
        """The gate with the highest load: the one to relieve first."""
        return max(self.gates, key=lambda gate: gate.load)

    @property
    def shut(self) -> tuple[Gate, ...]:
        """The gates that do not pass."""
        return tuple(gate for gate in self.gates if not gate.passes)

    @property
    def headroom(self) -> Quantity:
        """Memory left; negative if it does not fit."""
        left: Quantity = self.memory.limit - self.memory.need
        return left


def feasibility(
    *,
    weights: Amount,
    flops: Amount,
    deadline: Amount,
    memory: Amount,
    bandwidth: Amount,
    peak: Amount,
    kv_cache: Amount = 0.0,
    activations: Amount = 0.0,
    traffic: Amount | None = None,
    utilization: float = 1.0,
    bandwidth_share: float = 1.0,
) -> Feasibility:
    """Hold a piece of work against a chip and a deadline: does it fit, is it fed in time, is it computed in time?

    Formula: weights + kv_cache + activations <= memory; traffic / (bandwidth bandwidth_share) <= deadline;
    flops / (peak utilization) <= deadline.

    Args:
        weights: bytes of the parameters.
        flops: FLOPs of one step (one inference, one token, one frame).
        deadline: seconds that a step may take.
        memory: bytes that the chip has.
        bandwidth: byte/second of its memory.
        peak: flop/second in the precision used.
        kv_cache: bytes of the caches of all sequences.
        activations: bytes of intermediate results held at once.
        traffic: bytes moved in one step; without it, weights and kv_cache once.
        utilization: share of the peak that is reached, above 0 and up to 1.
        bandwidth_share: share of the bandwidth that is reached, above 0 and up to 1.

    Raises:
        InvalidValue: if a value is negative, a limit is zero, or a share is out of range.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import GB, TB, TFLOP, ms, second
    >>> verdict = feasibility(weights=140 * GB, flops=0.14 * TFLOP, deadline=50 * ms, memory=160 * GB,
    ...                       bandwidth=1 * TB / second, peak=100 * TFLOP / second)
    >>> verdict.feasible, verdict.binding.name, verdict.binding.need
    (False, 'bandwidth', <Quantity(140.0, 'millisecond')>)
    """
    if not 0 < utilization <= 1:
        raise InvalidValue(f"utilization is {utilization!r}: a share of the peak is above 0 and at most 1")
    stored = amount("weights", weights, "byte") + amount("kv_cache", kv_cache, "byte")
    moved = stored if traffic is None else amount("traffic", traffic, "byte")
    reached = positive_amount("bandwidth", bandwidth, "byte/second") * share("bandwidth_share", bandwidth_share)
    moving_s = moved / reached
    computing_s = amount("flops", flops, "flop") / (positive_amount("peak", peak, "flop/second") * utilization)
    allowed_ms = 1e3 * positive_amount("deadline", deadline, "second")

    def gate(name: str, need: float, limit: float, unit: str) -> Gate:
        return Gate(name, ureg.Quantity(need, unit), ureg.Quantity(limit, unit))

    held_gb = (stored + amount("activations", activations, "byte")) / 1e9
    return Feasibility(
        memory=gate("memory", held_gb, positive_amount("memory", memory, "byte") / 1e9, "GB"),
        bandwidth=gate("bandwidth", 1e3 * moving_s, allowed_ms, "ms"),
        compute=gate("compute", 1e3 * computing_s, allowed_ms, "ms"),
    )


def decode_feasibility(
    build: Callable[..., LanguageModel],
    chip: Accelerator,
    deadline: Amount,
    *,
    batch: int = 1,
    context: int,
    dtype: str = "fp16",
    cache_dtype: str = "fp16",
    precision: str = "fp16",
    chips: int = 1,
    utilization: float = 1.0,
    bandwidth_share: float = 1.0,
) -> Feasibility:
    """Hold one decoding step of a language model against a chip: every sequence gets one token.

    Several chips are counted as one with their memories, bandwidths and peaks together; what they say to each other is
    left out, so for them the answer is the best that any split can give.

    Args:
        build: makes the model, such as `mlsys.models.llama2_7b`.
        chip: gives memory, bandwidth and peak.
        deadline: seconds that a step may take: the time from one token of a sequence to its next.
        batch: sequences that decode together.
        context: tokens of each sequence in the cache.
        dtype: number format of the weights.
        cache_dtype: number format of keys and values.
        precision: number format in which the chip multiplies.
        chips: how many of them.
        utilization: share of the peak that is reached, above 0 and up to 1.
        bandwidth_share: share of the bandwidth that is reached, above 0 and up to 1.

    Raises:
        InvalidValue: if a value is out of range, or the context is longer than the model knows.
        UnknownName: if a number format is unknown.
        UnknownPrecision: if the chip does not multiply in `precision`.

    >>> from mlsys import Hardware, models
    >>> verdict = decode_feasibility(models.llama2_7b, Hardware.get("t4"), 0.05, context=2048)
    >>> verdict.feasible, verdict.binding.name, round(verdict.headroom, 2)
    (True, 'memory', <Quantity(1.45, 'gigabyte')>)
    """
    step = build(batch=batch, seq=context, decode=True)
    many = positive_int("chips", chips)
    heads = {"layers": step.layers, "kv_heads": step.kv_heads, "head_dim": step.head_dim}
    return feasibility(
        weights=step.params.m * bytes_per_element(dtype),
        kv_cache=kv_cache_bytes(**heads, tokens=context, batch=batch, dtype=cache_dtype),
        activations=step.peak_activation_bytes,
        flops=step.flops,
        deadline=deadline,
        memory=many * chip.memory_capacity,
        bandwidth=many * chip.memory_bw,
        peak=many * chip.peak(precision),
        utilization=utilization,
        bandwidth_share=bandwidth_share,
    )


@dataclass(frozen=True)
class Fit:
    """Bytes needed and bytes there; true if they fit."""

    needed: Quantity
    capacity: Quantity

    @property
    def headroom(self) -> Quantity:
        """Bytes left; negative by what is missing."""
        return ureg.Quantity(self.capacity.m_as("byte") - self.needed.m_as("byte"), "byte")

    def __bool__(self) -> bool:
        """True if it fits."""
        return bool(self.needed <= self.capacity)


def fits(params: Amount, capacity: Accelerator | Amount, dtype: str = "fp16", other: Amount = 0) -> Fit:
    """Whether a model's weights, and what comes with them, fit into memory.

    Formula: params x bytes per element + other <= capacity.

    Args:
        params: a number, or a quantity of param.
        capacity: a chip, or its memory in bytes.
        dtype: number format of the weights.
        other: KV cache, activations, workspace: bytes.

    Raises:
        InvalidValue: if a value is negative.
        UnknownName: if the dtype is unknown.

    >>> from mlsys.units import GB
    >>> bool(fits(13e9, 24 * GB)), bool(fits(13e9, 24 * GB, dtype="int8")), fits(13e9, 24 * GB).headroom.to(GB)
    (False, True, <Quantity(-2.0, 'gigabyte')>)
    """
    room = capacity.memory_capacity if isinstance(capacity, Accelerator) else capacity
    needed = amount("params", params, "param") * bytes_per_element(dtype) + amount("other", other, "byte")
    return Fit(ureg.Quantity(needed, "byte"), ureg.Quantity(amount("capacity", room, "byte"), "byte"))
