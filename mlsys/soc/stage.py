"""Stages: pieces of work that wait for others, such as the steps from a camera's image to the screen.

>>> stage = next(stage for stage in camera_pipeline() if stage.name == "detect")
>>> stage.after, round(sum(stage.work.values()) / 1e9, 2), round(stage.bytes / 1e6)
(('shrink',), 8.18, 47)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mlsys import models
from mlsys.core.arguments import non_negative
from mlsys.errors import InvalidValue, UnknownName
from mlsys.models.model import MULTIPLY_ADD_KINDS
from mlsys.ops import Op
from mlsys.soc.chip import Soc, Unit

PIXELS = 1920 * 1080
"""Pixels of an image of the camera; full HD."""


@dataclass(frozen=True)
class Stage:
    """A piece of work that runs on one block.

    Attributes:
        name: what it is called.
        work: operations, by kind.
        bytes: bytes that cross the memory interface.
        after: names of the stages whose results it needs.
        priority: who gets bandwidth first when it is short; the higher number, and equals share.
    """

    name: str
    work: Mapping[str, float]
    bytes: float = 0.0
    after: tuple[str, ...] = ()
    priority: int = 0

    @classmethod
    def of_ops(cls, name: str, ops: Iterable[Op], after: tuple[str, ...] = (), priority: int = 0) -> "Stage":
        """Return a stage that does these operations of `mlsys.ops`, one after the other.

        Raises:
            InvalidValue: if there are none.
        """
        work: dict[str, float] = {}
        moved = 0.0
        for op in ops:
            work[op.kind] = work.get(op.kind, 0.0) + op.flop_count
            moved += op.read_count + op.write_count
        if not work:
            raise InvalidValue(f"the stage {name!r} has no operations: give at least one")
        return cls(name, work, moved, after, priority)

    def compute_s(self, unit: Unit, clock: float = 1.0) -> float:
        """Return the seconds that the arithmetic takes on a block: the sum of operations / rate.

        Raises:
            CannotRun: if the block lacks a kind of operation; the message names the blocks that have it.
        """
        return sum(count / unit.rate(kind, clock) for kind, count in self.work.items())

    def alone_s(self, unit: Unit, soc: Soc, clock: float = 1.0) -> float:
        """Return the seconds on a block that has the memory to itself: the longer of arithmetic and bytes / bandwidth.

        Raises:
            CannotRun: if the block lacks a kind of operation.
        """
        moving = self.bytes / min(unit.bandwidth, soc.memory_bandwidth)
        return max(self.compute_s(unit, clock), moving)

    def energy_j(self, unit: Unit, soc: Soc, clock: float, took_s: float) -> float:
        """Return the energy of the stage: switching for its arithmetic, static power while it runs, and its bytes.

        Waiting for memory costs static power only, as if the idle parts of a block were switched off.
        """
        switching = unit.curve.dynamic_w * unit.curve.points.energy_scale(clock) * self.compute_s(unit)
        return switching + unit.curve.static_w * took_s + self.bytes * soc.memory_j_per_byte


def check_stages(stages: Sequence[Stage]) -> None:
    """Refuse stages that no order could run.

    Raises:
        InvalidValue: if two have one name, a number is negative, or stages wait for each other in a circle.
        UnknownName: if one waits for a stage that is not there.
    """
    names = [stage.name for stage in stages]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidValue(f"two stages are called {twice!r}: give each its own name")
    for stage in stages:
        non_negative(f"bytes of {stage.name!r}", stage.bytes)
        for kind, count in stage.work.items():
            non_negative(f"{kind!r} of {stage.name!r}", count)
        for before in stage.after:
            if before not in names:
                raise UnknownName.of(f"stage before {stage.name!r}", before, names)
    done: set[str] = set()
    while len(done) < len(stages):
        ready = {stage.name for stage in stages if stage.name not in done and done.issuperset(stage.after)}
        if not ready:
            stuck = sorted(set(names) - done)
            raise InvalidValue(f"{', '.join(stuck)} wait for each other in a circle: leave out one dependency")
        done |= ready


def camera_pipeline() -> tuple[Stage, ...]:
    """Return the example of the course: find and mark objects in each image of a camera, and listen for a word.

    The network is ResNet-50 in INT8, its normalizations and activations folded into the convolutions. The operations
    per pixel of the other stages are assumptions: 500 to remove noise with the two images before, 12 to shrink, 25 to
    draw over; so are the 4 million branches that sort boxes, and the 20 million operations on sound.
    """
    network = [op for op in models.resnet50(dtype="int8").ops if op.kind in MULTIPLY_ADD_KINDS]
    return (
        Stage("denoise", {"filter": 500.0 * PIXELS}, bytes=8.0 * PIXELS),
        Stage("shrink", {"filter": 12.0 * PIXELS}, bytes=2.0 * PIXELS, after=("denoise",)),
        Stage.of_ops("detect", network, after=("shrink",)),
        Stage("boxes", {"branches": 4e6}, bytes=5e5, after=("detect",)),
        Stage("overlay", {"drawing": 25.0 * PIXELS}, bytes=8.0 * PIXELS, after=("denoise", "boxes")),
        Stage("listen", {"signal": 20e6}, bytes=1e6),
    )
