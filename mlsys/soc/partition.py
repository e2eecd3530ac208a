"""Partitions: a network cut where the accelerator lacks an operation, and what each cut costs.

A runtime gives an accelerator every run of operations that it supports, and leaves the others to the CPU. Each change
of the block hands results over. A few unsupported operations that are spread over the network cost little arithmetic
and many handoffs.

>>> from mlsys import models
>>> from mlsys.soc.chip import soc
>>> phone, network = soc("phone"), models.mobilenet_v2(dtype="int8").ops
>>> whole = partition(network, phone, "NPU")
>>> cut = partition(network, phone, "NPU", fallback="CPU", unsupported={"batchnorm"})
>>> (whole.handoffs, round(1e3 * whole.total_s, 1)), (cut.handoffs, round(1e3 * cut.total_s, 1))
((0, 1.1), (104, 33.3))
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mlsys.errors import InvalidValue
from mlsys.ops import Op
from mlsys.soc.chip import CannotRun, Soc
from mlsys.soc.stage import Stage


@dataclass(frozen=True)
class Segment:
    """Operations that follow each other and run on one block.

    Attributes:
        unit: the block.
        ops: the operations.
        time_s: seconds for all of them.
    """

    unit: str
    ops: tuple[Op, ...]
    time_s: float


@dataclass(frozen=True)
class Partition:
    """A network as segments, in order.

    Attributes:
        segments: neighbors run on different blocks.
        handoff_s: seconds of one change of the block.
    """

    segments: tuple[Segment, ...]
    handoff_s: float

    @property
    def handoffs(self) -> int:
        """How often the block changes."""
        return len(self.segments) - 1

    @property
    def total_s(self) -> float:
        """Seconds for all segments and handoffs, one after the other."""
        return sum(segment.time_s for segment in self.segments) + self.handoffs * self.handoff_s

    def on_s(self, unit: str) -> float:
        """Seconds of the segments that run on a block."""
        return sum(segment.time_s for segment in self.segments if segment.unit == unit)

    def share(self, unit: str) -> float:
        """Share of the operations, FLOPs counted, that a block runs."""
        counts = [(segment.unit, sum(op.flop_count for op in segment.ops)) for segment in self.segments]
        return sum(count for name, count in counts if name == unit) / sum(count for _, count in counts)


def partition(
    ops: Sequence[Op], soc: Soc, unit: str, *, fallback: str | None = None, unsupported: Collection[str] = ()
) -> Partition:
    """Cut a network into what a block runs and what it leaves to another.

    Args:
        ops: the network, in order.
        soc: the chip.
        unit: the accelerator.
        fallback: the block that takes what the accelerator lacks; without one, such a network is refused.
        unsupported: kinds of operations that the accelerator's driver does not take, besides those that it lacks.

    Raises:
        CannotRun: if no block takes an operation; the message names it and says what to do.
        InvalidValue: if there are no operations, or the fallback is the accelerator itself.
        UnknownName: if a block does not exist.
    """
    if not ops:
        raise InvalidValue("no operations: give at least one")
    if fallback == unit:
        raise InvalidValue(f"the {unit} cannot be its own fallback: name another block, or None")
    accelerator = soc.unit(unit)
    groups: list[tuple[str, list[Op]]] = []
    for op in ops:
        takes = accelerator.runs(op.kind) and op.kind not in unsupported
        if not takes and fallback is None:
            raise CannotRun(
                f"{op.name!r} is a {op.kind!r}, which the {unit} does not take: replace it by operations that it has "
                f"({', '.join(sorted(set(accelerator.rates) - set(unsupported)))}), or name a fallback"
            )
        place = unit if takes else str(fallback)
        if not groups or groups[-1][0] != place:
            groups.append((place, []))
        groups[-1][1].append(op)
    segments = (
        Segment(place, tuple(held), sum(Stage.of_ops(op.name, [op]).alone_s(soc.unit(place), soc) for op in held))
        for place, held in groups
    )
    return Partition(tuple(segments), soc.handoff_s)
