"""What a layer breaks down to: multiply-adds, vector operations, special functions and gathers.

A step names its unit, its pattern (how many numbers go in and come out) and the sizes over which it runs.

>>> from mlsys.ops import primitives
>>> primitives.counts("dense layer with ReLU", batch=32, inputs=256, outputs=512)["matrix"]
4194304
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from mlsys.core.arguments import positive_int
from mlsys.errors import InvalidValue, UnknownName

if TYPE_CHECKING:
    from mlsys.hardware import Accelerator

UNITS = ("matrix", "vector", "special", "memory")
"""Matrix unit, vector unit, special-function unit, and the unit that loads what an index names."""


@dataclass(frozen=True)
class Step:
    """One kind of primitive in a layer.

    Attributes:
        what: what it does.
        unit: one of `UNITS`.
        pattern: how numbers go in and come out, such as "element-wise", "reduction" or "gather".
        over: names of the sizes; the primitive runs `each` times for every combination of them.
        each: operations for one combination. A multiply-add is one operation.
    """

    what: str
    unit: str
    pattern: str
    over: tuple[str, ...]
    each: int = 1

    def count(self, sizes: Mapping[str, int]) -> int:
        """Return the operations: each times the product of the sizes."""
        return self.each * prod(sizes[name] for name in self.over)


EXPONENTIALS = (
    ("largest of the row", "vector", "reduction"),
    ("scale, minus the largest", "vector", "broadcast"),
    ("exponential", "special", "element-wise"),
    ("sum of the row", "vector", "reduction"),
)
"""What a softmax does for every number: data, since labs withhold the functions of this room, from its own use too."""


LAYERS: Mapping[str, tuple[Step, ...]] = {
    "dense layer with ReLU": (
        Step("products with the weights", "matrix", "many to many", ("batch", "inputs", "outputs")),
        Step("plus bias", "vector", "broadcast", ("batch", "outputs")),
        Step("maximum with 0", "vector", "element-wise", ("batch", "outputs")),
    ),
    "attention, one head": (
        Step("queries with keys", "matrix", "many to many", ("tokens", "tokens", "width")),
        *(Step(*step, ("tokens", "tokens")) for step in EXPONENTIALS),
        Step("1 / sum", "special", "element-wise", ("tokens",)),
        Step("weights with values", "matrix", "many to many", ("tokens", "tokens", "width")),
        Step("times 1 / sum", "vector", "broadcast", ("tokens", "width")),
    ),
    "softmax": (
        *(Step(*step, ("rows", "columns")) for step in EXPONENTIALS),
        Step("1 / sum", "special", "element-wise", ("rows",)),
        Step("times 1 / sum", "vector", "broadcast", ("rows", "columns")),
    ),
    "layer normalization": (
        Step("sum of the row", "vector", "reduction", ("rows", "columns")),
        Step("minus the mean", "vector", "broadcast", ("rows", "columns")),
        Step("sum of the squares", "vector", "reduction", ("rows", "columns")),
        Step("1 / root of the variance", "special", "element-wise", ("rows",)),
        Step("times 1 / root, scale, shift", "vector", "broadcast", ("rows", "columns"), 2),
    ),
    "GELU": (
        Step("polynomial of x", "vector", "element-wise", ("elements",), 3),
        Step("exponential", "special", "element-wise", ("elements",)),
        Step("plus 1", "vector", "element-wise", ("elements",)),
        Step("reciprocal", "special", "element-wise", ("elements",)),
        Step("times x", "vector", "element-wise", ("elements",)),
    ),
    "embedding": (Step("rows of the table", "memory", "gather", ("tokens", "width")),),
}
"""Layers by name, each as the steps of one common implementation.

The GELU is x / (1 + exp(-2u)) with u a cubic polynomial of x: Hendrycks, Gimpel, arXiv:1606.08415 (2016), the
approximation by tanh. The softmax multiplies x by the scale and subtracts the largest in one multiply-add. Steps that
happen once per row, other than special functions, are left out, and a softmax divides at the end.
"""


def sizes_of(layer: str) -> tuple[str, ...]:
    """Return the names of a layer's sizes, in the order of their first use.

    Raises:
        UnknownName: if there is no such layer; it lists those there are.

    >>> sizes_of("attention, one head")
    ('tokens', 'width')
    """
    if layer not in LAYERS:
        raise UnknownName.of("layer", layer, LAYERS)
    return tuple(dict.fromkeys(name for step in LAYERS[layer] for name in step.over))


def counts(layer: str, **sizes: int) -> dict[str, int]:
    """Return the operations of a layer on each of `UNITS`; a multiply-add is one.

    Args:
        layer: a name of `LAYERS`.
        sizes: the sizes that `sizes_of` names.

    Raises:
        UnknownName: if there is no such layer.
        InvalidValue: if a size is missing, not needed, or not a positive integer.

    >>> counts("attention, one head", tokens=4096, width=128)["special"]
    16781312
    """
    names = sizes_of(layer)
    if set(sizes) != set(names):
        raise InvalidValue(f"{layer} has the sizes {', '.join(names)}; given: {', '.join(sizes) or 'none'}")
    checked = {name: positive_int(name, sizes[name]) for name in names}
    found = dict.fromkeys(UNITS, 0)
    for step in LAYERS[layer]:
        found[step.unit] += step.count(checked)
    return found


def instructions(operations: int, width: int) -> int:
    """Return how many instructions do this many operations, `width` at a time: ceil(operations / width).

    Loads, addresses and loops come on top.

    Raises:
        InvalidValue: if an argument is not a positive integer.

    >>> instructions(32 * 256 * 512, 8)
    524288
    """
    return -(-positive_int("operations", operations) // positive_int("width", width))


def rates(chip: "Accelerator", precision: str) -> dict[str, float]:
    """Return operations per second of each arithmetic unit of a chip, at its peak; a multiply-add is one operation.

    The vector unit computes in FP32, one instruction of a lane being one operation.

    Args:
        chip: a chip with special-function units.
        precision: number format of the products.

    Raises:
        UnknownPrecision: if the matrix unit lacks the format.
        UnknownField: if no document gives the rate of the special-function units.

    >>> from mlsys import Hardware
    >>> {unit: f"{rate:.2g}" for unit, rate in rates(Hardware.Cloud.H100, "fp16").items()}
    {'matrix': '4.9e+14', 'vector': '3.4e+13', 'special': '3.9e+12'}
    """
    return {
        "matrix": chip.peak(precision, engine="tensor").m_as("flop/s") / 2,
        "vector": chip.peak("fp32", engine="vector").m_as("flop/s") / 2,
        "special": chip.special_rate().m_as("flop/s"),
    }
