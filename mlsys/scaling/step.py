"""Time of a training step of a decoder under a plan: computing, exchanging, waiting.

Each operation takes the longer of its FLOPs at the chip's sustained rate and its bytes at the sustained bandwidth. A
stage works through its microbatches one after the other. The slowest stage, which is the last, for it also has the
output layer, sets the pace; filling and draining the pipeline adds the work of the other stages once, divided by the
interleaving.

Three things are simplified: no exchange within a tensor group or between stages hides behind computing, the parts of
a step do not slow each other down, and what takes less than a hundredth of a step (embedding, last normalization,
clipping of gradients) is left out.

>>> from mlsys import Hardware
>>> from mlsys.models import Block
>>> from mlsys.scaling.network import fabric
>>> gpt3 = Decoder(Block(width=12288, heads=96, kv_heads=96, mlp=49152), layers=96, tokens=2048, vocabulary=51200)
>>> plan = Plan(batch=64, tensor=8, pipeline=8, interleaving=3, sequence=True, recompute="selective")
>>> cluster = Cluster(sustained(Hardware.Cloud.A100), fabric("nvlink-3"), fabric("infiniband-hdr"))
>>> round(train_step(gpt3, plan, cluster).total.to("s"), 1)
<Quantity(13.5, 'second')>
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from mlsys import ops
from mlsys.core.arguments import positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.hardware import Accelerator
from mlsys.models.training import ADAM_BYTES
from mlsys.ops import Op
from mlsys.roofline import Roofline
from mlsys.scaling.block import BlockShare
from mlsys.scaling.decoder import Decoder
from mlsys.scaling.memory import chip_params
from mlsys.scaling.network import Fabric
from mlsys.scaling.plan import Plan
from mlsys.units import Quantity, ureg

MATRIX_SHARE = 0.77
"""Share of the tensor cores' peak that products reach; fitted to the eight runs of `mlsys.scaling.published`."""
MEMORY_SHARE = 0.78
"""Share of the memory's bandwidth that element-wise work and attention reach; fitted to the same eight runs."""
OPTIMIZER_TRAFFIC = 30
"""Bytes that Adam moves for a parameter: it reads gradient, master weight and two moments of 4 bytes each, and writes
the last three and the weight of 2 bytes."""
LOSS_FLOPS = 5
"""FLOPs for each element of the output layer's result in softmax and cross-entropy, as in `mlsys.ops.softmax`."""


def sustained(
    acc: Accelerator, precision: str = "fp16", matrix: float = MATRIX_SHARE, memory: float = MEMORY_SHARE
) -> Roofline:
    """Return the roofline of the rates that training sustains on a chip: shares of those of its data sheet.

    The shares that are set without others were fitted to training on A100s. Whether they hold for another chip is a
    guess until it has been measured.

    Args:
        acc: the chip.
        precision: format of the products.
        matrix: share of the peak of the products, above 0 and at most 1.
        memory: share of the memory's bandwidth, likewise.

    Raises:
        InvalidValue: if a share is out of range.
        UnknownPrecision: if the chip does not have the precision.

    >>> from mlsys import Hardware
    >>> round(sustained(Hardware.Cloud.A100).peak)
    <Quantity(240, 'teraflop / second')>
    """
    for name, share in (("matrix", matrix), ("memory", memory)):
        if not 0 < share <= 1:
            raise InvalidValue(f"{name} is {share!r}: give a share above 0 and at most 1")
    sheet = Roofline.of(acc, precision)
    peaks = {engine: peak * (matrix if engine == sheet.main else 1.0) for engine, peak in sheet.peaks_per_s.items()}
    return Roofline(f"{acc.name}, {precision}", memory * sheet.bandwidth_per_s, peaks, sheet.main, "sustained")


