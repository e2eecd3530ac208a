"""A model as the list of operations of one forward pass."""

from dataclasses import dataclass

from mlsys.core.dtypes import bytes_per_element
from mlsys.core.sourced import Source
from mlsys.models.kv_cache import kv_cache_bytes
from mlsys.models.training import Block
from mlsys.ops import Op
from mlsys.units import Quantity, byte, flop, param, token, ureg

MULTIPLY_ADD_KINDS = frozenset(
    ("attention", "attention_decode", "batched_matmul", "conv2d", "depthwise_conv2d", "linear", "matmul")
)
"""Kinds of ops that counts of "the FLOPs of a model" mean, torch's flop counter included."""


@dataclass(frozen=True)
class Model:
    """A model as the ops of one forward pass, in order, each a kernel of its own that reads and writes memory.

    Attributes:
        name: the model, and what the pass works on.
        dtype: number format of weights and activations.
        ops: the operations.
        source: the document that gives the model's shape.
    """

    name: str
    dtype: str
    ops: tuple[Op, ...]
    source: Source

    @property
    def params(self) -> Quantity:
        """Learned parameters; tables that two ops share count once."""
        return ureg.Quantity(sum(op.params for op in self.ops), param)

    @property
    def flops(self) -> Quantity:
        """FLOPs of the forward pass in convolutions, matrix products and attention, 2 per multiply-add."""
        return ureg.Quantity(sum(op.flop_count for op in self.ops if op.kind in MULTIPLY_ADD_KINDS), flop)

    @property
    def other_flops(self) -> Quantity:
        """FLOPs of all that `flops` leaves out: normalizations, activations, pooling, sums."""
        return ureg.Quantity(sum(op.flop_count for op in self.ops if op.kind not in MULTIPLY_ADD_KINDS), flop)

    @property
    def bytes(self) -> Quantity:
        """Bytes that the ops move when each is a kernel of its own."""
        return ureg.Quantity(sum(op.read_count + op.write_count for op in self.ops), byte)

    @property
    def weight_bytes(self) -> Quantity:
        """Size of the parameters in the model's number format."""
        return ureg.Quantity(sum(op.params for op in self.ops) * bytes_per_element(self.dtype), byte)

    @property
    def activation_bytes(self) -> Quantity:
        """Size of all ops' results together; `mlsys.models.training.kept_bytes` says which of them training keeps."""
        return ureg.Quantity(sum(op.write_count for op in self.ops), byte)

    @property
    def peak_activation_bytes(self) -> Quantity:
        """Largest sum of the activations that one op reads and writes: what inference needs at least, with reuse.

        Weights and KV cache, which stay, are counted apart.
        """
        return ureg.Quantity(max(op.read_count + op.write_count - op.resident_count for op in self.ops), byte)


@dataclass(frozen=True)
class LanguageModel(Model):
    """A decoder-only transformer with the shape of its KV cache.

    Attributes:
        layers: blocks of attention and MLP.
        kv_heads: heads of keys and values.
        head_dim: elements of a key or value.
        block: a block's widths, and what training keeps of it.
        vocabulary: tokens that the model knows.
    """

    layers: int
    kv_heads: int
    head_dim: int
    block: Block
    vocabulary: int

    @property
    def kv_bytes_per_token(self) -> Quantity:
        """KV cache of one token: 2 layers kv_heads head_dim numbers."""
        return ureg.Quantity(self.kv_cache_bytes(tokens=1).m_as(byte), byte / token)

    def kv_cache_bytes(self, tokens: int, batch: int = 1) -> Quantity:
        """KV cache of `batch` sequences of `tokens` each; errors are those of `mlsys.models.kv_cache.kv_cache_bytes`.

        >>> from mlsys import models
        >>> models.llama2_7b().kv_cache_bytes(tokens=2048).to("GB")
        <Quantity(1.073741..., 'gigabyte')>
        """
        return kv_cache_bytes(
            layers=self.layers,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            tokens=tokens,
            batch=batch,
            dtype=self.dtype,
        )

    def kept_bytes(self, tokens: int, batch: int = 1, recompute: str = "none") -> Quantity:
        """Bytes that training in a 16-bit format keeps for the backward pass: of all blocks, and of the two ends.

        Errors are those of `mlsys.models.training.Block.kept_bytes`.

        >>> from mlsys import models
        >>> models.gpt2("xl").kept_bytes(tokens=1024).to("GB")
        <Quantity(9.17..., 'gigabyte')>
        """
        blocks: Quantity = self.layers * self.block.kept_bytes(tokens, batch, recompute=recompute)
        ends: Quantity = self.block.ends_kept_bytes(tokens, batch, vocabulary=self.vocabulary)
        kept: Quantity = blocks + ends
        return kept
