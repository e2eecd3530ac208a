"""What training keeps in memory: results for the backward pass, and the state of the optimizer.

>>> gpt3 = Block(width=12288, heads=96, kv_heads=96, mlp=49152)
>>> gpt3.kept_bytes(tokens=2048).to("GB")
<Quantity(2.86890..., 'gigabyte')>
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mlsys.core.arguments import Amount, amount, one_of, positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.ops import Op
from mlsys.units import Quantity, ureg

RECOMPUTE = ("none", "selective", "full")
"""What is computed again in the backward pass: nothing, the attention between q, k, v and its output, or the block."""
ADAM_BYTES = {"weights": 2, "gradients": 2, "master weights": 4, "momentum": 4, "variance": 4}
"""Bytes of each parameter while Adam trains in mixed precision; Rajbhandari et al., ZeRO, 2020, section 3.1."""
SIZE = 2
"""Bytes of a result in a 16-bit format."""


def adam_bytes(params: Amount, *, fp32_gradients: bool = False) -> Quantity:
    """Return the bytes of weights, gradients and Adam's state in mixed precision: 16 for each parameter.

    Args:
        params: a number, or a quantity of param.
        fp32_gradients: gradients of four bytes, as Megatron-LM adds them up; then each parameter has 18 bytes.

    Raises:
        InvalidValue: if `params` is negative.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import GB
    >>> adam_bytes(7e9).to(GB)
    <Quantity(112.0, 'gigabyte')>
    """
    each = sum(ADAM_BYTES.values()) + (ADAM_BYTES["gradients"] if fp32_gradients else 0)
    return ureg.Quantity(each * amount("params", params, "param"), "byte")


@dataclass(frozen=True)
class Block:
    """One block of attention and MLP, and the results that its backward pass needs, in a 16-bit format.

    With dropout, as many heads of keys as of queries and an MLP of four times the width, the bytes for each token are
    34 width + 5 heads tokens; source: Korthikanti et al., Reducing Activation Recomputation in Large Transformer
    Models, MLSys 2023, table 2. The other cases are counted in the same way: the inputs of each product, of each
    normalization and of the activation function, the result of softmax, and one byte for each element of a dropout
    mask. A tensor that several operations keep counts once.

    Attributes:
        width: elements of a token, h.
        heads: heads of queries, a.
        kv_heads: heads of keys and values.
        mlp: elements between the layers of the MLP.
        gated: the MLP multiplies a gate through SiLU with a second product, and keeps four results instead of two.
        dropout: some results of softmax, of attention and of the MLP are set to zero at random.

    Raises:
        InvalidValue: if a size is not a positive integer, the heads do not divide the width, or the heads of keys and
            values do not divide those of queries.
    """

    width: int
    heads: int
    kv_heads: int
    mlp: int
    gated: bool = False
    dropout: bool = True

    def __post_init__(self) -> None:
        for name in ("width", "heads", "kv_heads", "mlp"):
            positive_int(name, getattr(self, name))
        if self.width % self.heads:
            raise InvalidValue(
                f"width is {self.width} and heads is {self.heads}: give a width that the heads divide, such as "
                f"{self.heads * max(1, round(self.width / self.heads))}"
            )
        if self.heads % self.kv_heads:
            raise InvalidValue(
                f"heads is {self.heads} and kv_heads is {self.kv_heads}: every head of keys and values serves equally "
                "many heads of queries, so kv_heads must divide heads"
            )

    def kept_bytes(
        self,
        tokens: int,
        batch: int = 1,
        *,
        recompute: str = "none",
        tensor_parallel: int = 1,
        sequence_parallel: bool = False,
    ) -> Quantity:
        """Return the bytes that one device keeps of this block from the forward to the backward pass.

        Args:
            tokens: s, of each sequence.
            batch: b, sequences that pass together.
            recompute: "none"; "selective" drops the scores of attention; "full" keeps the block's input alone.
            tensor_parallel: t, devices that share the products of the block.
            sequence_parallel: the devices also share what is between the products, the block's input among it.

        Raises:
            InvalidValue: if a size is not a positive integer, or `recompute` has another value.

        >>> block = Block(width=12288, heads=96, kv_heads=96, mlp=49152)
        >>> block.kept_bytes(2048, recompute="selective", tensor_parallel=8, sequence_parallel=True).to("MB")
        <Quantity(106.954752, 'megabyte')>
        """
        tokens, batch = positive_int("tokens", tokens), positive_int("batch", batch)
        devices = positive_int("tensor_parallel", tensor_parallel)
        shared = devices if sequence_parallel else 1
        if one_of("recompute", recompute, RECOMPUTE) == "full":
            return ureg.Quantity(tokens * batch * SIZE * self.width / shared, "byte")
        scores = 0 if recompute == "selective" else self._scores_per_token(tokens)
        outside = self._outside_per_token / shared
        return ureg.Quantity(tokens * batch * (outside + (self._inside_per_token + scores) / devices), "byte")

    def ends_kept_bytes(self, tokens: int, batch: int = 1, *, vocabulary: int) -> Quantity:
        """Return what is kept besides the blocks: the last normalization, the output layer and its softmax in FP32.

        Formula: tokens batch (4 width + 4 vocabulary), and a mask of width bytes for each token with dropout.

        Args:
            tokens: of each sequence.
            batch: sequences that pass together.
            vocabulary: elements of the output layer's result for a token.

        Raises:
            InvalidValue: if a size is not a positive integer.

        >>> Block(width=768, heads=12, kv_heads=12, mlp=3072).ends_kept_bytes(1024, vocabulary=50257).to("MB")
        <Quantity(209.784832, 'megabyte')>
        """
        each = 2 * SIZE * self.width + (self.width if self.dropout else 0) + 4 * positive_int("vocabulary", vocabulary)
        return ureg.Quantity(positive_int("tokens", tokens) * positive_int("batch", batch) * each, "byte")

    @property
    def _outside_per_token(self) -> int:
        """Bytes that tensor parallelism does not split: inputs of normalizations and products, and masks of dropout."""
        return 4 * SIZE * self.width + (2 * self.width if self.dropout else 0)

    @property
    def _inside_per_token(self) -> int:
        """Bytes of q, k, v, the attention's output, and the results inside the MLP."""
        keys_and_values = 2 * self.kv_heads * self.width // self.heads
        return SIZE * (2 * self.width + keys_and_values + (4 if self.gated else 2) * self.mlp)

    def _scores_per_token(self, tokens: int) -> int:
        """Bytes of softmax's result, and with dropout of its mask and of the result after it."""
        return (2 * SIZE + 1 if self.dropout else SIZE) * self.heads * tokens


