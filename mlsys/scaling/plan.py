"""How chips share a training step: a plan of data, tensor, pipeline, sequence and expert parallelism.

>>> selene = Plan(batch=64, tensor=8, pipeline=8, interleaving=3, sequence=True, recompute="selective")
>>> selene.chips, selene.microbatches
(64, 64)
"""

from dataclasses import dataclass

from mlsys.core.arguments import one_of, positive_int
from mlsys.errors import InvalidValue
from mlsys.models.training import RECOMPUTE
from mlsys.scaling.decoder import Decoder


class PlanDoesNotDivide(InvalidValue):
    """A plan whose shares are not whole numbers."""


@dataclass(frozen=True)
class Plan:
    """Chips in three dimensions, and how a batch passes through them.

    A chip has a place in each of three groups. Those of a tensor group share each block; those of a pipeline share the
    layers; data groups share the batch. Chips of a tensor group stand next to each other, those of a data group come
    next, and the stages of a pipeline are the farthest apart.

    Attributes:
        batch: sequences of a step, on all chips together.
        data: d, groups that each train on their part of the batch.
        tensor: t, chips that share each block.
        pipeline: p, stages that share the layers.
        interleaving: v, groups of layers on each stage; with more than one, a microbatch passes the stages v times.
        sequence: the chips of a tensor group also share what is between the products, by tokens.
        expert: e, chips that share the experts of each block; they are chips of different data groups.
        microbatch: b, sequences that pass together.
        recompute: "none", "selective" or "full": what is computed again in the backward pass.
        sharding: 0: every data group has all optimizer state; 1: they share it; 2: the gradients too; 3: the weights
            too. Source: Rajbhandari et al., ZeRO, SC 2020.
        fp32_gradients: gradients are added up and exchanged in four bytes each, as Megatron-LM does, or in two.

    Raises:
        PlanDoesNotDivide: if the batch does not divide among the data groups and microbatches, or the chips of the
            experts do not divide the data groups.
        InvalidValue: if another value is out of range.
    """

    batch: int
    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    interleaving: int = 1
    sequence: bool = False
    expert: int = 1
    microbatch: int = 1
    recompute: str = "none"
    sharding: int = 0
    fp32_gradients: bool = True

    def __post_init__(self) -> None:
        for name in ("batch", "data", "tensor", "pipeline", "interleaving", "expert", "microbatch"):
            positive_int(name, getattr(self, name))
        one_of("recompute", self.recompute, RECOMPUTE)
        if self.sharding not in (0, 1, 2, 3):
            raise InvalidValue(f"sharding is {self.sharding!r}: give 0, 1, 2 or 3")
        if self.sequence and self.tensor == 1:
            raise InvalidValue("sequence parallelism needs tensor parallelism: tensor is 1; set sequence=False")
        if self.interleaving > 1 and self.pipeline == 1:
            raise InvalidValue(f"interleaving is {self.interleaving}, but pipeline is 1: give a pipeline of 2 or more")
        passed = self.data * self.microbatch
        if self.batch % passed:
            raise PlanDoesNotDivide(
                f"a batch of {self.batch} does not divide among {self.data} data groups in microbatches of "
                f"{self.microbatch}: {self.batch} / ({self.data} x {self.microbatch}) leaves {self.batch % passed} "
                f"over; give a batch of {_multiple_near(self.batch, passed)}"
            )
        if self.interleaving > 1 and self.microbatches % self.pipeline:
            raise PlanDoesNotDivide(
                f"{self.microbatches} microbatches do not divide among {self.pipeline} interleaved stages: "
                f"{self.microbatches} / {self.pipeline} leaves {self.microbatches % self.pipeline} over; give a batch "
                f"of {_multiple_near(self.batch, passed * self.pipeline)}, or interleaving 1"
            )
        if self.data % self.expert:
            raise PlanDoesNotDivide(
                f"{self.expert} chips that share the experts do not divide {self.data} data groups: {self.data} / "
                f"{self.expert} leaves {self.data % self.expert} over; give an expert that divides {self.data}"
            )

    @property
    def chips(self) -> int:
        """Chips of the plan: d t p."""
        return self.data * self.tensor * self.pipeline

    @property
    def microbatches(self) -> int:
        """Microbatches that each pipeline works through in a step: m = batch / (d b)."""
        return self.batch // (self.data * self.microbatch)

    def check(self, decoder: Decoder) -> None:
        """Refuse the plan if a decoder does not divide by it.

        Raises:
            PlanDoesNotDivide: if the stages do not divide the layers, a tensor group the heads or the MLP, or the
                chips of the experts the experts; the message has the numbers, what is left over, and what to do.
        """
        groups = self.pipeline * self.interleaving
        if decoder.layers % groups:
            each = f" with {self.interleaving} groups of layers each" if self.interleaving > 1 else ""
            what = "a pipeline times interleaving" if self.interleaving > 1 else "a pipeline"
            raise PlanDoesNotDivide(
                f"{decoder.layers} layers do not divide among {self.pipeline} stages{each}: {decoder.layers} / "
                f"{groups} leaves {decoder.layers % groups} over; give {what} that divides {decoder.layers}, such as "
                f"{_divisor_near(decoder.layers, groups)}"
            )
        shared = {
            "heads": decoder.block.heads,
            "heads of keys and values": decoder.block.kv_heads,
            "elements of the MLP": decoder.block.mlp,
        }
        if self.sequence:
            shared["tokens"] = decoder.tokens
        for what, size in shared.items():
            if size % self.tensor:
                raise PlanDoesNotDivide(
                    f"{size} {what} do not divide among {self.tensor} chips of a tensor group: {size} / {self.tensor} "
                    f"leaves {size % self.tensor} over; give a tensor that divides {size}, such as "
                    f"{_divisor_near(size, self.tensor)}"
                )
        if decoder.experts % self.expert:
            raise PlanDoesNotDivide(
                f"{decoder.experts} experts do not divide among {self.expert} chips: {decoder.experts} / "
                f"{self.expert} leaves {decoder.experts % self.expert} over; give an expert that divides "
                f"{decoder.experts}, such as {_divisor_near(decoder.experts, self.expert)}"
            )


def _multiple_near(size: int, step: int) -> int:
    """Return the multiple of `step` nearest to `size`, at least one step."""
    return max(1, round(size / step)) * step


def _divisor_near(size: int, wanted: int) -> int:
    """Return the divisor of `size` nearest to `wanted`."""
    return min((n for n in range(1, size + 1) if size % n == 0), key=lambda n: abs(n - wanted))
