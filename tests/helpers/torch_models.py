"""The architectures of `mlsys.models`, written with torch modules for the tests to count."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class Bottleneck(nn.Module):
    def __init__(self, c_in: int, width: int, stride: int) -> None:
        super().__init__()
        c_out = 4 * width
        self.branch = nn.Sequential(
            nn.Conv2d(c_in, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, c_out, 1, bias=False),
            nn.BatchNorm2d(c_out),
        )
        matches = stride == 1 and c_in == c_out
        shortcut = (nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))
        self.shortcut = nn.Sequential() if matches else nn.Sequential(*shortcut)
        self.sum, self.relu = Sum(), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.sum(self.branch(x), self.shortcut(x)))


class Sum(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


def resnet50() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    c_in = 64
    for blocks, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for i in range(blocks):
            layers.append(Bottleneck(c_in, width, stride if i == 0 else 1))
            c_in = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def conv_norm(c_in: int, c_out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(c_out),
        nn.ReLU6(),
    ]


class InvertedResidual(nn.Module):
    def __init__(self, c_in: int, c_out: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = c_in * expansion
        layers = conv_norm(c_in, hidden) if expansion > 1 else []
        layers += conv_norm(hidden, hidden, 3, stride, groups=hidden)
        self.layers = nn.Sequential(*layers, *conv_norm(hidden, c_out)[:2])
        self.sum = Sum() if stride == 1 and c_in == c_out else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return self.sum(x, y) if self.sum else y


def mobilenet_v2() -> nn.Module:
    layers, c_in = conv_norm(3, 32, 3, 2), 32
    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expansion, c_out, repeats, stride in stages:
        for i in range(repeats):
            layers.append(InvertedResidual(c_in, c_out, stride if i == 0 else 1, expansion))
            c_in = c_out
    layers += conv_norm(320, 1280)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


def separable(c_in: int, c_out: int, stride: int = 1) -> list[nn.Module]:
    depthwise = [nn.Conv2d(c_in, c_in, 3, stride, 1, groups=c_in), nn.BatchNorm2d(c_in), nn.ReLU()]
    return [*depthwise, nn.Conv2d(c_in, c_out, 1), nn.BatchNorm2d(c_out), nn.ReLU()]


def keyword_spotting() -> nn.Module:
    """As in TensorFlow's "same" padding, the odd row of zeros stands below."""
    first = [nn.ZeroPad2d((1, 1, 4, 5)), nn.Conv2d(1, 64, (10, 4), 2), nn.BatchNorm2d(64), nn.ReLU()]
    blocks = [layer for _ in range(4) for layer in separable(64, 64)]
    return nn.Sequential(*first, *blocks, nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Linear(64, 12))


def person_detection() -> nn.Module:
    widths = (8, 16, 32, 32, 64, 64, 128, 128, 128, 128, 128, 128, 256, 256)
    strides = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU()]
    for c_in, c_out, stride in zip(widths[:-1], widths[1:], strides, strict=True):
        layers += separable(c_in, c_out, stride)
    return nn.Sequential(*layers, nn.AvgPool2d(3), nn.Flatten(), nn.Linear(256, 2))


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of heads x tokens x features, keys and values repeated for the heads that share them."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    return torch.softmax(q @ k.transpose(-2, -1), -1) @ v


def heads_of(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class Decoder(nn.Module):
    """GPT-2 or Llama; `past` tokens of keys and values are there already."""

    def __init__(
        self, vocabulary: int, width: int, layers: int, heads: int, kv_heads: int, mlp: int, gpt2: bool
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.gpt2 = heads, kv_heads, gpt2
        kv_width = width // heads * kv_heads
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(1024, width) if gpt2 else None

        def norm() -> nn.Module:
            return nn.LayerNorm(width) if gpt2 else nn.RMSNorm(width)

        def linear(d_in: int, d_out: int) -> nn.Module:
            return nn.Linear(d_in, d_out, bias=gpt2)

        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": norm(),
                    "q": linear(width, width),
                    "k": linear(width, kv_width),
                    "v": linear(width, kv_width),
                    "out": linear(width, width),
                    "norm2": norm(),
                    "up": linear(width, mlp),
                    **({} if gpt2 else {"gate": linear(width, mlp)}),
                    "down": linear(mlp, width),
                }
            )
            for _ in range(layers)
        )
        self.norm = norm()
        self.logits = nn.Linear(width, vocabulary, bias=False)
        if gpt2:
            self.logits.weight = self.tokens.weight

    def forward(self, ids: Tensor, past: int = 0) -> Tensor:
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions(torch.zeros_like(ids))
        for layer in self.layers:
            y = layer["norm1"](x)
            q, k, v = heads_of(layer["q"](y), self.heads), *(heads_of(layer[n](y), self.kv_heads) for n in "kv")
            cache = x.new_empty(*k.shape[:2], past, k.shape[-1])
            mixed = attend(q, torch.cat((cache, k), 2), torch.cat((cache, v), 2))
            x = x + layer["out"](mixed.transpose(1, 2).flatten(2))
            y = layer["norm2"](x)
            up = layer["up"](y)
            hidden = nn.functional.gelu(up) if self.gpt2 else nn.functional.silu(layer["gate"](y)) * up
            x = x + layer["down"](hidden)
        return self.logits(self.norm(x))


class DLRM(nn.Module):
    def __init__(self, tables: Sequence[int], dim: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, dim, mode="sum") for rows in tables)
        self.bottom = self.mlp(13, 512, 256, dim)
        vectors = len(tables) + 1
        self.top = self.mlp(dim + vectors * (vectors - 1) // 2, 1024, 1024, 512, 256, 1)

    @staticmethod
    def mlp(*widths: int) -> nn.Module:
        pairs = pairwise(widths)
        return nn.Sequential(*(layer for i, o in pairs for layer in (nn.Linear(i, o), nn.ReLU())))

    def forward(self, dense: Tensor, ids: Tensor) -> Tensor:
        x = self.bottom(dense)
        vectors = torch.stack([x, *(table(ids) for table in self.tables)], 1)
        products = vectors @ vectors.transpose(1, 2)
        row, column = torch.tril_indices(vectors.shape[1], vectors.shape[1], -1)
        return self.top(torch.cat((x, products[:, row, column]), 1))
