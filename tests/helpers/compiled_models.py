"""Networks for comparing mlsys.compiler with torch: random weights, and sizes that a test can choose."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        self.short = nn.Identity()
        if stride != 1 or channels != out:
            self.short = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.short(x))


def resnet50(depths: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, classes: int = 1000) -> nn.Module:
    """He et al., 2015, table 1."""
    blocks: list[nn.Module] = []
    channels = width
    for stage, depth in enumerate(depths):
        for number in range(depth):
            blocks.append(Bottleneck(channels, width << stage, 2 if number == 0 and stage else 1))
            channels = 4 * width << stage
    stem = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class InvertedResidual(nn.Module):
    def __init__(self, channels: int, out: int, stride: int, expand: int) -> None:
        super().__init__()
        inner = channels * expand
        layers: list[nn.Module] = []
        if expand != 1:
            layers += [nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6()]
        layers += [nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU6()]
        layers += [nn.Conv2d(inner, out, 1, bias=False), nn.BatchNorm2d(out)]
        self.body = nn.Sequential(*layers)
        self.add = stride == 1 and channels == out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.add else self.body(x)


MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet_v2(scale: float = 1.0, depth: float = 1.0, classes: int = 1000) -> nn.Module:
    """Sandler et al., 2018, table 2."""
    channels = max(8, int(32 * scale))
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU6()]
    for expand, out, count, stride in MOBILENET:
        for number in range(max(1, int(count * depth))):
            wide = max(8, int(out * scale))
            layers.append(InvertedResidual(channels, wide, stride if number == 0 else 1, expand))
            channels = wide
    last = max(64, int(1280 * scale))
    layers += [nn.Conv2d(channels, last, 1, bias=False), nn.BatchNorm2d(last), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(last, classes))


class GptBlock(nn.Module):
    """A block of GPT-2: attention and MLP, each behind a layer normalization, with residuals."""

    def __init__(self, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(self.before(x)).split(width, -1)
        q, k, v = (part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.between(x)), approximate="tanh"))


class Dlrm(nn.Module):
    """Naumov et al., 2019: an MLP of the numbers, a table for each category, and the products of every pair."""

    def __init__(self, dense: int = 13, rows: tuple[int, ...] = (100,) * 26, width: int = 64, top: int = 512) -> None:
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(dense, top), nn.ReLU(), nn.Linear(top, width), nn.ReLU())
        self.tables = nn.ModuleList(nn.EmbeddingBag(count, width, mode="sum") for count in rows)
        features = len(rows) + 1
        self.top = nn.Sequential(nn.Linear(width + features * (features - 1) // 2, top), nn.ReLU(), nn.Linear(top, 1))

    def forward(self, dense: Tensor, bags: Tensor) -> Tensor:
        x = self.bottom(dense)
        features = torch.stack([x, *(table(bags[:, n]) for n, table in enumerate(self.tables))], 1)
        products = torch.bmm(features, features.transpose(1, 2))
        rows, columns = torch.tril_indices(features.shape[1], features.shape[1], -1)
        return torch.sigmoid(self.top(torch.cat([x, products[:, rows, columns]], 1)))


def seeded(model: nn.Module, seed: int = 0) -> nn.Module:
    """Give a network in evaluation random weights, and batch normalizations statistics that matter."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean = torch.randn(module.num_features, generator=generator) * 0.1
            module.running_var = torch.rand(module.num_features, generator=generator) + 0.5
            nn.init.uniform_(module.weight, 0.5, 1.0, generator=generator)
            nn.init.normal_(module.bias, 0, 0.1, generator=generator)
        elif isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
    return model.eval()
