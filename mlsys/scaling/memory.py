"""What one chip of a plan holds: weights, gradients, the optimizer's state, and results for the backward pass.

>>> from mlsys.models import Block
>>> gpt3 = Decoder(Block(width=12288, heads=96, kv_heads=96, mlp=49152), layers=96, tokens=2048, vocabulary=51200)
>>> plan = Plan(batch=64, tensor=8, pipeline=8, interleaving=3, sequence=True, recompute="selective")
>>> held = footprint(gpt3, plan)
>>> round(held.state.to("GiB"), 1), round(held.activations.to("GiB"), 1), round(held.total.to("GiB"), 1)
(<Quantity(46.9, 'gibibyte')>, <Quantity(12.4, 'gibibyte')>, <Quantity(59.2, 'gibibyte')>)
"""

from dataclasses import dataclass

from mlsys.models.training import ADAM_BYTES, stack_kept_bytes
from mlsys.scaling.decoder import Decoder
from mlsys.scaling.plan import Plan
from mlsys.units import Quantity, ureg

OPTIMIZER_BYTES = ADAM_BYTES["master weights"] + ADAM_BYTES["momentum"] + ADAM_BYTES["variance"]
"""Bytes of each parameter in the state of Adam."""


@dataclass(frozen=True)
class Footprint:
    """Bytes that one chip holds, on the stage that holds most.

    Attributes:
        weights: parameters in a 16-bit format.
        gradients: one for each parameter, in two or four bytes.
        optimizer: Adam's state.
        activations: results that the backward pass needs.
    """

    weights: Quantity
    gradients: Quantity
    optimizer: Quantity
    activations: Quantity

    @property
    def state(self) -> Quantity:
        """What does not depend on the batch: weights, gradients and optimizer."""
        held: Quantity = self.weights + self.gradients + self.optimizer
        return held

    @property
    def total(self) -> Quantity:
        """Everything."""
        held: Quantity = self.state + self.activations
        return held


def chip_params(decoder: Decoder, plan: Plan) -> tuple[float, float]:
    """Return the parameters of a chip on the first stage: those that all data groups have, and those of its experts.

    A tensor group shares every matrix; the stages share the layers, and the first of them also has the embedding.

    Raises:
        PlanDoesNotDivide: if the decoder does not divide by the plan.
    """
    plan.check(decoder)
    layers = decoder.layers / plan.pipeline
    common = layers * decoder.attention_params + decoder.embedding_params
    experts = layers * decoder.experts / plan.expert * decoder.mlp_params
    if decoder.experts == 1:
        common, experts = common + experts, 0.0
    return common / plan.tensor, experts / plan.tensor


def footprint(decoder: Decoder, plan: Plan) -> Footprint:
    """Return what a chip of the first stage holds, which is the stage that keeps most results.

    What the output layer keeps on the last stage is counted only if there is no pipeline.

    Raises:
        PlanDoesNotDivide: if the decoder does not divide by the plan.
    """
    common, experts = chip_params(decoder, plan)

    def held(each: int, shared_from: int) -> Quantity:
        """Bytes of all parameters; with enough sharding, of the part that is left to a data group."""
        shared = plan.sharding >= shared_from
        count = common / (plan.data if shared else 1) + experts / (plan.data // plan.expert if shared else 1)
        return ureg.Quantity(each * count, "byte")

    return Footprint(
        weights=held(ADAM_BYTES["weights"], 3),
        gradients=held(4 if plan.fp32_gradients else ADAM_BYTES["gradients"], 2),
        optimizer=held(OPTIMIZER_BYTES, 1),
        activations=_activations(decoder, plan),
    )


def _activations(decoder: Decoder, plan: Plan) -> Quantity:
    """Bytes of the microbatches that are between their forward and their backward pass on the first stage."""
    block = decoder.widened.kept_bytes(
        decoder.tokens,
        plan.microbatch,
        recompute=plan.recompute,
        tensor_parallel=plan.tensor,
        sequence_parallel=plan.sequence,
    )
    full = stack_kept_bytes(block, decoder.layers, pipeline_parallel=plan.pipeline, interleaving=plan.interleaving)
    if plan.microbatches < plan.pipeline:
        full = full * (plan.microbatches / plan.pipeline)
    if plan.pipeline == 1:
        ends = decoder.block.ends_kept_bytes(decoder.tokens, plan.microbatch, vocabulary=decoder.vocabulary)
        full = full + ends / plan.tensor
    return full
