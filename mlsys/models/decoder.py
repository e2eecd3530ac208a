"""A GPT-2 that computes: its weights as tensors, read from a checkpoint, and the token that follows in plain torch.

It is the reference that kernels are compared with: float32, one operation after the other, and a cache of the keys and
values of earlier tokens. `shipped` is a small model that this project trained on the pages of its own book (one token
per character); a published GPT-2 is read from its state dict by `from_state`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Self

from mlsys.core.arguments import positive_int
from mlsys.errors import InvalidValue, UserError
from mlsys.models.shapes import shapes

if TYPE_CHECKING:
    import torch

SHIPPED = "checkpoints/book_gpt2.npz"
"""The shipped checkpoint's place in `mlsys/data`; `labs/capstone/train.py` writes it."""

CHARACTERS = "\n" + "".join(chr(code) for code in range(32, 127))
"""Characters of the shipped checkpoint, in the order of its tokens."""

EPSILON = 1e-5
"""Number that layer normalization adds to the variance, as GPT-2 does."""

LAYER_NAMES = {
    "norm1_gain": "ln_1.weight",
    "norm1_shift": "ln_1.bias",
    "qkv_weight": "attn.c_attn.weight",
    "qkv_bias": "attn.c_attn.bias",
    "projection_weight": "attn.c_proj.weight",
    "projection_bias": "attn.c_proj.bias",
    "norm2_gain": "ln_2.weight",
    "norm2_shift": "ln_2.bias",
    "up_weight": "mlp.c_fc.weight",
    "up_bias": "mlp.c_fc.bias",
    "down_weight": "mlp.c_proj.weight",
    "down_bias": "mlp.c_proj.bias",
}
"""Names of a layer's tensors in the published checkpoint, after "h.0." and so on."""

OTHER_NAMES = {
    "tokens": "wte.weight",
    "positions": "wpe.weight",
    "norm_gain": "ln_f.weight",
    "norm_shift": "ln_f.bias",
}
"""Names of the other tensors in the published checkpoint."""

_LEFT_OUT = ("attn.bias", "attn.masked_bias", "lm_head.weight")
"""Ends of names that carry nothing new: masks, and the output layer, which is the token embedding."""


class WrongCheckpoint(UserError, ValueError):
    """A checkpoint that is no GPT-2, with the tensor, its shape and the shape that it should have."""


