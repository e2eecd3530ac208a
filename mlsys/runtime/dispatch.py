"""Kernel choice: which of several kernels computes a matrix product, by measured times or by a model.

A table of measured times answers for the shapes in it. For any other shape, the model prices each kernel. A kernel
computes whole tiles, one on each SM at a time, in waves:

    time = launch + max(waves * 2 tile_m tile_n k / (efficiency * peak / SMs), bytes / bandwidth)
    waves = ceil(ceil(m / tile_m) * ceil(n / tile_n) / SMs)

So a large tile that is mostly padding, or a last wave that is mostly empty, costs as much as a full one.

>>> from mlsys import Hardware
>>> from mlsys.roofline import Roofline
>>> device = Device(Roofline.of(Hardware.get("h200"), "fp16"), sms=132, launch_s=6e-6)
>>> kernels = [TiledKernel("small tiles", 64, 64, 0.4), TiledKernel("large tiles", 128, 256, 0.6)]
>>> choose((4096, 4096, 4096), kernels, device).kernel
'large tiles'
>>> choose((64, 4096, 4096), kernels, device).kernel
'small tiles'
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TypeAlias

from mlsys import ops
from mlsys.core.arguments import non_negative, positive_int
from mlsys.errors import InvalidValue
from mlsys.measure.records import Row
from mlsys.roofline import Roofline

Shape: TypeAlias = tuple[int, ...]
"""Sizes m, n, k of a product of an m x k by a k x n matrix."""

Measured: TypeAlias = Mapping[Shape, Mapping[str, float]]
"""Seconds by shape and by the name of the kernel."""


@dataclass(frozen=True, slots=True)
class TiledKernel:
    """A kernel for matrix products that computes tiles of C.

    Attributes:
        name: What it is called, also in the table of measured times.
        tile_m: Rows of a tile of C.
        tile_n: Columns of a tile of C.
        efficiency: Share of the SMs' peak that it reaches while all of them have a tile.
    """

    name: str
    tile_m: int
    tile_n: int
    efficiency: float = 1.0

    def __post_init__(self) -> None:
        positive_int("tile_m", self.tile_m)
        positive_int("tile_n", self.tile_n)
        if not 0 < self.efficiency <= 1:
            raise InvalidValue(f"efficiency of {self.name!r} is {self.efficiency}; it must be above 0 and at most 1")


@dataclass(frozen=True, slots=True)
class Device:
    """What the model knows of a device.

    Attributes:
        roofline: Its peak and its bandwidth, and the number format.
        sms: How many SMs it has.
        launch_s: Seconds to launch a kernel.
        dtype: Number format of the matrices.
    """

    roofline: Roofline
    sms: int
    launch_s: float = 0.0
    dtype: str = "fp16"

    def seconds(self, shape: Shape, kernel: TiledKernel) -> float:
        """The modeled time of a kernel on a shape m, n, k.

        Raises:
            InvalidValue: Sizes that are no three positive integers, or a launch that takes less than no time.
        """
        m, n, k = _sizes(shape)
        tiles = ceil(m / kernel.tile_m) * ceil(n / kernel.tile_n)
        waves = ceil(tiles / positive_int("sms", self.sms))
        per_sm: float = kernel.efficiency * self.roofline.peak.m_as("flop/s") / self.sms
        arithmetic: float = waves * 2 * kernel.tile_m * kernel.tile_n * k / per_sm
        memory: float = ops.matmul(m=m, n=n, k=k, dtype=self.dtype).bytes.m_as("byte") / self.roofline.bandwidth_per_s
        return non_negative("launch_s", self.launch_s) + max(arithmetic, memory)


@dataclass(frozen=True, slots=True)
class Choice:
    """The kernel chosen for a shape.

    Attributes:
        kernel: Its name.
        time_s: Its time in seconds, measured or modeled.
        basis: "measured" or "model".
        times_s: The times of all kernels, by name, fastest first.
    """

    kernel: str
    time_s: float
    basis: str
    times_s: Mapping[str, float]


def choose(shape: Shape, kernels: Sequence[TiledKernel], device: Device, measured: Measured | None = None) -> Choice:
    """Choose the fastest kernel for a shape.

    Measured times decide if the table has one for every kernel at this very shape; otherwise the model decides, since a
    measured time of one kernel and a modeled time of another cannot be compared.

    Args:
        shape: Sizes m, n, k.
        kernels: What there is to choose from; of equal times, the first wins.
        device: The device that the model prices them on.
        measured: A table of measured times, such as `measured_times` makes from a record.

    Raises:
        InvalidValue: No kernels, or sizes that are no three positive integers.
    """
    shape = _sizes(shape)
    if not kernels:
        raise InvalidValue("there are no kernels to choose from; give at least one")
    known = (measured or {}).get(shape, {})
    basis = "measured" if all(kernel.name in known for kernel in kernels) else "model"
    times = {
        kernel.name: known[kernel.name] if basis == "measured" else device.seconds(shape, kernel) for kernel in kernels
    }
    ranked = dict(sorted(times.items(), key=lambda one: one[1]))
    best = next(iter(ranked))
    return Choice(best, ranked[best], basis, ranked)


def measured_times(rows: Iterable[Row]) -> dict[Shape, dict[str, float]]:
    """Return the times of a benchmark record by shape and kernel, with those of the peers that ran beside it.

    Args:
        rows: Rows of one measurement and one number format, such as `record.named("tile sides")`.

    Raises:
        InvalidValue: The rows have more than one number format.
    """
    rows = tuple(rows)
    if len(formats := sorted({row.dtype for row in rows})) > 1:
        raise InvalidValue(f"the rows are of {', '.join(formats)}; choose those of one number format")
    table: dict[Shape, dict[str, float]] = {}
    for row in rows:
        times = table.setdefault(row.shape, {})
        times[row.variant] = row.median_s
        for peer, ratio in row.peers.items():
            times.setdefault(peer, ratio * row.median_s)
    return table


def _sizes(shape: Shape) -> tuple[int, int, int]:
    if len(shape) != 3:
        raise InvalidValue(f"shape is {shape!r}; give three sizes m, n, k")
    m, n, k = (positive_int(name, size) for name, size in zip("mnk", shape, strict=True))
    return m, n, k
