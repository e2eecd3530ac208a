"""One operation: how much it computes and how much it must move."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mlsys.errors import InvalidValue
from mlsys.units import Quantity, byte, flop, ureg

_intensity_unit = flop / byte


@dataclass(frozen=True, slots=True)
class Op:
    """An operation with its FLOPs and its traffic, each tensor moved once unless its function says otherwise.

    The fields are plain numbers, so that a model of a thousand ops is built and summed in milliseconds; the
    properties `flops`, `bytes_read`, `bytes_written`, `bytes` and `intensity` are the same as quantities.

    Attributes:
        name: what it is called where it is used, such as "layer1.0.conv2".
        kind: the function of `mlsys.ops` that made it, such as "conv2d".
        engine: what runs it: "tensor" (matrix unit) or "vector".
        dtype: number format of its tensors.
        flop_count: FLOPs, 2 per multiply-add.
        read_count: bytes read.
        write_count: bytes written.
        params: learned parameters that belong to it.
        resident_count: bytes among those read that stay in memory from pass to pass: weights, table rows, KV cache.
    """

    name: str
    kind: str
    engine: str
    dtype: str
    flop_count: int
    read_count: int | float
    write_count: int | float
    params: int = 0
    resident_count: int | float = 0

    @property
    def unit(self) -> str:
        """Another name of `engine`, which notebooks outside the package use."""
        return self.engine

    @property
    def flops(self) -> Quantity:
        """FLOPs, 2 per multiply-add."""
        return ureg.Quantity(self.flop_count, flop)

    @property
    def bytes_read(self) -> Quantity:
        """Bytes read."""
        return ureg.Quantity(self.read_count, byte)

    @property
    def bytes_written(self) -> Quantity:
        """Bytes written."""
        return ureg.Quantity(self.write_count, byte)

    @property
    def bytes(self) -> Quantity:
        """Bytes read and written."""
        return ureg.Quantity(self.read_count + self.write_count, byte)

    @property
    def intensity(self) -> Quantity:
        """Arithmetic intensity: `flops / bytes`."""
        return ureg.Quantity(self.flop_count / (self.read_count + self.write_count), _intensity_unit)

    def named(self, name: str) -> "Op":
        """The same op under another name."""
        return replace(self, name=name)


def fuse(ops: Sequence[Op], name: str = "fused") -> Op:
    """One op that does a chain of ops in one pass: what each hands to the next stays on the chip.

    Formula: FLOPs add up; from the bytes, each tensor between two neighbors loses its write and its read.
    Whether one kernel can hold the chain (registers, whole rows for a reduction) is not checked here.

    Args:
        ops: the chain, in order; each op reads what the one before it wrote.
        name: name of the result.

    Raises:
        InvalidValue: if the chain is empty, or an op reads less than the one before it wrote.

    >>> from mlsys import ops
    >>> relu = ops.elementwise(elements=1024 * 1024, dtype="fp32")
    >>> separate, fused = 3 * relu.bytes, ops.fuse([relu, relu, relu]).bytes
    >>> separate / fused
    <Quantity(3.0, 'dimensionless')>
    """
    if not ops:
        raise InvalidValue("nothing to fuse: give at least one op")
    for before, after in pairwise(ops):
        if after.read_count < before.write_count:
            raise InvalidValue(
                f"{after.name} reads {after.read_count:,} bytes, but {before.name} wrote {before.write_count:,}: "
                "in a chain each op reads all that the one before it wrote"
            )
    handed_on = sum(op.write_count for op in ops[:-1])
    return Op(
        name=name,
        kind="fused",
        engine="tensor" if any(op.engine == "tensor" for op in ops) else "vector",
        dtype=ops[-1].dtype,
        flop_count=sum(op.flop_count for op in ops),
        read_count=sum(op.read_count for op in ops) - handed_on,
        write_count=ops[-1].write_count,
        params=sum(op.params for op in ops),
        resident_count=sum(op.resident_count for op in ops),
    )
