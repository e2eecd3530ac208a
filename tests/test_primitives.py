"""Primitives of a layer: held to other counts of the same layers and to a published rate."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mlsys import Hardware, ops
from mlsys.errors import InvalidValue, UnknownName
from mlsys.hardware import UnknownField
from mlsys.ops import primitives


@pytest.mark.parametrize(("batch", "inputs", "outputs"), [(1, 256, 512), (32, 256, 512), (3, 5, 7)])
def test_the_macs_of_a_dense_layer_are_half_of_torchs_flops(batch: int, inputs: int, outputs: int) -> None:
    x, weight = torch.empty(batch, inputs, device="meta"), torch.empty(outputs, inputs, device="meta")
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.linear(x, weight)
    found = primitives.counts("dense layer with ReLU", batch=batch, inputs=inputs, outputs=outputs)
    assert 2 * found["matrix"] == counter.get_total_flops()


@pytest.mark.parametrize(("tokens", "width"), [(4096, 128), (7, 3)])
def test_attention_has_the_products_and_scores_of_ops(tokens: int, width: int) -> None:
    found = primitives.counts("attention, one head", tokens=tokens, width=width)
    assert 2 * found["matrix"] == ops.attention(batch=1, heads=1, seq=tokens, head_dim=width).flop_count
    assert found["special"] == tokens * tokens + tokens, "an exponential for each score, a reciprocal for each row"


def test_a_softmax_done_one_by_one_has_as_many_steps() -> None:
    scores, vector, special = [[0.5, -1.0, 2.0], [3.0, 3.0, 3.0]], 0, 0
    for row in scores:
        top = -torch.inf
        for score in row:
            top, vector = max(top, score), vector + 1
        total, weights = 0.0, []
        for score in row:
            shifted, vector = score - top, vector + 1
            weight, special = torch.tensor(shifted).exp().item(), special + 1
            total, vector = total + weight, vector + 1
            weights.append(weight)
        inverse, special = 1 / total, special + 1
        result = []
        for weight in weights:
            result.append(weight * inverse)
            vector += 1
        assert result == pytest.approx(torch.tensor(row).softmax(0).tolist())
    found = primitives.counts("softmax", rows=2, columns=3)
    assert (found["vector"], found["special"], found["matrix"]) == (vector, special, 0)


def test_gelu_by_an_exponential_and_a_reciprocal_is_torchs() -> None:
    x = torch.linspace(-6, 6, 1001, dtype=torch.float64)
    u2 = x * (1.5957691216 + 0.0713548163 * x * x)  # three operations, one of them an FMA
    found = x * (1 / (1 + torch.exp(-u2)))
    assert torch.allclose(found, torch.nn.functional.gelu(x, approximate="tanh"), atol=1e-8)
    assert primitives.counts("GELU", elements=10) == {"matrix": 0, "vector": 50, "special": 20, "memory": 0}


def test_an_embedding_only_loads() -> None:
    found = primitives.counts("embedding", tokens=10, width=64)
    assert found == {"matrix": 0, "vector": 0, "special": 0, "memory": 640}


def test_special_functions_of_an_h100_are_as_fast_as_published() -> None:
    published = 3.9  # Shah et al., FlashAttention-3, section 3.2: 3.9 TFLOPS of special functions
    assert round(Hardware.Cloud.H100.special_rate().m_as("TFLOP/s"), 1) == published
    with pytest.raises(UnknownField, match="special_per_clock"):
        Hardware.get("tpu-v4").special_rate()


@pytest.mark.parametrize(("operations", "width", "needed"), [(1, 8, 1), (8, 8, 1), (9, 8, 2), (4_194_304, 8, 524_288)])
def test_a_last_instruction_may_be_half_full(operations: int, width: int, needed: int) -> None:
    assert primitives.instructions(operations, width) == needed


def test_wrong_names_and_sizes_say_what_is_possible() -> None:
    with pytest.raises(UnknownName, match="did you mean 'softmax'"):
        primitives.counts("sofmax", rows=1, columns=1)
    with pytest.raises(InvalidValue, match="softmax has the sizes rows, columns; given: rows"):
        primitives.counts("softmax", rows=1)
    with pytest.raises(InvalidValue, match="columns"):
        primitives.counts("softmax", rows=1, columns=0)