@dataclass(frozen=True, eq=False)
class Decoder:
    """The weights of a GPT-2, the layers one after the other in each tensor: L layers of width W, V tokens.

    A weight has one row per result, so that a result needs neighboring numbers only. (The published checkpoint has one
    column per result.) The output layer has the weights of the token embedding.

    Attributes:
        heads: heads of attention in a layer; they share its width.
        tokens: (V, W), a row per token.
        positions: (P, W), a row per position.
        norm1_gain: (L, W), normalization before attention; norm1_shift likewise.
        norm1_shift: (L, W).
        qkv_weight: (L, 3 W, W), queries, then keys, then values.
        qkv_bias: (L, 3 W).
        projection_weight: (L, W, W), after attention.
        projection_bias: (L, W).
        norm2_gain: (L, W), normalization before the MLP.
        norm2_shift: (L, W).
        up_weight: (L, 4 W, W).
        up_bias: (L, 4 W).
        down_weight: (L, W, 4 W).
        down_bias: (L, W).
        norm_gain: (W,), normalization before the output layer.
        norm_shift: (W,).
    """

    heads: int
    tokens: "torch.Tensor"
    positions: "torch.Tensor"
    norm1_gain: "torch.Tensor"
    norm1_shift: "torch.Tensor"
    qkv_weight: "torch.Tensor"
    qkv_bias: "torch.Tensor"
    projection_weight: "torch.Tensor"
    projection_bias: "torch.Tensor"
    norm2_gain: "torch.Tensor"
    norm2_shift: "torch.Tensor"
    up_weight: "torch.Tensor"
    up_bias: "torch.Tensor"
    down_weight: "torch.Tensor"
    down_bias: "torch.Tensor"
    norm_gain: "torch.Tensor"
    norm_shift: "torch.Tensor"

    @property
    def layers(self) -> int:
        """Layers."""
        return int(self.qkv_weight.shape[0])

    @property
    def width(self) -> int:
        """Numbers of a token between layers."""
        return int(self.tokens.shape[1])

    @property
    def vocabulary(self) -> int:
        """Tokens that there are."""
        return int(self.tokens.shape[0])

    @property
    def longest(self) -> int:
        """Positions that there are, and so the most tokens of a text."""
        return int(self.positions.shape[0])

    @property
    def tensors(self) -> "dict[str, torch.Tensor]":
        """All weights by name, in the order in which they stand above."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "heads"}

    def to(self, how: "torch.dtype | str") -> Self:
        """Return the same decoder with its weights in another dtype, or on another device."""
        return type(self)(self.heads, **{name: tensor.to(how) for name, tensor in self.tensors.items()})

    def empty_cache(self) -> "torch.Tensor":
        """Return room for the keys and values of all positions: (L, P, 2, W), a token's key and then its value."""
        return self.tokens.new_zeros(self.layers, self.longest, 2, self.width)

    def logits(self, text: "torch.Tensor") -> "torch.Tensor":
        """Return (batch, T, V) scores of the next token after each of T tokens, all at once; `text` is (batch, T)."""
        import torch

        batch, length = text.shape
        x = self.tokens[text] + self.positions[:length]
        for layer in range(self.layers):
            q, k, v = (
                part.view(batch, length, self.heads, -1).transpose(1, 2)
                for part in self._linear("qkv", layer, self._norm(x, "norm1", layer)).split(self.width, 2)
            )
            seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self._linear("projection", layer, seen.transpose(1, 2).reshape(batch, length, -1))
            x = x + self._mlp(x, layer)
        return self._norm(x, "norm") @ self.tokens.T

    def step(self, token: int, position: int, cache: "torch.Tensor") -> "torch.Tensor":
        """Return (V,) scores of the token after `token`, which is number `position`, and keep its keys and values.

        Args:
            token: the newest token.
            position: its place in the text, from 0.
            cache: keys and values of the tokens before, as `empty_cache` makes it; it gets this token's in its place.
        """
        import torch

        x = self.tokens[token] + self.positions[position]
        for layer in range(self.layers):
            q, k, v = self._linear("qkv", layer, self._norm(x, "norm1", layer)).split(self.width)
            cache[layer, position, 0], cache[layer, position, 1] = k, v
            keys, values = cache[layer, : position + 1].view(position + 1, 2, self.heads, -1).unbind(1)
            scores = torch.einsum("hd,thd->ht", q.view(self.heads, -1), keys) * (self.width / self.heads) ** -0.5
            seen = torch.einsum("ht,thd->hd", scores.softmax(1), values)
            x = x + self._linear("projection", layer, seen.reshape(-1))
            x = x + self._mlp(x, layer)
        return self._norm(x, "norm") @ self.tokens.T

    def read(self, text: "list[int]", cache: "torch.Tensor") -> "torch.Tensor":
        """Put a text into an empty cache, token by token, and return the scores of the token that follows it."""
        for position, token in enumerate(text):
            scores = self.step(token, position, cache)
        return scores

    def greedy(self, text: "list[int]", count: int) -> tuple[list[int], float]:
        """Continue a text with the likeliest token, `count` times.

        Returns:
            The new tokens, and the smallest lead that one had over the second in score; with a lead near 0, rounding
            decides.

        Raises:
            InvalidValue: there is no text, or there are not enough positions.
        """
        positive_int("count", count)
        if not text or len(text) + count > self.longest:
            raise InvalidValue(
                f"{len(text)} tokens and {count} more: give at least one, and at most {self.longest} in all"
            )
        kept = self.empty_cache()
        scores = self.read(text, kept)
        found: list[int] = []
        lead = float("inf")
        for position in range(len(text), len(text) + count):
            first, second = scores.float().topk(2).values.tolist()
            lead = min(lead, first - second)
            found.append(int(scores.argmax()))
            if len(found) < count:
                scores = self.step(found[-1], position, kept)
        return found, lead

    def sampled(self, text: "list[int]", count: int, *, temperature: float = 0.6, seed: int = 0) -> list[int]:
        """Continue a text with random tokens, likelier ones more often; the lower the temperature, the more so."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        kept, found = self.empty_cache(), list[int]()
        scores = self.read(text, kept)
        for position in range(len(text), len(text) + positive_int("count", count)):
            shares = (scores.float().cpu() / temperature).softmax(0)
            found.append(int(torch.multinomial(shares, 1, generator=generator)))
            if len(found) < count:
                scores = self.step(found[-1], position, kept)
        return found

    def _norm(self, x: "torch.Tensor", name: str, layer: int | None = None) -> "torch.Tensor":
        import torch

        gain, shift = getattr(self, f"{name}_gain"), getattr(self, f"{name}_shift")
        if layer is not None:
            gain, shift = gain[layer], shift[layer]
        return torch.nn.functional.layer_norm(x, (self.width,), gain, shift, EPSILON)

    def _linear(self, name: str, layer: int, x: "torch.Tensor") -> "torch.Tensor":
        import torch

        weight, bias = getattr(self, f"{name}_weight")[layer], getattr(self, f"{name}_bias")[layer]
        return torch.nn.functional.linear(x, weight, bias)

    def _mlp(self, x: "torch.Tensor", layer: int) -> "torch.Tensor":
        import torch

        hidden = self._linear("up", layer, self._norm(x, "norm2", layer))
        return self._linear("down", layer, torch.nn.functional.gelu(hidden, approximate="tanh"))


def from_state(state: "Mapping[str, torch.Tensor]", *, heads: int | None = None) -> Decoder:
    """Return the decoder in a state dict with the names of the published GPT-2 checkpoint, in float32.

    Args:
        state: tensors by name, such as "h.0.attn.c_attn.weight", also after "transformer."; as `torch.load` with
            `weights_only=True` or `safetensors.torch.load_file` returns it.
        heads: heads of a layer; by default the width is divided into heads of GPT-2's size.

    Raises:
        WrongCheckpoint: a tensor is missing, unknown, not of floating point, or of another shape than its neighbors
            ask for; with its name and both shapes.
    """
    import torch

    family = shapes().gpt2
    named = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}
    for name in ("wte.weight", "wpe.weight"):
        if name not in named:
            raise WrongCheckpoint(f"the checkpoint has no tensor {name}: give a state dict of GPT-2, as published")
        if named[name].dim() != 2 or 0 in named[name].shape:
            raise WrongCheckpoint(f"{name} has shape {tuple(named[name].shape)}: it should have two sides, 1 or more")
    width = int(named["wte.weight"].shape[1])
    heads = heads if heads is not None else width // family.head_dim
    if heads < 1 or width % heads:
        raise WrongCheckpoint(f"wte.weight has width {width}, which {heads} heads do not divide: give heads=")
    layers = 0
    while f"h.{layers}.ln_1.weight" in named:
        layers += 1
    due: dict[str, tuple[int, ...]] = {
        "wte.weight": tuple(named["wte.weight"].shape),
        "wpe.weight": (int(named["wpe.weight"].shape[0]), width),
    }
    due |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    for layer in range(max(layers, 1)):
        due |= {f"h.{layer}.{name}": shape for name, shape in _layer_shapes(width, family.mlp_ratio).items()}
    for name, shape in due.items():
        if name not in named:
            raise WrongCheckpoint(f"the checkpoint has no tensor {name}: it should have shape {shape}")
        if tuple(named[name].shape) != shape:
            raise WrongCheckpoint(
                f"{name} has shape {tuple(named[name].shape)}: in a GPT-2 of width {width} it has {shape}"
            )
        if not named[name].is_floating_point():
            raise WrongCheckpoint(f"{name} is {named[name].dtype}: give floating-point weights")
    unknown = [name for name in named if name not in due and not name.endswith(_LEFT_OUT)]
    if unknown:
        raise WrongCheckpoint(f"the checkpoint has a tensor {unknown[0]}, which a GPT-2 of {layers} layers has not")

    def stacked(name: str) -> torch.Tensor:
        parts = [named[f"h.{layer}.{name}"].detach().float() for layer in range(layers)]
        return torch.stack([part.T.contiguous() if part.dim() == 2 else part for part in parts])

    others = {field: named[name].detach().float().contiguous() for field, name in OTHER_NAMES.items()}
    return Decoder(heads, **others, **{field: stacked(name) for field, name in LAYER_NAMES.items()})


def _layer_shapes(width: int, mlp_ratio: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a layer's tensors by their names in the published checkpoint."""
    hidden = mlp_ratio * width
    norms: dict[str, tuple[int, ...]] = {
        f"{norm}.{part}": (width,) for norm in ("ln_1", "ln_2") for part in ("weight", "bias")
    }
    linear: dict[str, tuple[int, ...]] = {
        "attn.c_attn": (width, 3 * width),
        "attn.c_proj": (width, width),
        "mlp.c_fc": (width, hidden),
        "mlp.c_proj": (hidden, width),
    }
    weights = {f"{name}.weight": shape for name, shape in linear.items()}
    return norms | weights | {f"{name}.bias": shape[1:] for name, shape in linear.items()}


