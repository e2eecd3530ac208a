"""Row-stationary accesses of a convolution, counted as Eyeriss defines them.

One processing element keeps a row of a filter and slides it along a row of the input: a 1-D convolution. R x e elements
form a set that makes e rows of an output: filter rows are shared along a row of the set, input rows along its
diagonals, and sums move up its columns. An access is charged where the value comes from: DRAM, the global buffer, a
neighboring element (array) or the element's own register file.

Source: Chen, Emer and Sze, Eyeriss: A Spatial Architecture for Energy-Efficient Dataflow for Convolutional Neural
Networks, ISCA 2016; the mapping's parameters are those of its row-stationary dataflow.

>>> layer = row_stationary(RowMapping(m=64, n=1, e=27, p=16, q=2, r=1, t=1),
...                        filters=256, channels=48, kernel=5, output=27)
>>> {operand: round(energy / layer.macs, 2) for operand, energy in layer.energy.items()}
{'weights': 1.36, 'inputs': 1.21, 'sums': 2.36}
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from mlsys.core.arguments import int_at_most, positive_int
from mlsys.core.sourced import Sourced
from mlsys.errors import InvalidValue
from mlsys.hardware.energy import basis

LEVELS = ("dram", "buffer", "array", "register_file")


def energy_ratios() -> Mapping[str, Sourced]:
    """Return the energy of an access at each level relative to one multiply-accumulate, with its source.

    >>> [int(energy_ratios()[level].value.m) for level in LEVELS]
    [200, 6, 2, 1]
    """
    return basis("eyeriss-65nm").accesses


@dataclass(frozen=True, slots=True)
class ReuseSplit:
    """How the uses of one value divide over the levels: a b c d = all uses.

    Attributes:
        a: Times a value comes from DRAM.
        b: Times it is read from the buffer each time that it came from DRAM.
        c: Elements of the array that share it each time that it left the buffer.
        d: Times an element uses it from its register file.
    """

    a: Fraction
    b: Fraction
    c: Fraction
    d: Fraction

    @property
    def total(self) -> Fraction:
        """All uses of one value."""
        return self.a * self.b * self.c * self.d

    def read_counts(self) -> dict[str, Fraction]:
        """Accesses per weight or input: a, a b, a b c, a b c d.

        >>> [int(count) for count in ReuseSplit(*map(Fraction, (1, 2, 3, 4))).read_counts().values()]
        [1, 2, 6, 24]
        """
        a, b, c, d = self.a, self.b, self.c, self.d
        return dict(zip(LEVELS, (a, a * b, a * b * c, a * b * c * d), strict=True))

    def sum_counts(self) -> dict[str, Fraction]:
        """Accesses per partial sum: 2a - 1, 2a (b - 1), a b (c - 1), 2 a b c (d - 1).

        Where sums are accumulated, one is read and one written; the first needs no read; between elements it is passed
        on once.

        >>> [int(count) for count in ReuseSplit(*map(Fraction, (1, 2, 3, 4))).sum_counts().values()]
        [1, 2, 4, 36]
        """
        a, b, c, d = self.a, self.b, self.c, self.d
        return dict(zip(LEVELS, (2 * a - 1, 2 * a * (b - 1), a * b * (c - 1), 2 * a * b * c * (d - 1)), strict=True))


@dataclass(frozen=True, slots=True)
class RowMapping:
    """Parameters of a row-stationary mapping.

    Attributes:
        m: Filters whose sums the buffer holds.
        n: Images that an element works on before its filter rows change.
        e: Output rows of a set, its width.
        p: Filters that an element interleaves.
        q: Channels that an element interleaves.
        r: Sets that work on different channels.
        t: Sets that work on different filters.
    """

    m: int
    n: int
    e: int
    p: int
    q: int
    r: int
    t: int

    def elements(self, kernel: int) -> int:
        """Elements in use: kernel e r t.

        >>> RowMapping(m=96, n=1, e=7, p=16, q=1, r=1, t=2).elements(11)
        154
        """
        return positive_int("kernel", kernel) * self.e * self.r * self.t

    def register_words(self, kernel: int) -> dict[str, int]:
        """Words that an element keeps: p q kernel weights, q kernel inputs, p sums.

        >>> RowMapping(m=96, n=1, e=7, p=16, q=1, r=1, t=2).register_words(11)
        {'weights': 176, 'inputs': 11, 'sums': 16}
        """
        kernel = positive_int("kernel", kernel)
        return {"weights": self.p * self.q * kernel, "inputs": self.q * kernel, "sums": self.p}


@dataclass(frozen=True, slots=True)
class RowStationary:
    """Accesses of one layer by operand ("weights", "inputs", "sums").

    Attributes:
        macs: Multiply-accumulates.
        values: Distinct values of each operand.
        splits: How the uses of a value divide over the levels, on average.
    """

    macs: int
    values: Mapping[str, int]
    splits: Mapping[str, ReuseSplit]

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Accesses of each operand at each level."""
        return {
            operand: {
                level: int(count * self.values[operand])
                for level, count in (split.sum_counts() if operand == "sums" else split.read_counts()).items()
            }
            for operand, split in self.splits.items()
        }

    @property
    def energy(self) -> dict[str, float]:
        """Energy of the accesses of each operand, in units of one multiply-accumulate at 65 nm (`energy_ratios`)."""
        ratios = energy_ratios()
        return {
            operand: float(sum(count * ratios[level].value.m for level, count in by_level.items()))
            for operand, by_level in self.counts.items()
        }


