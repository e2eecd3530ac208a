"""Decoder-only language models: GPT-2 in four sizes and Llama 2 in three."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from mlsys import ops
from mlsys.core.arguments import positive_int
from mlsys.errors import InvalidValue, UnknownName
from mlsys.models.model import LanguageModel
from mlsys.models.shapes import shapes
from mlsys.models.training import Block
from mlsys.ops import Op

T = TypeVar("T")

GELU_FLOPS = 9
"""The tanh form, x/2 (1 + tanh(c (x + a x^3))): six products, two sums, one tanh."""
SWIGLU_FLOPS = 5
"""x sigmoid(x) y: negate, exponential, sum, division, product with y."""
ROPE_FLOPS = 3
"""Rotary embedding: four products and two sums for a pair of elements."""


def gpt2(
    size: str = "xl", *, batch: int = 1, seq: int = 1024, decode: bool = False, dtype: str = "fp16"
) -> LanguageModel:
    """GPT-2 with weights shared between token embedding and output layer.

    Source: Radford et al., Language Models are Unsupervised Multitask Learners, 2019.

    Args:
        size: "small", "medium", "large" or "xl".
        batch: sequences.
        seq: tokens of each sequence; with `decode`, tokens in the KV cache, the new one included.
        decode: one step that makes one new token per sequence, instead of all tokens at once (prefill).
        dtype: number format of weights, activations and cache.

    Raises:
        InvalidValue: if a size is not a positive integer, or seq is more than the model's 1,024 positions.
        UnknownName: if size or dtype are unknown.

    >>> from mlsys import models
    >>> step = models.gpt2("xl", seq=1, decode=True)
    >>> step.params, step.weight_bytes.to("GB"), round(step.flops.to("GFLOP"), 1)
    (<Quantity(1557611200, 'param')>, <Quantity(3.1152224, 'gigabyte')>, <Quantity(3.1, 'gigaflop')>)
    """
    family = shapes().gpt2
    shape = _size_of("gpt2", family.sizes, size)
    width, head_dim, vocabulary = shape.width, family.head_dim, family.vocabulary
    heads = width // head_dim
    tokens = _tokens(batch, seq, decode, family.positions)
    attention = _attention(batch, seq, decode, heads, heads, head_dim, dtype)
    norm = ops.layernorm(rows=tokens, cols=width, dtype=dtype)
    residual = ops.elementwise(elements=tokens * width, inputs=2, dtype=dtype)
    hidden = family.mlp_ratio * width
    layer = (
        norm.named("norm1"),
        _linear("qkv", tokens, width, 3 * width, dtype),
        attention,
        _linear("projection", tokens, width, width, dtype),
        residual.named("add1"),
        norm.named("norm2"),
        _linear("mlp.up", tokens, width, hidden, dtype),
        ops.elementwise(elements=tokens * hidden, flops_per_element=GELU_FLOPS, dtype=dtype).named("mlp.gelu"),
        _linear("mlp.down", tokens, hidden, width, dtype),
        residual.named("add2"),
    )
    start = [
        ops.embedding(lookups=tokens, dim=width, table_rows=vocabulary, dtype=dtype).named("embed.tokens"),
        ops.embedding(lookups=tokens, dim=width, table_rows=family.positions, dtype=dtype).named("embed.positions"),
        residual.named("embed.add"),
    ]
    # Its weights are the token embedding's, which has counted them.
    logits = replace(_linear("logits", tokens, width, vocabulary, dtype, bias=False), params=0)
    end = [norm.named("norm"), logits]
    name = _pass_name(f"GPT-2 {size}", batch, seq, decode)
    all_ops = _stack(start, layer, shape.layers, end)
    block = Block(width, heads, heads, hidden)
    return LanguageModel(name, dtype, all_ops, family.document, shape.layers, heads, head_dim, block, vocabulary)


def llama2_7b(*, batch: int = 1, seq: int = 4096, decode: bool = False, dtype: str = "fp16") -> LanguageModel:
    """Llama 2 7B; arguments, errors and source as for `llama2`.

    >>> from mlsys import models
    >>> models.llama2_7b(seq=2048, decode=True).params
    <Quantity(6738415616, 'param')>
    """
    return llama2("7b", batch=batch, seq=seq, decode=decode, dtype=dtype)


def llama2_13b(*, batch: int = 1, seq: int = 4096, decode: bool = False, dtype: str = "fp16") -> LanguageModel:
    """Llama 2 13B; arguments, errors and source as for `llama2`.

    >>> from mlsys import models
    >>> models.llama2_13b().kv_bytes_per_token
    <Quantity(819200, 'byte / token')>
    """
    return llama2("13b", batch=batch, seq=seq, decode=decode, dtype=dtype)


def llama2_70b(*, batch: int = 1, seq: int = 4096, decode: bool = False, dtype: str = "fp16") -> LanguageModel:
    """Llama 2 70B, eight query heads to each head of keys and values; arguments, errors and source as for `llama2`.

    >>> from mlsys import models
    >>> models.llama2_70b().weight_bytes.to("GB")
    <Quantity(137.953296..., 'gigabyte')>
    """
    return llama2("70b", batch=batch, seq=seq, decode=decode, dtype=dtype)


def llama2(size: str, *, batch: int = 1, seq: int = 4096, decode: bool = False, dtype: str = "fp16") -> LanguageModel:
    """Llama 2 with RMS normalization, rotary embedding and a gated MLP.

    Source: Touvron et al., Llama 2: Open Foundation and Fine-Tuned Chat Models, arXiv:2307.09288 (2023).

    Args:
        size: "7b", "13b" or "70b".
        batch: sequences.
        seq: tokens of each sequence; with `decode`, tokens in the KV cache, the new one included.
        decode: one step that makes one new token per sequence, instead of all tokens at once (prefill).
        dtype: number format of weights, activations and cache.

    Raises:
        InvalidValue: if a size is not a positive integer, or seq is more than the model's 4,096 positions.
        UnknownName: if size or dtype are unknown.

    >>> round(llama2("7b", seq=4096).flops.to("TFLOP"))
    <Quantity(63, 'teraflop')>
    """
    family = shapes().llama2
    shape = _size_of("llama2", family.sizes, size)
    width, heads, kv_heads, hidden = shape.width, shape.heads, shape.kv_heads, shape.mlp
    head_dim = width // heads
    tokens = _tokens(batch, seq, decode, family.positions)
    rotated = tokens * (heads + kv_heads) * head_dim
    norm = ops.rmsnorm(rows=tokens, cols=width, dtype=dtype)
    residual = ops.elementwise(elements=tokens * width, inputs=2, dtype=dtype)
    gate = ops.elementwise(elements=tokens * hidden, inputs=2, flops_per_element=SWIGLU_FLOPS, dtype=dtype)
    layer = (
        norm.named("norm1"),
        _linear("qkv", tokens, width, (heads + 2 * kv_heads) * head_dim, dtype, bias=False),
        ops.elementwise(elements=rotated, flops_per_element=ROPE_FLOPS, dtype=dtype).named("rope"),
        _attention(batch, seq, decode, heads, kv_heads, head_dim, dtype),
        _linear("projection", tokens, width, width, dtype, bias=False),
        residual.named("add1"),
        norm.named("norm2"),
        _linear("mlp.gate_up", tokens, width, 2 * hidden, dtype, bias=False),
        gate.named("mlp.swiglu"),
        _linear("mlp.down", tokens, hidden, width, dtype, bias=False),
        residual.named("add2"),
    )
    vocabulary = family.vocabulary
    start = [ops.embedding(lookups=tokens, dim=width, table_rows=vocabulary, dtype=dtype).named("embed.tokens")]
    end = [norm.named("norm"), _linear("logits", tokens, width, vocabulary, dtype, bias=False)]
    name = _pass_name(f"Llama 2 {size.upper()}", batch, seq, decode)
    all_ops = _stack(start, layer, shape.layers, end)
    block = Block(width, heads, kv_heads, hidden, gated=True, dropout=False)
    return LanguageModel(name, dtype, all_ops, family.document, shape.layers, kv_heads, head_dim, block, vocabulary)


def _tokens(batch: int, seq: int, decode: bool, positions: int) -> int:
    """Tokens that one pass works on."""
    batch, seq = positive_int("batch", batch), positive_int("seq", seq)
    if seq > positions:
        raise InvalidValue(f"seq is {seq}, but the model has {positions} positions: use at most {positions}")
    return batch if decode else batch * seq


def _attention(batch: int, seq: int, decode: bool, heads: int, kv_heads: int, head_dim: int, dtype: str) -> Op:
    make: Callable[..., Op] = ops.attention_decode if decode else ops.attention
    length = {"context" if decode else "seq": seq}
    op = make(batch=batch, heads=heads, kv_heads=kv_heads, head_dim=head_dim, dtype=dtype, **length)
    return op.named("attention")


def _linear(name: str, tokens: int, d_in: int, d_out: int, dtype: str, bias: bool = True) -> Op:
    return ops.linear(batch=tokens, d_in=d_in, d_out=d_out, bias=bias, dtype=dtype).named(name)


def _stack(start: Sequence[Op], layer: Sequence[Op], layers: int, end: Sequence[Op]) -> tuple[Op, ...]:
    """All ops of the pass; the layers are alike, so they share their ops."""
    return (*start, *(tuple(layer) * layers), *end)


def _pass_name(model: str, batch: int, seq: int, decode: bool) -> str:
    work = f"one new token at context {seq}" if decode else f"{seq} tokens"
    return f"{model}, batch {batch}, {work}"


def _size_of(family: str, sizes: Mapping[str, T], size: str) -> T:
    if size not in sizes:
        raise UnknownName.of(f"size of {family}", size, sizes)
    return sizes[size]
