"""Loop nests around one multiply-accumulate: which loops there are, and what each operand's address depends on.

>>> nest = convolution(filters=16, kernel=3, height=8, width=8)
>>> nest.loops, nest.macs
(('m', 'p', 'q', 'r', 's'), 5184)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations
from math import prod
from types import MappingProxyType

from mlsys.core.arguments import non_negative_int, positive_int
from mlsys.errors import InvalidValue

Address = tuple[Mapping[str, int], ...]
"""An operand's address: per coordinate, the factor of each loop index that it adds up."""


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A nest of loops around one multiply-accumulate, outputs += weights * inputs.

    Attributes:
        extents: Count of iterations of each loop, by name.
        weights: Address of the weight as a function of the loop indices.
        inputs: Address of the input.
        outputs: Address of the output.
    """

    extents: Mapping[str, int]
    weights: Address
    inputs: Address
    outputs: Address

    @property
    def loops(self) -> tuple[str, ...]:
        """Names of the loops."""
        return tuple(self.extents)

    @property
    def macs(self) -> int:
        """Iterations of the innermost body: multiply-accumulates."""
        return prod(self.extents.values())

    def orders(self) -> Iterable[tuple[str, ...]]:
        """All d! orders of the d loops, outermost loop first."""
        return permutations(self.loops)


@dataclass(frozen=True, slots=True)
class Accesses:
    """Elements that cross between the far memory and the place next to the arithmetic.

    Attributes:
        weights: Weights read.
        inputs: Inputs read.
        sum_writes: Sums written, finished or not.
        sum_reads: Unfinished sums read again.
    """

    weights: int
    inputs: int
    sum_writes: int
    sum_reads: int

    @property
    def sums(self) -> int:
        """Sums written and read."""
        return self.sum_writes + self.sum_reads

    @property
    def total(self) -> int:
        """All elements moved."""
        return self.weights + self.inputs + self.sums


def matmul(m: int, n: int, k: int) -> LoopNest:
    """The loop nest of C[m, n] = A[m, k] B[k, n] with A as inputs and B as weights, as in `mlsys.systolic`.

    Raises:
        InvalidValue: A size that is no positive integer.

    >>> matmul(32, 512, 256).macs
    4194304
    """
    extents = {"m": positive_int("m", m), "n": positive_int("n", n), "k": positive_int("k", k)}
    return LoopNest(MappingProxyType(extents), _at("k", "n"), _at("m", "k"), _at("m", "n"))


def convolution(
    *,
    filters: int,
    kernel: int | tuple[int, int],
    height: int,
    width: int,
    channels: int | None = None,
    batch: int | None = None,
    stride: int = 1,
    padding: int = 0,
) -> LoopNest:
    """The loop nest of a convolution: out[n, m, p, q] += weight[m, c, r, s] * in[n, c, p stride + r, q stride + s].

    Loops: n images, m filters, c channels, p x q output positions, r x s kernel positions. P = floor((height + 2
    padding - kernel) / stride) + 1, Q likewise; padding counts as stored zeros.

    Args:
        filters: Filters M.
        kernel: Side of the kernel, or its rows and columns.
        height: Rows of the input.
        width: Columns of the input.
        channels: Input channels C; leave it out for a nest without that loop.
        batch: Images N; leave it out for a nest without that loop.
        stride: Step between output positions.
        padding: Zeros added on each side.

    Raises:
        InvalidValue: A size that is no positive integer, or a kernel larger than the padded input.

    >>> convolution(filters=16, kernel=3, height=8, width=8).extents
    mappingproxy({'m': 16, 'p': 6, 'q': 6, 'r': 3, 's': 3})
    """
    stride, padding = positive_int("stride", stride), non_negative_int("padding", padding)
    sides = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    positions = [
        _positions(name, size, side, stride, padding)
        for name, size, side in zip(("height", "width"), (height, width), sides, strict=True)
    ]
    extents = {
        "n": 1 if batch is None else positive_int("batch", batch),
        "m": positive_int("filters", filters),
        "c": 1 if channels is None else positive_int("channels", channels),
        "p": positions[0],
        "q": positions[1],
        "r": sides[0],
        "s": sides[1],
    }
    absent = [loop for loop, size in (("n", batch), ("c", channels)) if size is None]
    inputs = (*_at("n", "c"), {"p": stride, "r": 1}, {"q": stride, "s": 1})
    return LoopNest(
        MappingProxyType({loop: extent for loop, extent in extents.items() if loop not in absent}),
        _at("m", "c", "r", "s"),
        tuple(MappingProxyType(coordinate) for coordinate in inputs),
        _at("n", "m", "p", "q"),
    )


def coordinate_values(coordinate: Mapping[str, int], extents: Mapping[str, int]) -> int:
    """Different values of one coordinate of an address while its loops run over `extents`; other loops stand still.

    >>> coordinate_values({"p": 2, "r": 1}, {"p": 4, "r": 3})  # rows 0 to 8
    9
    """
    loops = [loop for loop in coordinate if extents.get(loop, 1) > 1]
    if len(loops) <= 1:
        return extents[loops[0]] if loops else 1
    values = {0}
    for loop in loops:
        values = {value + coordinate[loop] * index for value in values for index in range(extents[loop])}
    return len(values)


def _at(*loops: str) -> Address:
    return tuple(MappingProxyType({loop: 1}) for loop in loops)


def _positions(name: str, size: int, kernel: int, stride: int, padding: int) -> int:
    padded = positive_int(name, size) + 2 * padding
    if positive_int("kernel", kernel) > padded:
        raise InvalidValue(
            f"kernel must be at most {padded} ({name} with padding), got {kernel}; the nearest is {padded}"
        )
    return (padded - kernel) // stride + 1
