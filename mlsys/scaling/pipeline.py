"""Pipelines: which stage works on which microbatch when, and the time in which stages wait.

The order of work on each stage is that of Megatron-LM. With "1f1b", a stage starts with as many forward passes as
there are stages after it, then takes a forward and a backward pass in turn, so that it never holds more microbatches
than there are stages. With interleaving v, a stage has v groups of layers, and microbatches pass the stages v times;
they go on in turns of p. "gpipe" does all forward passes before the first backward pass.
Sources: Huang et al., GPipe, NeurIPS 2019; Narayanan et al., Efficient Large-Scale Language Model Training on GPU
Clusters Using Megatron-LM, SC 2021, section 2.2.

>>> round(bubble_share(stages=8, microbatches=64), 3), round(bubble_share(stages=8, microbatches=64, interleaving=3), 3)
(0.099, 0.035)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mlsys.core.arguments import one_of, positive_int
from mlsys.errors import InvalidValue

ORDERS = ("1f1b", "gpipe")


def bubble_share(stages: int, microbatches: int, interleaving: int = 1) -> float:
    """Return the share of a step in which each stage waits: (p - 1) / (p - 1 + v m).

    Of the time in which it works, a stage waits the (p - 1) / (v m)-th part. Source: Narayanan et al., section 2.2.

    Args:
        stages: p, of the pipeline.
        microbatches: m, of one step.
        interleaving: v, groups of layers on each stage.

    Raises:
        InvalidValue: if a value is not a positive integer.

    >>> bubble_share(stages=1, microbatches=4)
    0.0
    """
    waits = positive_int("stages", stages) - 1
    return waits / (waits + positive_int("interleaving", interleaving) * positive_int("microbatches", microbatches))


@dataclass(frozen=True, slots=True)
class Pass:
    """A forward or backward pass of one microbatch through one group of layers.

    Attributes:
        stage: where it runs, from 0.
        microbatch: which, from 0.
        group: which of the stage's groups of layers, from 0.
        forward: whether it is a forward pass.
        start: when it begins.
        end: when it ends.
    """

    stage: int
    microbatch: int
    group: int
    forward: bool
    start: float
    end: float


@dataclass(frozen=True)
class Schedule:
    """All passes of one step.

    Attributes:
        stages: stages of the pipeline.
        passes: the passes, stage by stage, each in its order.
    """

    stages: int
    passes: tuple[Pass, ...]

    @property
    def total(self) -> float:
        """When the last pass ends."""
        return max(one.end for one in self.passes)

    def waiting(self, stage: int) -> float:
        """Share of the step in which a stage does nothing."""
        worked = sum(one.end - one.start for one in self.passes if one.stage == stage)
        return 1 - worked / self.total

    def most_held(self, stage: int) -> int:
        """Most groups of layers whose results a stage keeps at once, from a forward pass to its backward pass."""
        changes = sorted(
            (one.start if one.forward else one.end, 1 if one.forward else -1)
            for one in self.passes
            if one.stage == stage
        )
        held = most = 0
        for _, change in changes:
            held += change
            most = max(most, held)
        return most


def schedule(
    stages: int,
    microbatches: int,
    *,
    interleaving: int = 1,
    order: str = "1f1b",
    forward: float = 1.0,
    backward: float = 2.0,
) -> Schedule:
    """Return when each pass of a step runs if every stage starts its next pass as soon as it can.

    A forward pass waits for that of the group of layers before it, a backward pass for that of the group after it.

    Args:
        stages: p, of the pipeline.
        microbatches: m; with interleaving, a multiple of p.
        interleaving: v, groups of layers on each stage.
        order: "1f1b" or "gpipe".
        forward: time of a forward pass through all layers of a stage.
        backward: time of a backward pass through them.

    Raises:
        InvalidValue: if a count is not a positive integer, a time is not above zero, the order unknown, GPipe is
            interleaved, or interleaved microbatches are no multiple of the stages.

    >>> step = schedule(4, 8)
    >>> step.total, step.most_held(0), schedule(4, 8, order="gpipe").most_held(0)
    (33.0, 4, 8)
    """
    stages, count = positive_int("stages", stages), positive_int("microbatches", microbatches)
    groups = positive_int("interleaving", interleaving)
    one_of("order", order, ORDERS)
    for name, value in (("forward", forward), ("backward", backward)):
        if not value > 0:
            raise InvalidValue(f"{name} is {value!r}: give a time above zero")
    if groups > 1 and order == "gpipe":
        raise InvalidValue(f"interleaving is {groups}, but gpipe has one group of layers on each stage: give 1")
    if groups > 1 and count % stages:
        raise InvalidValue(
            f"{count} microbatches are no multiple of {stages} stages, which interleaving needs: give "
            f"{max(1, round(count / stages)) * stages}"
        )
    orders = [_order(stage, stages, count, groups, order) for stage in range(stages)]
    return Schedule(stages, _run(orders, groups, forward / groups, backward / groups))


_Step = tuple[bool, int, int]
"""Whether it is a forward pass, the microbatch, and the group of layers."""


def _order(stage: int, stages: int, count: int, groups: int, order: str) -> list[_Step]:
    """Return the passes of a stage in the order in which it takes them."""
    forwards: list[_Step] = []
    backwards: list[_Step] = []
    turn = stages if groups > 1 else count
    for first in range(0, count, turn):
        for group in range(groups):
            forwards += [(True, one, group) for one in range(first, first + turn)]
            backwards += [(False, one, groups - 1 - group) for one in range(first, first + turn)]
    if order == "gpipe":
        return forwards + backwards
    ahead = stages - 1 - stage
    if groups > 1:
        ahead = 2 * ahead + (groups - 1) * stages
    ahead = min(ahead, len(forwards))
    mixed = forwards[:ahead]
    for place in range(len(forwards)):
        mixed += forwards[ahead + place : ahead + place + 1]
        mixed.append(backwards[place])
    return mixed


def _run(orders: Sequence[Sequence[_Step]], groups: int, forward: float, backward: float) -> tuple[Pass, ...]:
    """Return the passes with their times, each as early as its stage and what it waits for allow."""
    stages = len(orders)
    last = stages * groups - 1
    ended: dict[tuple[bool, int, int], float] = {}  # forward, microbatch, place of the layers in the whole model
    found: list[list[Pass]] = [[] for _ in orders]
    free = [0.0] * stages
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            while len(found[stage]) < len(order):
                is_forward, one, group = order[len(found[stage])]
                place = group * stages + stage
                needs = (is_forward, one, place - 1) if is_forward else (False, one, place + 1)
                if not is_forward and place == last:
                    needs = (True, one, place)
                if (is_forward and place == 0) or needs in ended:
                    start = max(free[stage], ended.get(needs, 0.0))
                    end = start + (forward if is_forward else backward)
                    found[stage].append(Pass(stage, one, group, is_forward, start, end))
                    free[stage] = ended[is_forward, one, place] = end
                    moved = True
                else:
                    break
    return tuple(one for passes in found for one in passes)
