"""A language model, GPT-2: what prefill and decode take, beside the sum of what their ops must take."""

from collections.abc import Iterator
from functools import partial

import torch
from torch.nn import functional

from mlsys import models
from mlsys.bench.suite.setting import Setting
from mlsys.measure.gpu_ceilings import PRECISIONS
from mlsys.measure.records import Row
from mlsys.models import LanguageModel

NAME = "GPT-2"
DTYPE = "fp16"
WEIGHT_SCALE = 0.02
"""Spread of the random weights, as GPT-2 starts its training; sums over a row then neither grow nor vanish."""

Affine = tuple[torch.Tensor, torch.Tensor]
"""Weight and bias of a linear layer, or scale and shift of a normalization."""


class TorchDecoder:
    """GPT-2 that torch can run, with random weights and a KV cache of fixed length.

    Each op of `mlsys.models.gpt2` is one call of torch's own, attention included, which torch fuses. A call writes keys
    and values to their places in the cache, so that a CUDA graph can replay it.
    """

    def __init__(self, model: LanguageModel, *, batch: int, context: int, dtype: torch.dtype, device: str) -> None:
        self.model, self.dtype, self.device = model, dtype, device
        block = model.block
        width, kept = block.width, block.kv_heads * model.head_dim
        self.tokens, self.positions = self._normal(model.vocabulary, width), self._normal(context, width)
        self.layers: list[dict[str, Affine]] = [
            {
                "norm1": self._norm(width),
                "qkv": self._linear(width, width + 2 * kept),
                "projection": self._linear(width, width),
                "norm2": self._norm(width),
                "up": self._linear(width, block.mlp),
                "down": self._linear(block.mlp, width),
            }
            for _ in range(model.layers)
        ]
        self.norm = self._norm(width)
        cache = (model.layers, 2, batch, block.kv_heads, context, model.head_dim)
        self.cache = torch.zeros(cache, dtype=dtype, device=device)

    def __call__(self, ids: torch.Tensor, start: int) -> torch.Tensor:
        """Run the tokens `ids` (batch, n) at positions `start` to `start + n`; returns logits (batch, n, vocabulary).

        Either a prompt from position 0 on, or a single token after those that the cache holds.
        """
        end = start + ids.shape[1]
        x = functional.embedding(ids, self.tokens) + self.positions[start:end]
        for layer, cache in zip(self.layers, self.cache, strict=True):
            mixed = self._attend(self._normed(x, layer["norm1"]), layer, cache, start, end)
            x = x + functional.linear(mixed, *layer["projection"])
            hidden = functional.linear(self._normed(x, layer["norm2"]), *layer["up"])
            x = x + functional.linear(functional.gelu(hidden, approximate="tanh"), *layer["down"])
        return functional.linear(self._normed(x, self.norm), self.tokens)

    def _attend(
        self, x: torch.Tensor, layer: dict[str, Affine], cache: torch.Tensor, start: int, end: int
    ) -> torch.Tensor:
        """Attention over the first `end` tokens of the cache, after the new ones are in it."""
        width, kept = self.model.block.width, self.model.block.kv_heads * self.model.head_dim
        q, k, v = (
            part.unflatten(-1, (-1, self.model.head_dim)).transpose(1, 2)
            for part in functional.linear(x, *layer["qkv"]).split((width, kept, kept), dim=-1)
        )
        for held, new in zip(cache, (k, v), strict=True):
            held[:, :, start:end] = new
        keys, values = cache[:, :, :, :end]
        mixed = functional.scaled_dot_product_attention(q, keys, values, is_causal=end - start > 1)
        return mixed.transpose(1, 2).flatten(2)

    def _normed(self, x: torch.Tensor, norm: Affine) -> torch.Tensor:
        return functional.layer_norm(x, (self.model.block.width,), *norm)

    def _norm(self, width: int) -> Affine:
        return torch.ones(width, dtype=self.dtype, device=self.device), self._normal(width)

    def _linear(self, d_in: int, d_out: int) -> Affine:
        return self._normal(d_out, d_in), self._normal(d_out)

    def _normal(self, *shape: int) -> torch.Tensor:
        return (WEIGHT_SCALE * torch.randn(shape, device=self.device)).to(self.dtype)


def gpt2(setting: Setting) -> Iterator[Row]:
    """Time prefill of prompts, and one step of decode at the same context, for each size and batch."""
    sizes = setting.sizes
    for size in sizes.decoders:
        for batch in sizes.prompts:
            yield from _passes(setting, size, batch, decode=False)
        for batch in sizes.sequences:
            yield from _passes(setting, size, batch, decode=True)


def _passes(setting: Setting, size: str, batch: int, *, decode: bool) -> Iterator[Row]:
    """Time one pass, queued from Python and replayed from a graph; its FLOPs are those of products and attention."""
    context = setting.sizes.context
    model = models.gpt2(size, batch=batch, seq=context, decode=decode, dtype=DTYPE)
    net = TorchDecoder(model, batch=batch, context=context, dtype=PRECISIONS[DTYPE], device=setting.device)
    ids = torch.randint(model.vocabulary, (batch, 1 if decode else context), device=setting.device)
    call = partial(net, ids, context - 1 if decode else 0)
    ceiling = setting.ceilings.product_roof(DTYPE).m_as("TFLOP/s")
    how = {"call": call, "work": model.flops.m_as("TFLOP"), "ceiling": ceiling, "rate_unit": "TFLOP/s"}
    for variant, graph in (("queued from Python", False), ("graph", True)):
        with torch.no_grad():
            if not bool(torch.isfinite(call()).all()):
                raise ArithmeticError(f"{model.name} overflows {DTYPE}: its rate would mean nothing")
            phase = f"{'decode' if decode else 'prefill'}, {variant}"
            row = setting.row(f"{NAME} {size}", phase, (batch, context), DTYPE, graph=graph, **how)
        yield row