def row_stationary(
    mapping: RowMapping, *, filters: int, channels: int, kernel: int, output: int, stride: int = 1, batch: int = 1
) -> RowStationary:
    """Count the accesses of a convolution under a row-stationary mapping.

    Weights are fetched from DRAM once, inputs once per m filters, outputs written once. Each operand's uses divide as

    =======  ===========  =====================  =======  ========
    operand  a            b                      c        d
    =======  ===========  =====================  =======  ========
    weights  1            (E / e) (N / n)        e        n E
    inputs   M / m        m / (p t)              R t      R p
    sums     1            C / (q r)              R r      R q
    =======  ===========  =====================  =======  ========

    for N images, M filters, C channels, kernel side R and output side E, when everything divides and rims are
    neglected. The counts here are exact: a last strip, group or rim has its real size.

    Args:
        mapping: The mapping's parameters.
        filters: Filters M.
        channels: Channels C.
        kernel: Side R of the kernel.
        output: Side E of the output.
        stride: Step U between output positions, at most the kernel's side.
        batch: Images N.

    Raises:
        InvalidValue: A size that is no positive integer, a stride above the kernel's side, a mapping parameter larger
            than what it divides, or more filters at work (p t) than the buffer holds sums for (m).

    >>> layer = row_stationary(RowMapping(m=4, n=1, e=3, p=2, q=2, r=2, t=2), filters=8, channels=4, kernel=3, output=6)
    >>> layer.counts["weights"]
    {'dram': 288, 'buffer': 576, 'array': 1728, 'register_file': 10368}
    """
    sizes = {"filters": filters, "channels": channels, "kernel": kernel, "output": output, "batch": batch}
    for name, size in sizes.items():
        positive_int(name, size)
    int_at_most("stride", stride, kernel, "the kernel's side; a larger stride skips inputs")
    for name, of in (("m", "filters"), ("n", "batch"), ("e", "output"), ("p", "filters"), ("q", "channels")):
        int_at_most(name, getattr(mapping, name), sizes[of], f"the layer's {of}")
    if (positive_int("r", mapping.r) - 1) * mapping.q >= channels:
        raise InvalidValue(f"r must be at most {ceil(channels / mapping.q)} (all channels are busy), got {mapping.r}")
    if mapping.p * positive_int("t", mapping.t) > mapping.m:
        raise InvalidValue(
            f"p t must be at most m = {mapping.m}, got {mapping.p * mapping.t}; the nearest is {mapping.m}"
        )

    side = (output - 1) * stride + kernel
    macs = batch * filters * channels * kernel**2 * output**2
    weights, inputs, outputs = filters * channels * kernel**2, batch * channels * side**2, batch * filters * output**2
    strips = _parts(output, mapping.e)
    image_groups = len(_parts(batch, mapping.n))
    resident = _parts(filters, mapping.m)
    passes = sum(len(_parts(group, mapping.p * mapping.t)) for group in resident)
    interleaved = sum(len(_parts(group, mapping.p)) for group in resident)
    rows_fetched = sum((strip - 1) * stride + kernel for strip in strips)
    channel_groups = len(_parts(channels, mapping.q))
    channel_passes = ceil(channel_groups / mapping.r)
    levels = {
        "weights": (weights, weights * len(strips) * image_groups, weights * output * image_groups),
        "inputs": (
            inputs * len(resident),
            batch * channels * passes * rows_fetched * side,
            batch * channels * interleaved * kernel * output * side,
        ),
        "sums": (outputs, outputs * channel_passes, outputs * channel_groups * kernel),
    }
    values = {"weights": weights, "inputs": inputs, "sums": outputs}
    splits = {}
    for operand, (dram, buffer, array) in levels.items():
        value = values[operand]
        splits[operand] = ReuseSplit(
            Fraction(dram, value), Fraction(buffer, dram), Fraction(array, buffer), Fraction(macs, array)
        )
    return RowStationary(macs, values, splits)


def _parts(extent: int, size: int) -> list[int]:
    whole, rest = divmod(extent, size)
    return [size] * whole + ([rest] if rest else [])
