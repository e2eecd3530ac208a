"""What joins chips: a link, and what collectives reach on it.

A ring's time has three parts: a start, paid once; a step, paid 2 (n - 1) times in an all-reduce; and the bytes, at a
share of the link's raw rate. These constants were fitted to published profiles, which the data file names. Between GPUs
of one node they are within 10% of the measured times in the median, where bytes over the raw rate are 70% below.

>>> nvlink = fabric("nvlink-4")
>>> [round(one.all_reduce_time(64 * 2**20, 8).m_as("ms"), 3) for one in (nvlink, nvlink.ideal)]
[0.38, 0.261]
"""

from dataclasses import dataclass

from mlsys.core.arguments import Amount, amount, positive_amount, positive_int
from mlsys.core.sourced import Catalog, Entry, Number, data_file
from mlsys.errors import InvalidValue
from mlsys.hardware.links import link
from mlsys.scaling.collectives import ring_all_reduce_time, ring_reduce_scatter_time
from mlsys.units import Quantity, ureg


@dataclass(frozen=True)
class Fabric:
    """Equal links between chips, each with its own in both directions.

    Attributes:
        name: what the fabric is called.
        bandwidth: bytes per second of a chip's link in one direction, raw.
        efficiency: share of `bandwidth` that collectives reach, above 0 and at most 1.
        start_s: seconds that a collective takes besides its steps and bytes.
        step_s: seconds of a step around the ring before its first byte arrives.
        send_efficiency: share of `bandwidth` that a copy from one chip to another reaches.
        send_start_s: seconds that such a copy takes besides its bytes.
        chips: most chips that the fabric joins; None if that is not limited.

    Raises:
        InvalidValue: if a value is out of its range.
    """

    name: str
    bandwidth: float
    efficiency: float = 1.0
    start_s: float = 0.0
    step_s: float = 0.0
    send_efficiency: float = 1.0
    send_start_s: float = 0.0
    chips: int | None = None

    def __post_init__(self) -> None:
        positive_amount("bandwidth", self.bandwidth, "byte/second")
        for name in ("efficiency", "send_efficiency"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidValue(f"{name} is {getattr(self, name)!r}: give a share above 0 and at most 1")
        for name in ("start_s", "step_s", "send_start_s"):
            amount(name, getattr(self, name), "second")
        if self.chips is not None:
            positive_int("chips", self.chips)

    @property
    def ideal(self) -> "Fabric":
        """The same links with no start, no latency and their raw rate: the bound that a formula without them gives."""
        return Fabric(f"{self.name}, ideal", self.bandwidth, chips=self.chips)

    def all_reduce_time(self, size: Amount, n: int) -> Quantity:
        """Time to sum a buffer of `size` bytes over n chips so that all have the sum.

        Formula: start + 2 (n - 1) step + 2 (n - 1) / n x size / (efficiency bandwidth); none for one chip.

        Args:
            size: bytes of one chip's buffer.
            n: chips.

        Raises:
            InvalidValue: if a value is out of range, or the fabric joins fewer than n chips.

        >>> round(fabric("nvlink-3").all_reduce_time(64 * 2**20, 8).to("ms"), 2)
        <Quantity(0.75, 'millisecond')>
        """
        ring = ring_all_reduce_time(size, self._joined(n), self.efficiency * self.bandwidth, self.step_s)
        return self._started(ring, n)

    def reduce_scatter_time(self, size: Amount, n: int) -> Quantity:
        """Time to sum a buffer of `size` bytes over n chips so that each has an n-th of the sum.

        Formula: start + (n - 1) step + (n - 1) / n x size / (efficiency bandwidth); arguments and errors are those of
        `all_reduce_time`.
        """
        ring = ring_reduce_scatter_time(size, self._joined(n), self.efficiency * self.bandwidth, self.step_s)
        return self._started(ring, n)

    def all_gather_time(self, size: Amount, n: int) -> Quantity:
        """Time to give n chips the whole buffer of `size` bytes of which each has an n-th; as `reduce_scatter_time`."""
        return self.reduce_scatter_time(size, n)

    def all_to_all_time(self, size: Amount, n: int) -> Quantity:
        """Time in which each of n chips sends an n-th of its `size` bytes to each of the others.

        Formula: start + (n - 1) step + (n - 1) / n x size / (efficiency bandwidth): as much leaves a chip as in a
        reduce-scatter, if the switch lets all pairs talk at once. The constants are those of the ring: no profile of
        this collective was at hand.
        """
        return self.reduce_scatter_time(size, n)

    def send_time(self, size: Amount) -> Quantity:
        """Time to copy `size` bytes from one chip to another: send_start + size / (send_efficiency bandwidth).

        >>> round(fabric("nvlink-4").send_time(64 * 2**20).to("us"))
        <Quantity(193, 'microsecond')>
        """
        sending_s = amount("size", size, "byte") / (self.send_efficiency * self.bandwidth)
        return ureg.Quantity(self.send_start_s + sending_s, "second")

    def _joined(self, n: int) -> int:
        n = positive_int("n", n)
        if self.chips is not None and n > self.chips:
            raise InvalidValue(
                f"{self.name} joins at most {self.chips} chips, not {n}: give at most {self.chips}, or another fabric"
            )
        return n

    def _started(self, ring: Quantity, n: int) -> Quantity:
        return ureg.Quantity(ring.m_as("second") + (self.start_s if n > 1 else 0.0), "second")


class _FabricEntry(Entry, frozen=True, kw_only=True):
    name: str
    efficiency: Number
    start: Number
    step: Number | None = None
    send_efficiency: Number | None = None
    send_start: Number | None = None
    chips: int | None = None


def _of(link_id: str, entry: _FabricEntry) -> Fabric:
    """Where no profile of copies is at hand, a copy has the collectives' constants."""

    def seconds(number: Number) -> float:
        return float(number.sourced.value.m_as("second"))

    def share(number: Number) -> float:
        return float(number.sourced.value.m_as("dimensionless"))

    return Fabric(
        entry.name,
        bandwidth=link(link_id).per_direction.m_as("byte/second"),
        efficiency=share(entry.efficiency),
        start_s=seconds(entry.start),
        step_s=seconds(entry.step) if entry.step else 0.0,
        send_efficiency=share(entry.send_efficiency or entry.efficiency),
        send_start_s=seconds(entry.send_start or entry.start),
        chips=entry.chips,
    )


FABRICS = Catalog("fabric", lambda: data_file("fabrics.toml", dict[str, _FabricEntry]), _of)
"""Return every fabric, by the id of its link."""


def fabric(link_id: str) -> Fabric:
    """Return what collectives reach on this link, such as "nvlink-4", "pcie-5-x16" or "infiniband-hdr".

    Raises:
        UnknownName: with the nearest id and all of them.

    >>> fabric("infiniband-ndr").chips is None
    True
    """
    return FABRICS.get(link_id)


def fabrics() -> tuple[Fabric, ...]:
    """Return every fabric.

    >>> [round(one.efficiency, 2) for one in fabrics()][:2]
    [0.56, 0.74]
    """
    return FABRICS.all()