@dataclass(frozen=True)
class Cluster:
    """Chips of one kind in nodes.

    Attributes:
        chip: the rates that a chip sustains.
        inside: what joins the chips of a node.
        between: what joins the nodes, with one link for each chip.
        node: chips of a node.

    Raises:
        InvalidValue: if `node` is not a positive integer, or more than `inside` joins.
    """

    chip: Roofline
    inside: Fabric
    between: Fabric
    node: int = 8

    def __post_init__(self) -> None:
        if self.inside.chips is not None and positive_int("node", self.node) > self.inside.chips:
            raise InvalidValue(
                f"{self.inside.name} joins at most {self.inside.chips} chips, and a node has {self.node}: give a node "
                f"of at most {self.inside.chips}"
            )

    def joining(self, chips: int, apart: int = 1) -> Fabric:
        """Return what joins so many chips of which neighbors stand `apart`: the slower fabric, if they need both."""
        return self.inside if chips * apart <= self.node else self.between

    def ring(self, chips: int, apart: int = 1) -> Fabric:
        """Return what a collective in rings finds on so many chips of which neighbors stand `apart`.

        Between nodes there is a ring for each chip of a node, over that chip's own link, and each carries its share of
        the bytes. Together they are no faster than the rings inside a node, through which they pass. Two and three
        nodes of eight A100s with four InfiniBand HDR links each reached 86 and 96 GB/s (NVIDIA/nccl-tests, issues 175
        and 119); four links at 0.9 of their 25 GB/s are 90.
        """
        joined, together = self.joining(chips, apart), max(1, self.node // apart)
        if joined is self.inside or together == 1:
            return joined
        inside = self.inside.efficiency * self.inside.bandwidth / joined.efficiency
        return replace(joined, bandwidth=min(together * joined.bandwidth, inside))


@dataclass(frozen=True)
class StepTime:
    """Where the time of a step goes, on the stage that sets the pace.

    Attributes:
        products: matrix products, forward and backward.
        elementwise: what is limited by memory: normalization, softmax, dropout, activation, sums, the loss.
        repeated: what is computed again in the backward pass.
        tensor: collectives within the tensor groups.
        experts: the exchange of tokens between experts.
        sends: results and gradients that go from stage to stage.
        bubble: filling and draining the pipeline.
        gradients: sums of gradients over the data groups that do not hide behind computing, and gathering of weights.
        optimizer: the update of the weights.
    """

    products: Quantity
    elementwise: Quantity
    repeated: Quantity
    tensor: Quantity
    experts: Quantity
    sends: Quantity
    bubble: Quantity
    gradients: Quantity
    optimizer: Quantity

    @property
    def parts(self) -> dict[str, Quantity]:
        """The parts by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def total(self) -> Quantity:
        """Time of the step."""
        return ureg.Quantity(sum(part.m_as("second") for part in self.parts.values()), "second")

    @property
    def exchanged(self) -> Quantity:
        """Time of all that goes over links."""
        links: Quantity = self.tensor + self.experts + self.sends + self.gradients
        return links


def train_step(
    decoder: Decoder, plan: Plan, cluster: Cluster, *, overlap: float = 0.0, imbalance: float = 1.0
) -> StepTime:
    """Return the time of one training step.

    Args:
        decoder: what is trained.
        plan: how the chips share it.
        cluster: the chips.
        overlap: share of the exchange of gradients that may run beside the backward pass of the last microbatch.
        imbalance: tokens of the busiest expert over the mean; all wait for it.

    Raises:
        PlanDoesNotDivide: if the decoder does not divide by the plan.
        InvalidValue: if the overlap is out of range, the imbalance below 1, or a tensor group larger than its fabric.
    """
    if not 0 <= overlap <= 1:
        raise InvalidValue(f"overlap is {overlap!r}: a share is between 0 and 1; nearest: {1 if overlap > 1 else 0}")
    if imbalance < 1:
        raise InvalidValue(f"imbalance is {imbalance!r}: the busiest expert has at least the mean; give 1 or more")
    common, experts = chip_params(decoder, plan)
    work = _Microbatch(decoder, plan, cluster, imbalance)
    count, others = plan.microbatches, (plan.pipeline - 1) / plan.interleaving
    middle, last = work.layers, work.output
    gradients_s = _gradients_s(plan, cluster, common, experts)
    hidden_s = min(overlap * gradients_s, work.backward_s)
    updated = (common / (plan.data if plan.sharding else 1)) + experts / (
        plan.data // plan.expert if plan.sharding else 1
    )
    seconds = {
        "products": count * (middle["products"] + last["products"]),
        "elementwise": count * (middle["elementwise"] + last["elementwise"]),
        "repeated": count * middle["repeated"],
        "tensor": count * (middle["tensor"] + last["tensor"]),
        "experts": count * middle["experts"],
        "sends": count * middle["sends"],
        "bubble": others * sum(middle.values()),
        "gradients": gradients_s - hidden_s,
        "optimizer": OPTIMIZER_TRAFFIC * updated / cluster.chip.bandwidth_per_s,
    }
    return StepTime(**{name: ureg.Quantity(value, "second") for name, value in seconds.items()})


def model_flops_utilization(decoder: Decoder, plan: Plan, peak: Quantity, step: Quantity) -> float:
    """Return the share of all chips' peak that a step turns into FLOPs that the model needs.

    Formula: model FLOPs / (chips peak time); what is computed twice counts once. Source: Chowdhery et al., PaLM, JMLR
    2023, section 4.1.

    Args:
        decoder: what is trained.
        plan: how the chips share it.
        peak: flop/second of a chip's data sheet.
        step: time of a step.
    """
    return float(decoder.model_flops(plan.batch) / (plan.chips * peak.m_as("flop/s") * step.m_as("second")))


def output_time(decoder: Decoder, share: BlockShare, chip: Roofline) -> dict[str, float]:
    """Return the seconds of the output layer and the loss for one microbatch, forward and backward.

    The layer is a product and its two gradients; each chip of a tensor group has its part of the vocabulary. The loss
    is a softmax in FP32, which both passes read and write once.

    Args:
        decoder: what is trained.
        share: the microbatch, and the chips that share it.
        chip: the rates of a chip.

    Returns:
        Seconds of "products" and of "elementwise" work.
    """
    rows = share.tokens * share.batch
    vocabulary = decoder.vocabulary / share.tensor_parallel
    product = ops.linear(batch=rows, d_in=decoder.block.width, d_out=round(vocabulary), dtype=share.dtype)
    elements = rows * vocabulary
    loss = Op("loss", "elementwise", "vector", "fp32", round(LOSS_FLOPS * elements), 4 * elements, 4 * elements)
    return {
        "products": 3 * float(chip.time(product).m_as("second")),
        "elementwise": 2 * float(chip.time(loss).m_as("second")),
    }


class _Microbatch:
    """Seconds of one microbatch on a stage in the middle of the pipeline, and of the output layer on the last."""

    def __init__(self, decoder: Decoder, plan: Plan, cluster: Cluster, imbalance: float) -> None:
        self.decoder, self.plan, self.cluster = decoder, plan, cluster
        self.share = BlockShare(
            decoder.block,
            decoder.tokens,
            plan.microbatch,
            tensor_parallel=plan.tensor,
            sequence_parallel=plan.sequence,
        )
        self.mlp_load = decoder.experts_per_token * imbalance
        self.rows = decoder.tokens * plan.microbatch
        self.size = bytes_per_element(self.share.dtype)
        self.joined = cluster.ring(plan.tensor)

    @property
    def layers(self) -> dict[str, float]:
        """Seconds of the layers of a stage, by kind."""
        both = (*self.share.forward, *self.share.backward)
        layers = self.decoder.layers / self.plan.pipeline
        return {
            "products": layers * self._seconds(op for op in both if op.engine == "tensor"),
            "elementwise": layers * self._seconds(op for op in both if op.engine == "vector"),
            "repeated": layers * self._seconds(self.share.repeated(self.plan.recompute)),
            "tensor": layers * sum(map(self._exchange_s, ("forward", "backward", "repeated"))),
            "experts": layers * self._experts_s,
            "sends": self._sends_s,
        }

    @property
    def output(self) -> dict[str, float]:
        """Seconds of the output layer and the loss, and of the sum of the gradient of its input."""
        exchange = self.joined.all_reduce_time(self.size * self.rows * self.decoder.block.width, self.plan.tensor)
        return {**output_time(self.decoder, self.share, self.cluster.chip), "tensor": float(exchange.m_as("second"))}

    @property
    def backward_s(self) -> float:
        """Seconds of the backward pass of a microbatch on a stage, behind which exchanges can hide."""
        repeated = (*self.share.backward, *self.share.repeated(self.plan.recompute))
        return self.decoder.layers / self.plan.pipeline * self._seconds(repeated)

    def _seconds(self, work: Iterable[Op]) -> float:
        """Seconds of operations; those of the MLP are done for every expert that a token passes."""
        total = 0.0
        for op in work:
            factor = self.mlp_load if op.name.split()[0] in ("up", "activation", "down") else 1.0
            total += factor * float(self.cluster.chip.time(op).m_as("second"))
        return total

    def _exchange_s(self, phase: str) -> float:
        return float(self.share.exchange_time(self.joined, phase, self.plan.recompute).m_as("second"))

    @property
    def _experts_s(self) -> float:
        """Seconds in which a layer's tokens go to their experts and come back, forward and backward."""
        if self.plan.expert == 1:
            return 0.0
        width = self.decoder.block.width / (self.plan.tensor if self.plan.sequence else 1)
        sent = self.size * self.rows * self.mlp_load * width
        joined = self.cluster.joining(self.plan.expert, apart=self.plan.tensor)
        passes = 6 if self.plan.recompute == "full" else 4
        return passes * float(joined.all_to_all_time(sent, self.plan.expert).m_as("second"))

    @property
    def _sends_s(self) -> float:
        """Seconds in which a stage sends a microbatch's results on and their gradients back, for each group of layers.

        Each chip of a tensor group sends its part.
        """
        if self.plan.pipeline == 1:
            return 0.0
        part = self.size * self.rows * self.decoder.block.width / self.plan.tensor
        joined = self.cluster.joining(2, apart=self.plan.tensor * self.plan.data)
        return 2 * self.plan.interleaving * float(joined.send_time(part).m_as("second"))


def _gradients_s(plan: Plan, cluster: Cluster, common: float, experts: float) -> float:
    """Seconds in which the data groups sum their gradients, and gather the weights that they share.

    Without sharding, an all-reduce. With it, a reduce-scatter of the gradients and an all-gather of the weights; if
    the weights are shared as well, they are gathered twice for each microbatch, for its two passes.
    """
    total = 0.0
    each = 4 if plan.fp32_gradients else ADAM_BYTES["gradients"]
    groups = ((common, plan.data, plan.tensor), (experts, plan.data // plan.expert, plan.tensor * plan.expert))
    for params, count, apart in groups:
        if count == 1 or params == 0:
            continue
        joined = cluster.ring(count, apart)
        if plan.sharding == 0:
            total += float(joined.all_reduce_time(each * params, count).m_as("second"))
        else:
            gathers = 2 * plan.microbatches if plan.sharding == 3 else 1
            gathered = gathers * joined.all_gather_time(ADAM_BYTES["weights"] * params, count)
            total += float((joined.reduce_scatter_time(each * params, count) + gathered).m_as("second"))
    return total
