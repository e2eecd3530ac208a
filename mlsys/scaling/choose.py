"""Which plan to take: all that divide, those that fit into memory, and the fastest of them.

>>> from mlsys import Hardware, models
>>> from mlsys.scaling import fabric, sustained
>>> llama = Decoder.of(models.llama2("7b"), tokens=4096)
>>> cluster = Cluster(sustained(Hardware.Cloud.A100), fabric("nvlink-3"), fabric("infiniband-hdr"))
>>> best = ranked(llama, chips=8, batch=64, cluster=cluster, memory=80e9)[0]
>>> best.plan.data, best.plan.tensor, best.plan.pipeline, best.plan.recompute
(4, 2, 1, 'none')
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mlsys.core.arguments import Amount, positive_amount, positive_int
from mlsys.errors import InvalidValue
from mlsys.models.training import RECOMPUTE
from mlsys.scaling.decoder import Decoder
from mlsys.scaling.memory import Footprint, footprint
from mlsys.scaling.plan import Plan, PlanDoesNotDivide
from mlsys.scaling.step import Cluster, StepTime, train_step

MICROBATCHES = (1, 2, 4, 8)
"""Sequences of a microbatch that are tried."""
INTERLEAVINGS = (1, 2, 3, 4)
"""Groups of layers on a stage that are tried."""


class NothingFits(InvalidValue):
    """No plan's share fits into a chip's memory."""


@dataclass(frozen=True)
class Choice:
    """A plan with its price.

    Attributes:
        plan: the plan.
        held: what a chip holds.
        step: where the time of a step goes.
    """

    plan: Plan
    held: Footprint
    step: StepTime


def plans(decoder: Decoder, chips: int, batch: int, *, node: int = 8, sharding: int = 1) -> Iterator[Plan]:
    """Yield every plan for so many chips by which a decoder and a batch divide.

    Tensor groups stay within a node and share what is between the products too. With experts, as many chips of the
    data groups share them as can.

    Args:
        decoder: what is trained.
        chips: chips in all.
        batch: sequences of a step.
        node: chips of a node.
        sharding: how far data groups share their state, where there are several.

    Raises:
        InvalidValue: if a count is not a positive integer.
    """
    chips, batch = positive_int("chips", chips), positive_int("batch", batch)
    for tensor in _divisors(chips):
        if tensor > node:
            continue
        for pipeline in _divisors(chips // tensor):
            data = chips // tensor // pipeline
            expert = max(n for n in _divisors(data) if decoder.experts % n == 0)
            for microbatch in MICROBATCHES:
                for interleaving in INTERLEAVINGS if pipeline > 1 else (1,):
                    for recompute in RECOMPUTE:
                        try:
                            plan = Plan(
                                batch=batch,
                                data=data,
                                tensor=tensor,
                                pipeline=pipeline,
                                interleaving=interleaving,
                                sequence=tensor > 1,
                                expert=expert,
                                microbatch=microbatch,
                                recompute=recompute,
                                sharding=sharding if data > 1 else 0,
                            )
                            plan.check(decoder)
                        except PlanDoesNotDivide:
                            continue
                        yield plan


def ranked(
    decoder: Decoder,
    chips: int,
    batch: int,
    cluster: Cluster,
    memory: Amount,
    *,
    overlap: float = 0.0,
    sharding: int = 1,
) -> list[Choice]:
    """Return the plans that fit into a chip's memory, fastest first.

    Args:
        decoder: what is trained.
        chips: chips in all.
        batch: sequences of a step.
        cluster: the chips.
        memory: bytes of a chip.
        overlap: share of the exchange of gradients that may hide, as in `train_step`.
        sharding: how far data groups share their state, where there are several.

    Raises:
        NothingFits: if no plan fits; the message says how much the smallest needs.
        PlanDoesNotDivide: if no plan divides at all.
        InvalidValue: if a count is not a positive integer.
    """
    room = positive_amount("memory", memory, "byte")
    found = [
        (plan, footprint(decoder, plan)) for plan in plans(decoder, chips, batch, node=cluster.node, sharding=sharding)
    ]
    if not found:
        raise PlanDoesNotDivide(
            f"{decoder.layers} layers and a batch of {batch} divide among {chips} chips in no way: give a number of "
            f"chips whose factors divide {decoder.layers}, {decoder.block.heads} heads or the batch"
        )
    fitting = [(plan, held) for plan, held in found if held.total.m_as("byte") <= room]
    if not fitting:
        least, held = min(found, key=lambda one: one[1].total.m_as("byte"))
        raise NothingFits(
            f"no plan for {chips} chips fits into {room / 1e9:.0f} GB each: the smallest share, with data "
            f"{least.data}, tensor {least.tensor} and pipeline {least.pipeline}, holds "
            f"{held.total.m_as('GB'):.0f} GB; give more chips, or sharding 3"
        )
    choices = [Choice(plan, held, train_step(decoder, plan, cluster, overlap=overlap)) for plan, held in fitting]
    return sorted(choices, key=lambda choice: choice.step.total.m_as("second"))


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]
