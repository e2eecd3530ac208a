"""A transformer block on the chips that share it: what each of them computes, moves and exchanges.

Tensor parallelism gives each of t chips the heads / t of attention and mlp / t of the MLP: the first product of each
half is cut by columns, the second by rows, so that one sum over the chips ends each half. Sequence parallelism also
cuts what lies between the products, by tokens: each sum becomes a reduce-scatter and an all-gather.
Sources: Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3; Korthikanti et al., Reducing Activation
Recomputation in Large Transformer Models, MLSys 2023, section 4.

>>> from mlsys.models import Block
>>> gpt3 = Block(width=12288, heads=96, kv_heads=96, mlp=49152)
>>> whole, eighth = BlockShare(gpt3, 2048), BlockShare(gpt3, 2048, tensor_parallel=8)
>>> round(sum(op.flop_count for op in whole.products) / sum(op.flop_count for op in eighth.products), 3)
8.0
"""

from dataclasses import dataclass
from functools import cached_property

from mlsys import ops
from mlsys.core.arguments import one_of, positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.models import Block
from mlsys.models.training import RECOMPUTE
from mlsys.ops import Op
from mlsys.scaling.network import Fabric
from mlsys.units import Quantity, ureg

MASK_BYTES = 1
"""Bytes of an element of a dropout mask."""
NORM_FLOPS, SOFTMAX_FLOPS, ADD_FLOPS, ACTIVATION_FLOPS = 8, 5, 3, 9
"""FLOPs of each element in what is not a product; memory limits all of these on every chip of the package."""
FUSED_BACKWARD = 2.5
"""FLOPs of fused attention's backward pass over those of its forward pass: five products where there were two."""


