"""What a chain of operations moves, for every way of cutting it into kernels.

A kernel reads each tensor once that one of its operations needs and none of them made. It writes each tensor that it
makes and that a later kernel reads or that is a result. All else stays in its registers. Whether one kernel can hold
the operations (a reduction needs its whole row, registers run out) is not decided here.

>>> from mlsys.ops.chain import Chain, Operation
>>> relu, scale = Operation("ReLU", ("x",), "a"), Operation("scale", ("a", "s"), "y")
>>> chain = Chain((relu, scale), {"x": 4096, "a": 4096, "s": 64, "y": 4096}, results=("y",), dtype="fp16")
>>> chain.bytes(cuts=[1]), chain.bytes(cuts=[])
(<Quantity(32896, 'byte')>, <Quantity(16512, 'byte')>)
>>> chain.kernels(cuts=[])[0].reads
('x', 's')
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from mlsys.core.arguments import positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.units import Quantity, byte, ureg


@dataclass(frozen=True)
class Operation:
    """One operation of a chain.

    Attributes:
        name: what it is called.
        reads: names of the tensors that it needs.
        writes: name of the tensor that it makes.
    """

    name: str
    reads: tuple[str, ...]
    writes: str


@dataclass(frozen=True)
class Kernel:
    """Neighboring operations that run as one kernel.

    Attributes:
        operations: their names, in order.
        reads: tensors that it reads from memory, each once, in the order of first use.
        writes: tensors that it writes to memory.
    """

    operations: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True)
class Chain:
    """Operations in the order in which they run.

    Attributes:
        operations: the operations. What none of them makes is an input of the chain.
        elements: elements of each tensor.
        results: tensors that are needed after the chain.
        dtype: number format of all tensors in memory.

    Raises:
        InvalidValue: if there is no operation, if a tensor is made twice or read before it is made, if one has no size,
            or if a result is not made.
        UnknownName: if the dtype is unknown.
    """

    operations: tuple[Operation, ...]
    elements: Mapping[str, int]
    results: tuple[str, ...]
    dtype: str = "fp16"

    def __post_init__(self) -> None:
        made = Counter(operation.writes for operation in self.operations)
        if not made:
            raise InvalidValue("the chain has no operation: give at least one")
        if max(made.values()) > 1:
            raise InvalidValue(f"{made.most_common(1)[0][0]!r} is made twice: give each result a name of its own")
        for name in self.results:
            if name not in made:
                raise InvalidValue(f"no operation makes the result {name!r}; they make {', '.join(made)}")
        inputs = _inputs(self.operations)
        for name in inputs:
            if name in made:
                raise InvalidValue(f"{name!r} is read before an operation makes it: put the operations in order")
        for name in (*inputs, *made):
            if name not in self.elements:
                raise InvalidValue(f"the tensor {name!r} has no size: add it to `elements`")
            positive_int(f"elements of {name}", self.elements[name])
        bytes_per_element(self.dtype)

    def kernels(self, cuts: Iterable[int]) -> tuple[Kernel, ...]:
        """Return the kernels for a set of cuts; cut k is between the k-th operation and the next.

        Raises:
            InvalidValue: if a cut is not between two operations.
        """
        count = len(self.operations)
        places = sorted(set(cuts))
        for place in places:
            if place not in range(1, count):
                raise InvalidValue(f"cut {place} is not between two of {count} operations: use 1 to {count - 1}")
        ends = [0, *places, count]
        return tuple(self._kernel(first, end) for first, end in pairwise(ends))

    def bytes(self, cuts: Iterable[int]) -> Quantity:
        """Return the bytes that all kernels read and write: size times elements of each crossing.

        Raises:
            InvalidValue: if a cut is not between two operations.
        """
        crossing = (name for kernel in self.kernels(cuts) for name in (*kernel.reads, *kernel.writes))
        return ureg.Quantity(bytes_per_element(self.dtype) * sum(self.elements[name] for name in crossing), byte)

    def _kernel(self, first: int, end: int) -> Kernel:
        inside, later = self.operations[first:end], self.operations[end:]
        needed = {*self.results, *(name for operation in later for name in operation.reads)}
        return Kernel(
            tuple(operation.name for operation in inside),
            _inputs(inside),
            tuple(operation.writes for operation in inside if operation.writes in needed),
        )


def _inputs(operations: Collection[Operation]) -> tuple[str, ...]:
    """Return what the operations need and none of those before made, each once."""
    known: set[str] = set()
    inputs: dict[str, None] = {}
    for operation in operations:
        inputs |= dict.fromkeys(name for name in operation.reads if name not in known)
        known.add(operation.writes)
    return tuple(inputs)
