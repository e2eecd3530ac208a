"""A few blocks on a few chips that are joined by one fabric: the smallest case of each way to share a step.

Nothing but the blocks is counted: no embedding, no output layer, no optimizer. Each weight's gradient is summed by a
collective of its own, in 16 bits.

>>> from mlsys import Hardware
>>> from mlsys.roofline import Roofline
>>> from mlsys.scaling.network import fabric
>>> block, roof = Block(4096, 32, 32, 16384, dropout=False), Roofline.of(Hardware.get("h200"), "bf16")
>>> for way in WAYS:
...     time = stack_time(block, 2, 1024, 2, chips=2, way=way, chip=roof, fabric=fabric("nvlink-4"))
...     print(f"{way}: {time.m_as('ms'):.1f} ms")
data: 5.4 ms
data, overlapped: 3.1 ms
tensor: 3.4 ms
"""

from mlsys.core.arguments import one_of, positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.models import Block
from mlsys.roofline import Roofline
from mlsys.scaling.block import BlockShare
from mlsys.scaling.collectives import step_time
from mlsys.scaling.network import Fabric
from mlsys.scaling.plan import PlanDoesNotDivide
from mlsys.units import Quantity, ureg

WAYS = ("data", "data, overlapped", "tensor")
"""The batch is shared and gradients are summed after the backward pass, or while it runs; or each block is shared."""


def stack_time(
    block: Block, layers: int, tokens: int, batch: int, *, chips: int, way: str, chip: Roofline, fabric: Fabric
) -> Quantity:
    """Return the time of a forward and a backward pass through a stack of blocks with fused attention.

    - "data": the passes of batch / chips sequences, and an all-reduce for each weight.
    - "data, overlapped": the same, with all those sums beside the backward pass but the last, that of the first
      block's products for queries, keys and values, behind which nothing is left to compute. The passes are taken not
      to slow down meanwhile: a bound, since on two H200s overlap hid between a fifth and a half of the sums.
    - "tensor": the passes of all sequences with an n-th of each block, and four all-reduces for each block.

    Args:
        block: one block.
        layers: blocks.
        tokens: of each sequence.
        batch: sequences of the step, on all chips together.
        chips: how many share the step; one exchanges nothing.
        way: one of `WAYS`.
        chip: the rates of a chip.
        fabric: what joins the chips.

    Raises:
        PlanDoesNotDivide: if the chips do not divide the batch.
        InvalidValue: if a size is not a positive integer, the way unknown, or the chips do not divide the block.
    """
    layers, chips, batch = positive_int("layers", layers), positive_int("chips", chips), positive_int("batch", batch)
    if one_of("way", way, WAYS) == "tensor":
        share = BlockShare(block, tokens, batch, tensor_parallel=chips, fused_attention=True)
        exchanged = (share.exchange_time(fabric, phase).m_as("second") for phase in ("forward", "backward"))
        return ureg.Quantity(layers * (_passes_s(share, chip) + sum(map(float, exchanged))), "second")
    if batch % chips:
        raise PlanDoesNotDivide(
            f"{batch} sequences do not divide among {chips} chips: {batch} / {chips} leaves {batch % chips} over; "
            f"give a batch of {max(1, round(batch / chips)) * chips}"
        )
    share = BlockShare(block, tokens, batch // chips, fused_attention=True)
    sums = [float(fabric.all_reduce_time(size, chips).m_as("second")) for size in weight_bytes(block, share.dtype)]
    computing_s, summing_s = layers * _passes_s(share, chip), layers * sum(sums)
    hidden = 1 - sums[0] / summing_s if way == "data, overlapped" and chips > 1 else 0.0
    return step_time(computing_s, summing_s, overlap=hidden)


def weight_bytes(block: Block, dtype: str = "fp16") -> tuple[int, ...]:
    """Return the bytes of a block's matrices: of queries, keys and values together, of the projection, and of the MLP.

    Raises:
        InvalidValue: if the block has a gate, which adds a matrix that a stack does not have.

    >>> sum(weight_bytes(Block(4096, 32, 32, 16384))) == 2 * 12 * 4096**2
    True
    """
    if block.gated:
        raise InvalidValue("gated is True: give a block whose MLP has two matrices")
    width, keys_and_values = block.width, 2 * block.width // block.heads * block.kv_heads
    shapes = (width * (width + keys_and_values), width**2, width * block.mlp, width * block.mlp)
    return tuple(int(bytes_per_element(dtype) * count) for count in shapes)


def _passes_s(share: BlockShare, chip: Roofline) -> float:
    """Seconds of a block's forward and backward pass on one chip."""
    return float(chip.time((*share.forward, *share.backward)).m_as("second"))
