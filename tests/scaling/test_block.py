"""A block on the chips that share it: against torch's counter of FLOPs, torch's collectives, and published formulas."""

from typing import Any

import pytest
import torch
from helpers import two_gpus
from torch.utils.flop_counter import FlopCounterMode

from mlsys.errors import InvalidValue
from mlsys.models import Block
from mlsys.roofline import Roofline
from mlsys.scaling import BlockShare, Fabric, PlanDoesNotDivide, stack_time
from mlsys.scaling.stack import WAYS

GPT3 = Block(width=12288, heads=96, kv_heads=96, mlp=49152)
LLAMA = Block(width=8192, heads=64, kv_heads=8, mlp=28672, gated=True, dropout=False)


def flops(ops) -> int:
    return sum(op.flop_count for op in ops if op.engine == "tensor")


def test_products_are_those_that_torch_counts():
    """Forward and backward, of a block whose attention torch does as two products."""
    width, tokens, batch = 256, 64, 3
    module = two_gpus.ParallelBlock(width, 1, device="meta")
    x = torch.empty(batch, tokens, width, device="meta", requires_grad=True)
    share = BlockShare(Block(width, width // two_gpus.HEAD, width // two_gpus.HEAD, 4 * width), tokens, batch)
    with FlopCounterMode(display=False) as forward:
        y = module(x)
    with FlopCounterMode(display=False) as backward:
        y.sum().backward()
    assert flops(share.forward) == forward.get_total_flops()
    assert flops(share.backward) == backward.get_total_flops()


@pytest.mark.parametrize("tokens", [512, 2048])
def test_a_forward_pass_has_the_flops_of_the_published_formula(tokens):
    """24 b s h^2 (1 + s / 6h); Korthikanti et al., appendix A."""
    share = BlockShare(GPT3, tokens, 2)
    assert flops(share.forward) == pytest.approx(24 * 2 * tokens * 12288**2 * (1 + tokens / (6 * 12288)))


@pytest.mark.parametrize("block", [GPT3, LLAMA])
@pytest.mark.parametrize("fused", [False, True])
def test_chips_share_products_in_equal_parts_and_repeat_what_is_between_unless_the_sequence_is_shared(block, fused):
    whole = BlockShare(block, 2048, fused_attention=fused)
    tensor = BlockShare(block, 2048, tensor_parallel=8, fused_attention=fused)
    sequence = BlockShare(block, 2048, tensor_parallel=8, sequence_parallel=True, fused_attention=fused)

    def moved(share: BlockShare) -> int:
        """Bytes of element-wise operations."""
        return sum(op.read_count + op.write_count for op in (*share.forward, *share.backward) if op.engine == "vector")

    for direction in ("forward", "backward"):
        assert 8 * flops(getattr(tensor, direction)) == flops(getattr(whole, direction))
    assert 8 * moved(sequence) == moved(whole)
    assert moved(whole) / 8 < moved(tensor) < moved(whole)


def test_fused_attention_moves_no_scores_and_its_backward_pass_makes_them_again():
    plain, fused = BlockShare(GPT3, 2048), BlockShare(GPT3, 2048, fused_attention=True)
    assert flops(plain.forward) == flops(fused.forward)
    again = flops(plain.repeated("selective"))
    assert flops(fused.backward) == flops(plain.backward) + again / 2
    scores = 96 * 2048**2 * 2
    assert all(op.write_count < scores for op in fused.repeated("selective"))


def test_recomputation_repeats_nothing_attention_or_everything():
    share = BlockShare(GPT3, 2048)
    assert share.repeated("none") == ()
    assert [op.name for op in share.repeated("selective")] == ["scores", "softmax", "dropout", "values"]
    assert share.repeated("full") == share.forward


def test_the_exchange_is_what_a_real_tensor_parallel_block_sums(monkeypatch: pytest.MonkeyPatch):
    """Bytes that the measured program hands to all-reduce, in its forward and in its backward pass."""
    sizes: list[int] = []

    def count(x: torch.Tensor, *_: Any) -> None:
        sizes.append(x.numel() * x.element_size())

    monkeypatch.setattr(two_gpus.dist, "all_reduce", count)
    width, tokens, batch = 256, 16, 2
    x = torch.zeros(batch, tokens, width, dtype=torch.bfloat16, requires_grad=True)
    y = two_gpus.ParallelBlock(width, 2, dtype=torch.bfloat16)(x)
    forward = sum(sizes)
    y.sum().backward()
    backward = sum(sizes) - forward
    share = BlockShare(Block(width, 2, 2, 4 * width), tokens, batch, tensor_parallel=2)
    wire = Fabric("wire", bandwidth=1.0)  # on two chips of a ring, each sends what the buffer has
    assert share.exchange_time(wire, "forward").m_as("s") == forward
    assert share.exchange_time(wire, "backward").m_as("s") == backward


def test_sequence_parallelism_sends_no_more_bytes_forward_and_half_more_backward():
    """It splits each sum; in the backward pass it gathers the inputs of the first products again."""
    wire = Fabric("wire", bandwidth=1.0)
    plain = BlockShare(GPT3, 2048, tensor_parallel=8)
    sequence = BlockShare(GPT3, 2048, tensor_parallel=8, sequence_parallel=True)
    assert sequence.exchange_time(wire, "forward") == plain.exchange_time(wire, "forward")
    assert sequence.exchange_time(wire, "backward") == 1.5 * plain.exchange_time(wire, "backward")
    assert sequence.exchange_time(wire, "repeated", "selective").m == 0
    assert sequence.exchange_time(wire, "repeated") == sequence.exchange_time(wire, "forward")


def test_what_is_wrong_is_named():
    with pytest.raises(InvalidValue, match="16 chips cannot share kv_heads = 8: .* leaves 8 over; .* such as 8"):
        BlockShare(LLAMA, 2048, tensor_parallel=16)
    with pytest.raises(InvalidValue, match="cannot share tokens = 2047"):
        BlockShare(GPT3, 2047, tensor_parallel=8, sequence_parallel=True)
    with pytest.raises(InvalidValue, match="tensor_parallel"):
        BlockShare(GPT3, 2048, tensor_parallel=0)
    with pytest.raises(InvalidValue, match="phase must be one of"):
        BlockShare(GPT3, 2048).exchange_time(Fabric("wire", 1.0), "sideways")
    with pytest.raises(InvalidValue, match="recompute must be one of"):
        BlockShare(GPT3, 2048).repeated("some")


@pytest.mark.parametrize("way", WAYS)
def test_a_stack_on_one_chip_exchanges_nothing_and_on_free_links_is_shared_in_equal_parts(way: str):
    block = Block(2048, 16, 16, 8192, dropout=False)
    chip = Roofline("chip", 1e30, {"tensor": 1e12, "vector": 1e30}, "tensor", "test")
    share = BlockShare(block, 512, 8, fused_attention=True)
    one, four = (
        stack_time(block, 3, 512, 8, chips=n, way=way, chip=chip, fabric=Fabric("free", 1e30)).m_as("s") for n in (1, 4)
    )
    assert one == pytest.approx(3 * flops((*share.forward, *share.backward)) / 1e12)
    assert four == pytest.approx(one / 4)


def test_a_stack_sums_every_parameter_once_for_data_and_four_results_a_block_for_tensor_parallelism():
    block, wire = Block(2048, 16, 16, 8192, dropout=False), Fabric("wire", bandwidth=1.0)
    chip = Roofline("chip", 1e30, {"tensor": 1e30, "vector": 1e30}, "tensor", "test")
    data, tensor = (
        stack_time(block, 3, 512, 8, chips=2, way=way, chip=chip, fabric=wire).m_as("s") for way in ("data", "tensor")
    )
    assert data == 3 * 12 * 2048**2 * 2
    assert tensor == 3 * 4 * 8 * 512 * 2048 * 2
    with pytest.raises(
        PlanDoesNotDivide, match="7 sequences do not divide among 2 chips.*leaves 1 over; give a batch of"
    ):
        stack_time(block, 3, 512, 7, chips=2, way="data", chip=chip, fabric=wire)
    with pytest.raises(InvalidValue, match="way must be one of"):
        stack_time(block, 3, 512, 8, chips=2, way="pipeline", chip=chip, fabric=wire)