def to_state(decoder: Decoder) -> "dict[str, torch.Tensor]":
    """Return a decoder as a state dict with the published names; `from_state` reads it again."""
    named = {name: getattr(decoder, field) for field, name in OTHER_NAMES.items()}
    for layer in range(decoder.layers):
        for field, name in LAYER_NAMES.items():
            part = getattr(decoder, field)[layer]
            named[f"h.{layer}.{name}"] = part.T.contiguous() if part.dim() == 2 else part
    return named


def random_decoder(
    *, layers: int, width: int, heads: int, vocabulary: int, positions: int, seed: int = 0, device: str = "cpu"
) -> Decoder:
    """Return a decoder with random weights, as GPT-2's are before it is trained: for speed, and for tests of shapes.

    Args:
        layers: layers.
        width: numbers of a token, a multiple of the heads.
        heads: heads of a layer.
        vocabulary: tokens that there are.
        positions: most tokens of a text.
        seed: of the random numbers.
        device: where the weights are made.

    Raises:
        InvalidValue: a size is not a positive integer, or the heads do not divide the width.
    """
    import torch

    sizes = {"layers": layers, "width": width, "heads": heads, "vocabulary": vocabulary, "positions": positions}
    for name, size in sizes.items():
        positive_int(name, size)
    if width % heads:
        raise InvalidValue(f"width is {width}, which {heads} heads do not divide: give a multiple of the heads")
    generator = torch.Generator(device).manual_seed(seed)
    due: dict[str, tuple[int, ...]] = {"wte.weight": (vocabulary, width), "wpe.weight": (positions, width)}
    due |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    for layer in range(layers):
        due |= {f"h.{layer}.{name}": shape for name, shape in _layer_shapes(width, 4).items()}
    state = {}
    for name, shape in due.items():
        state[name] = 0.02 * torch.randn(shape, generator=generator, device=device)
        if "ln_" in name and name.endswith("weight"):
            state[name] += 1
    return from_state(state, heads=heads)


