"""What training keeps: against published sizes, and against what autograd itself saves."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import torch_models
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from mlsys import models
from mlsys.errors import InvalidValue
from mlsys.models import Block, adam_bytes, kept_bytes, stack_kept_bytes

with (Path(__file__).parent / "golden/activations.csv").open() as file:
    ROWS = list(csv.DictReader(file))


def kept_of(row: dict[str, str]) -> float:
    """GiB that the first device of a published run keeps."""
    width, heads, layers, batch, tensor, pipeline, groups = (
        int(row[name])
        for name in (
            "width",
            "heads",
            "layers",
            "batch",
            "tensor_parallel",
            "pipeline_parallel",
            "interleaving",
        )
    )
    block = Block(width=width, heads=heads, kv_heads=heads, mlp=4 * width).kept_bytes(
        2048,
        batch,
        recompute=row["recompute"],
        tensor_parallel=tensor,
        sequence_parallel=row["sequence_parallel"] == "yes",
    )
    kept = stack_kept_bytes(block, layers, pipeline_parallel=pipeline, interleaving=groups)
    return float(kept.m_as("GiB"))


@pytest.mark.parametrize("row", [r for r in ROWS if r["quantity"] == "activations"], ids=lambda r: r["model"])
def test_activations_are_those_published(row: dict[str, str]) -> None:
    assert kept_of(row) == pytest.approx(float(row["value"]), rel=0.02)


@pytest.mark.parametrize("row", [r for r in ROWS if r["quantity"] == "share of none"], ids=lambda r: r["model"])
def test_each_way_saves_the_published_share(row: dict[str, str]) -> None:
    everything = kept_of(row | {"recompute": "none", "sequence_parallel": "no"})
    assert 100 * kept_of(row) / everything == pytest.approx(float(row["value"]), rel=0.02)


@pytest.mark.parametrize("row", [r for r in ROWS if r["quantity"] == "weights and optimizer"], ids=lambda r: r["model"])
def test_adam_needs_the_published_bytes(row: dict[str, str]) -> None:
    """A device's blocks alone, with the gradients that Megatron-LM adds up in FP32."""
    params = int(row["layers"]) / int(row["pipeline_parallel"]) * 12 * int(row["width"]) ** 2
    each = adam_bytes(params / int(row["tensor_parallel"]), fp32_gradients=True)
    assert each.m_as("GiB") == pytest.approx(float(row["value"]), rel=0.02)


def saved_by_autograd(module: nn.Module, *inputs: Tensor, dtype: torch.dtype | None = None) -> int:
    """Bytes of the storages that autograd saves, each once, without weights and buffers; all, or those of one dtype."""
    own = {tensor.untyped_storage()._cdata for tensor in (*module.parameters(), *module.buffers())}
    saved: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        module(*inputs)
    counted = [t for place, t in saved.items() if place not in own and dtype in (None, t.dtype)]
    return sum(tensor.untyped_storage().nbytes() for tensor in counted)


class TorchBlock(nn.Module):
    """A block without dropout; LayerNorm stands for RMSNorm too, as both keep their input."""

    def __init__(self, block: Block, fused: bool) -> None:
        super().__init__()
        h, kv = block.width, block.width // block.heads * block.kv_heads
        self.block, self.fused = block, fused
        self.norm1, self.norm2 = nn.LayerNorm(h), nn.LayerNorm(h)
        self.q, self.k, self.v, self.out = nn.Linear(h, h), nn.Linear(h, kv), nn.Linear(h, kv), nn.Linear(h, h)
        self.up, self.down = nn.Linear(h, block.mlp), nn.Linear(block.mlp, h)
        self.gate = nn.Linear(h, block.mlp) if block.gated else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        q, k, v = (
            layer(y).unflatten(-1, (heads, -1)).transpose(1, 2)
            for layer, heads in (
                (self.q, self.block.heads),
                (self.k, self.block.kv_heads),
                (self.v, self.block.kv_heads),
            )
        )
        if self.fused:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        else:
            mixed = torch.softmax(q @ k.transpose(-2, -1) / 8, -1) @ v
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        up = self.up(y)
        hidden = nn.functional.gelu(up) if self.gate is None else nn.functional.silu(self.gate(y)) * up
        return x + self.down(hidden)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("tokens", "batch"), [(256, 2), (768, 1)])
def test_autograd_saves_what_a_block_keeps(gated: bool, fused: bool, tokens: int, batch: int) -> None:
    block = Block(width=256, heads=4, kv_heads=4, mlp=688 if gated else 1024, gated=gated, dropout=False)
    module = TorchBlock(block, fused).bfloat16()
    x = torch.zeros(batch, tokens, 256, dtype=torch.bfloat16, requires_grad=True)
    saved = saved_by_autograd(module, x)
    kept = block.kept_bytes(tokens, batch, recompute="selective" if fused else "none").m_as("byte")
    assert saved == pytest.approx(kept, rel=0.02)