def stack_kept_bytes(block: Quantity, layers: int, *, pipeline_parallel: int = 1, interleaving: int = 1) -> Quantity:
    """Return what the first device of a pipeline keeps of all its blocks: layers x block (1 + (p - 1) / (p m)).

    Without interleaving, the first device holds 1/p of the layers for p batches, which is as much as all layers of one
    batch. With m groups of layers on each device it keeps more: the factor in parentheses.
    Source: Korthikanti et al., section 4.2.3.

    Args:
        block: what the device keeps of one block.
        layers: blocks of the whole model.
        pipeline_parallel: p, devices that share the layers.
        interleaving: m, groups of layers on each device.

    Raises:
        InvalidValue: if a size is not a positive integer, or groups are interleaved without a pipeline.

    >>> stack_kept_bytes(ureg.Quantity(10, "GB"), 4, pipeline_parallel=4, interleaving=2).to("GB")
    <Quantity(55.0, 'gigabyte')>
    """
    layers, stages = positive_int("layers", layers), positive_int("pipeline_parallel", pipeline_parallel)
    groups = positive_int("interleaving", interleaving)
    if stages == 1 and groups > 1:
        raise InvalidValue(f"interleaving is {groups}, but there is no pipeline: set pipeline_parallel above 1")
    factor = 1 + (stages - 1) / (stages * groups) if groups > 1 else 1.0
    kept: Quantity = layers * factor * block
    return kept


def kept_bytes(ops: Sequence[Op]) -> Quantity:
    """Return what training keeps of the results of a network of convolutions or dense layers, and their input.

    A result is kept unless a ReLU or a sum is what reads it: a ReLU's gradient needs the ReLU's own result, a sum's
    gradient needs nothing. The reader of a result is taken to be the next op; before the layers of a shortcut, which
    have "shortcut" in their names, it is the next op after them. Left out are the indices of a max pooling, which
    PyTorch also keeps, with eight bytes for each of its results.

    Args:
        ops: the operations in order.

    >>> from mlsys import models
    >>> kept_bytes(models.resnet50(batch=32).ops).to("GB")
    <Quantity(1.348..., 'gigabyte')>
    """
    first = ops[0].read_count - ops[0].resident_count
    main = [op for op in ops if not _is_on_shortcut(op)]
    readers = [*pairwise(main), *((op, reader) for op, reader in pairwise(ops) if _is_on_shortcut(op))]
    kept = sum(op.write_count for op, reader in readers if not _is_relu_or_sum(reader))
    return ureg.Quantity(first + kept, "byte")


def _is_on_shortcut(op: Op) -> bool:
    """Whether an op is a layer of a shortcut: a sum reads its way's result and the main way's."""
    return ".shortcut." in op.name


def _is_relu_or_sum(op: Op) -> bool:
    """Whether an op does one FLOP for each element of its result."""
    return op.kind == "elementwise" and op.flop_count * bytes_per_element(op.dtype) == op.write_count