def random_gpt2(size: str = "small", *, seed: int = 0, device: str = "cpu") -> Decoder:
    """Return a decoder of GPT-2's shape with random weights; `size` as for `mlsys.models.gpt2`."""
    family = shapes().gpt2
    shape = family.sizes[size]
    return random_decoder(
        layers=shape.layers,
        width=shape.width,
        heads=shape.width // family.head_dim,
        vocabulary=family.vocabulary,
        positions=family.positions,
        seed=seed,
        device=device,
    )


@cache
def shipped() -> Decoder:
    """Return the small model that was trained on the pages of this project's book; `encoded` makes its tokens."""
    import numpy as np
    import torch

    with (files("mlsys") / "data" / SHIPPED).open("rb") as file, np.load(file, allow_pickle=False) as stored:
        heads = int(stored["heads"])
        state = {name: torch.from_numpy(stored[name]) for name in stored.files if "." in name}
    return from_state(state, heads=heads)


def encoded(text: str) -> list[int]:
    """Return a text as tokens of the shipped model, one per character.

    Raises:
        InvalidValue: a character that the model does not have.

    >>> encoded("A GPU")
    [34, 1, 40, 49, 54]
    """
    unknown = [character for character in text if character not in CHARACTERS]
    if unknown:
        raise InvalidValue(f"{unknown[0]!r} is no character of the shipped model: use printable ASCII and line breaks")
    return [CHARACTERS.index(character) for character in text]


def decoded(tokens: "list[int]") -> str:
    """Return tokens of the shipped model as a text.

    >>> decoded([34, 1, 40, 49, 54])
    'A GPU'
    """
    return "".join(CHARACTERS[token] for token in tokens)