@dataclass(frozen=True)
class BlockShare:
    """The part of a block that one of its chips does for one microbatch.

    Attributes:
        block: the block.
        tokens: s, of each sequence.
        batch: b, sequences that pass together.
        tensor_parallel: t, chips that share the block.
        sequence_parallel: the chips also share what is between the products.
        fused_attention: attention is one kernel that writes no scores to memory.
        dtype: number format of weights and results.

    Raises:
        InvalidValue: if a size is not a positive integer, or the chips do not divide heads, MLP or tokens.
    """

    block: Block
    tokens: int
    batch: int = 1
    tensor_parallel: int = 1
    sequence_parallel: bool = False
    fused_attention: bool = False
    dtype: str = "fp16"

    def __post_init__(self) -> None:
        chips = positive_int("tensor_parallel", self.tensor_parallel)
        for name in ("tokens", "batch"):
            positive_int(name, getattr(self, name))
        shared = {"heads": self.block.heads, "kv_heads": self.block.kv_heads, "mlp": self.block.mlp}
        if self.sequence_parallel:
            shared["tokens"] = self.tokens
        for name, size in shared.items():
            if size % chips:
                raise InvalidValue(
                    f"{chips} chips cannot share {name} = {size}: {size} / {chips} leaves {size % chips} over; give a "
                    f"tensor_parallel that divides {size}, such as {_divisor_below(size, chips)}"
                )

    @property
    def forward(self) -> tuple[Op, ...]:
        """The operations of the forward pass, in order."""
        before, attention, after = self._forward
        return (*before, *attention, *after)

    @property
    def products(self) -> tuple[Op, ...]:
        """The matrix products of the forward pass, those of attention included."""
        return tuple(op for op in self.forward if op.engine == "tensor")

    def repeated(self, recompute: str) -> tuple[Op, ...]:
        """The operations that the backward pass does again first: none, those of attention alone, or all.

        Args:
            recompute: "none", "selective" or "full".

        Raises:
            InvalidValue: if `recompute` has another value.
        """
        if one_of("recompute", recompute, RECOMPUTE) == "full":
            return self.forward
        return self._forward[1] if recompute == "selective" else ()

    @cached_property
    def backward(self) -> tuple[Op, ...]:
        """The operations of the backward pass, without what it repeats.

        A product has two: one for the gradient of its input and one for that of its other operand, each as large.
        """
        products = [op for op in self.products if op.kind != "attention"]
        doubled = [op.named(f"{op.name} d{side}") for op in products for side in ("X", "W")]
        if self.fused_attention:
            doubled.append(self._fused(FUSED_BACKWARD, reads=5, writes=3))
        return (*doubled, *self._backward_elementwise)

    def exchange_time(self, fabric: Fabric, phase: str, recompute: str = "full") -> Quantity:
        """Time of the collectives among the chips of this block.

        With tensor parallelism alone: two all-reduces of 2 b s h bytes in a pass. With sequence parallelism: a
        reduce-scatter and an all-gather in the place of each, and in the backward pass two more all-gathers, since a
        chip kept only its part of what the first products read.

        Args:
            fabric: what joins the chips.
            phase: "forward", "backward", or "repeated", the forward pass that full recomputation does again.
            recompute: for "repeated": unless it is "full", nothing is exchanged again.

        Raises:
            InvalidValue: if `phase` or `recompute` has another value, or the fabric joins fewer chips.
        """
        one_of("phase", phase, ("forward", "backward", "repeated"))
        one_of("recompute", recompute, RECOMPUTE)
        if self.tensor_parallel == 1 or (phase == "repeated" and recompute != "full"):
            return ureg.Quantity(0.0, "second")
        size = self._size * self.tokens * self.batch * self.block.width
        if not self.sequence_parallel:
            reduced: Quantity = 2 * fabric.all_reduce_time(size, self.tensor_parallel)
            return reduced
        halves = 6 if phase == "backward" else 4
        scattered: Quantity = halves * fabric.reduce_scatter_time(size, self.tensor_parallel)
        return scattered

    @property
    def _size(self) -> int:
        return int(bytes_per_element(self.dtype))

    @property
    def _rows(self) -> int:
        """Tokens of all sequences."""
        return self.tokens * self.batch

    @property
    def _between(self) -> int:
        """Elements of a result between the products that this chip works on."""
        return self._rows * self.block.width // (self.tensor_parallel if self.sequence_parallel else 1)

    @property
    def _scores(self) -> int:
        return self.batch * self.block.heads // self.tensor_parallel * self.tokens**2

    @property
    def _hidden(self) -> int:
        return self._rows * self.block.mlp // self.tensor_parallel

    @cached_property
    def _forward(self) -> tuple[tuple[Op, ...], tuple[Op, ...], tuple[Op, ...]]:
        """The operations before attention, those of attention, which selective recomputation repeats, and the rest."""
        block, chips = self.block, self.tensor_parallel
        width, head = block.width, block.width // block.heads
        keys_and_values = 2 * block.kv_heads * head
        mask = MASK_BYTES if block.dropout else 0
        norm = self._elementwise("norm", self._between, NORM_FLOPS, reads=1, writes=1)
        add = self._elementwise("add", self._between, ADD_FLOPS, reads=2, writes=1, mask=mask)
        ups = 2 if block.gated else 1
        before = (norm, self._linear("qkv", width, (width + keys_and_values) // chips))
        after = (
            self._linear("projection", width // chips, width),
            add,
            norm,
            *(self._linear("up", width, block.mlp // chips) for _ in range(ups)),
            self._elementwise("activation", self._hidden, ACTIVATION_FLOPS, reads=ups, writes=1),
            self._linear("down", block.mlp // chips, width),
            add,
        )
        if self.fused_attention:
            return before, (self._fused(1, reads=3, writes=1),), after
        heads = self.batch * block.heads // chips
        attention = [
            self._attention_product("scores", heads, self.tokens, head),
            self._elementwise("softmax", self._scores, SOFTMAX_FLOPS, reads=1, writes=1),
            self._attention_product("values", heads, head, self.tokens),
        ]
        if block.dropout:
            attention.insert(2, self._elementwise("dropout", self._scores, 1, reads=1, writes=1, mask=mask))
        return before, tuple(attention), after

    @property
    def _backward_elementwise(self) -> tuple[Op, ...]:
        """Gradients of what is no product; of a sum of two branches, the sum of their gradients."""
        ups = 2 if self.block.gated else 1
        mask = MASK_BYTES if self.block.dropout else 0
        norm = self._elementwise("norm dX", self._between, 2 * NORM_FLOPS, reads=2, writes=1)
        branches = self._elementwise("add dX", self._between, 1, reads=2, writes=1)
        found = [
            norm, norm, branches, branches,
            self._elementwise("activation dX", self._hidden, 2 * ACTIVATION_FLOPS, reads=1 + ups, writes=ups),
        ]  # fmt: skip
        if not self.fused_attention:
            found.append(self._elementwise("softmax dX", self._scores, SOFTMAX_FLOPS, reads=2, writes=1))
        if self.block.dropout:
            found += [self._elementwise("dropout dX", self._between, 1, reads=1, writes=1, mask_read=mask)] * 2
            if not self.fused_attention:
                found.append(self._elementwise("dropout dX", self._scores, 1, reads=1, writes=1, mask_read=mask))
        return tuple(found)

    def _linear(self, name: str, d_in: int, d_out: int) -> Op:
        return ops.linear(batch=self._rows, d_in=d_in, d_out=d_out, dtype=self.dtype).named(name)

    def _attention_product(self, name: str, heads: int, n: int, k: int) -> Op:
        return ops.batched_matmul(batch=heads, m=self.tokens, n=n, k=k, dtype=self.dtype).named(name)

    def _fused(self, factor: float, reads: int, writes: int) -> Op:
        """Attention as one kernel: `factor` times the FLOPs of its two products; of q, k, v and the like, bytes."""
        heads, head = self.batch * self.block.heads // self.tensor_parallel, self.block.width // self.block.heads
        flops = round(factor * 4 * heads * self.tokens**2 * head)
        each = self._size * heads * self.tokens * head
        return Op("attention", "attention", "tensor", self.dtype, flops, reads * each, writes * each)

    def _elementwise(
        self, name: str, elements: int, flops: int, *, reads: int, writes: int, mask: int = 0, mask_read: int = 0
    ) -> Op:
        """An operation on each element, which reads and writes so many tensors and, beside them, bytes of a mask."""
        read, written = elements * (self._size * reads + mask_read), elements * (self._size * writes + mask)
        return Op(name, "elementwise", "vector", self.dtype, flops * elements, read, written)


def _divisor_below(size: int, chips: int) -> int:
    """Return the largest divisor of `size` below `chips`."""
    return next(number for number in range(chips - 1, 0, -1) if size % number == 0)