def test_a_checkpointed_block_keeps_its_input() -> None:
    block = Block(width=256, heads=4, kv_heads=4, mlp=1024, dropout=False)
    module = TorchBlock(block, fused=False).bfloat16()

    class Checkpointed(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return torch.utils.checkpoint.checkpoint(module, x, use_reentrant=True)

    x = torch.zeros(2, 128, 256, dtype=torch.bfloat16, requires_grad=True)
    assert saved_by_autograd(Checkpointed(), x) == block.kept_bytes(128, 2, recompute="full").m_as("byte")


@pytest.mark.parametrize("groups", [1, 2])
def test_autograd_saves_grouped_keys_and_values_once_for_a_group(groups: int) -> None:
    block = Block(width=256, heads=4, kv_heads=groups, mlp=1024, dropout=False)
    module = TorchBlock(block, fused=True).bfloat16()
    x = torch.zeros(2, 256, 256, dtype=torch.bfloat16, requires_grad=True)
    kept = block.kept_bytes(256, 2, recompute="selective").m_as("byte")
    assert saved_by_autograd(module, x) == pytest.approx(kept, rel=0.005)


def test_sequence_parallel_devices_share_the_input_that_full_recomputation_keeps() -> None:
    """Together they hold one copy of it, where each would hold its own."""
    block = Block(width=256, heads=4, kv_heads=4, mlp=1024)
    how = {"recompute": "full", "tensor_parallel": 4}
    assert 4 * block.kept_bytes(128, sequence_parallel=True, **how) == block.kept_bytes(128, **how)


@pytest.mark.parametrize(
    ("build", "make", "near"),
    [(torch_models.resnet50, models.resnet50, 0), (torch_models.mobilenet_v2, models.mobilenet_v2, 0.004)],
    ids=["resnet50", "mobilenet_v2"],
)
def test_autograd_saves_what_a_network_keeps(
    build: Callable[[], nn.Module], make: Callable[..., models.Model], near: float
) -> None:
    """The indices of the max pooling and the statistics of normalizations have other dtypes and are left out."""
    with torch.device("meta"):
        module = build().half().train()
    images = torch.empty(2, 3, 224, 224, device="meta", dtype=torch.float16)
    saved = saved_by_autograd(module, images, dtype=torch.float16)
    assert kept_bytes(make(batch=2).ops).m_as("byte") == pytest.approx(saved, rel=near)


def test_the_ends_of_gpt2_are_what_autograd_saves_beside_its_blocks() -> None:
    """The loss keeps its softmax in FP32."""
    gpt2 = models.gpt2("small", seq=64)
    with torch.device("meta"):
        decoder = torch_models.Decoder(50257, 768, 12, 12, 12, 3072, True).half()

    class Loss(nn.Module):
        def forward(self, ids: Tensor) -> Tensor:
            return nn.functional.cross_entropy(decoder(ids).float().flatten(0, 1), ids.flatten())

    saved = saved_by_autograd(Loss(), torch.zeros(2, 64, dtype=torch.long, device="meta"))
    without = Block(768, 12, 12, 3072, dropout=False)
    own = sum(2 * parameter.numel() for parameter in decoder.parameters())
    kept = 12 * without.kept_bytes(64, 2) + without.ends_kept_bytes(64, 2, vocabulary=gpt2.vocabulary)
    assert saved - own == pytest.approx(kept.m_as("byte"), rel=0.03)
    masks = 2 * 64 * (768 + 12 * (2 * 768 + 3 * 12 * 64))
    assert gpt2.kept_bytes(64, 2).m_as("byte") - kept.m_as("byte") == masks


def test_what_is_wrong_is_named() -> None:
    block = Block(width=256, heads=4, kv_heads=4, mlp=1024)
    with pytest.raises(InvalidValue, match="selective"):
        block.kept_bytes(128, recompute="attention")
    with pytest.raises(InvalidValue, match="tokens"):
        block.kept_bytes(0)
    with pytest.raises(InvalidValue, match="pipeline_parallel above 1"):
        stack_kept_bytes(block.kept_bytes(128), 4, interleaving=2)


@pytest.mark.parametrize(
    ("sizes", "what"),
    [
        ({"width": 0}, "width must be a positive integer"),
        ({"heads": -8}, "heads must be a positive integer"),
        ({"kv_heads": 2.5}, "kv_heads must be a positive integer"),
        ({"mlp": 0}, "mlp must be a positive integer"),
        ({"width": 500}, "width is 500 and heads is 8: give a width that the heads divide, such as 496"),
        ({"kv_heads": 3}, "heads is 8 and kv_heads is 3"),
        ({"kv_heads": 16}, "heads is 8 and kv_heads is 16"),
    ],
)
def test_a_block_that_attention_cannot_split_is_refused(sizes: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidValue, match=what):
        Block(**{"width": 512, "heads": 8, "kv_heads": 8, "mlp": 2048} | sizes)
