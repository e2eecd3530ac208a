"""Matrix products mapped onto whole chips: what limits a layer, for each operand that may stay.

A chip is described by a few numbers: arrays that each hold a piece of one operand, a near memory, and a bandwidth. A
layer then takes the longer of two times, as under a roofline. Both depend on the dataflow:

- arithmetic: pieces that fill an array only in part take as long as full ones, and the last round of pieces may leave
  arrays idle;
- memory: `mlsys.dataflow.stationary_traffic`, with the whole near memory for the operand that stays.

>>> chip = Machine.of("tpu-v4")
>>> layer = Product("MLP, first", m=6304, n=3072, k=768)
>>> for dataflow in ("ws", "os", "is"):
...     mapped = chip.map(layer, dataflow)
...     print(dataflow, mapped.limit, round(100 * mapped.utilization))
ws compute 94
os compute 66
is compute 86
"""

from dataclasses import dataclass
from functools import cache
from math import ceil

from mlsys.core.arguments import positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.dataflow.orders import stationary_traffic
from mlsys.errors import UnknownName
from mlsys.hardware import Hardware
from mlsys.systolic.cycles import Folding

CHIPS = ("h200", "tpu-v4")
"""Chips that `Machine.of` knows."""

DTYPE = "bf16"
"""Number format of all machines here, so that they are compared in the same one."""

GPU_TILE = (128, 256)
"""Rows and columns of the piece that a program on a GPU holds: the tile that the library's fastest products have."""


@dataclass(frozen=True)
class Product:
    """A layer as `count` products of the same shape, C[m, n] = A[m, k] B[k, n] with inputs A and weights B.

    Attributes:
        name: the layer.
        m: rows of inputs: tokens, or pixels of all images.
        n: outputs of a row.
        k: numbers that an output sums over, its fan-in.
        count: products that share no operand, such as one for each head, or equal layers one after another.
        together: whether the products may run at the same time.
    """

    name: str
    m: int
    n: int
    k: int
    count: int = 1
    together: bool = False

    def __post_init__(self) -> None:
        for size in ("m", "n", "k", "count"):
            positive_int(size, getattr(self, size))

    @property
    def flops(self) -> int:
        """FLOPs: 2 m n k for each product."""
        return 2 * self.count * self.m * self.n * self.k


@dataclass(frozen=True)
class Mapped:
    """A layer on a chip under one dataflow.

    Attributes:
        compute_s: seconds that the arrays need.
        memory_s: seconds that the bytes need.
        moved: bytes between the chip and its memory.
        useful_s: seconds that the arithmetic would take at the chip's peak.
    """

    compute_s: float
    memory_s: float
    moved: int
    useful_s: float

    @property
    def time_s(self) -> float:
        """Seconds: the longer of the two, since arithmetic and transfers overlap."""
        return max(self.compute_s, self.memory_s)

    @property
    def limit(self) -> str:
        """Which of the two is longer: "compute" or "memory"."""
        return "memory" if self.memory_s > self.compute_s else "compute"

    @property
    def utilization(self) -> float:
        """Share of the peak: time at the peak / time."""
        return self.useful_s / self.time_s


@dataclass(frozen=True)
class Machine:
    """A chip as equal arrays with a near memory.

    Attributes:
        name: the chip.
        peak: FLOP per second of all arrays.
        arrays: how many pieces are held at a time: systolic arrays, or a GPU's SMs with a program each.
        rows: rows of the piece that an array holds.
        cols: its columns.
        fill: steps lost with every piece, while it is loaded and the array fills and empties.
        near_bytes: memory on the chip that layers may use.
        bandwidth: bytes per second to the memory beside the chip.
    """

    name: str
    peak: float
    arrays: int
    rows: int
    cols: int
    fill: int
    near_bytes: int
    bandwidth: float

    @classmethod
    def of(cls, chip_id: str) -> "Machine":
        """Return the machine of a chip, from its data sheet.

        A systolic array of R x C loses 2R + C - 2 steps with every piece (see `mlsys.systolic.gemm_cycles`). A GPU
        loads the next tiles while it multiplies, so it loses none; its near memory is the L2 cache.

        Raises:
            UnknownName: a chip whose array and near memory are not known here; the message lists those that are.

        >>> Machine.of("tpu-v4").arrays, Machine.of("h200").arrays
        (8, 132)
        """
        if chip_id not in CHIPS:
            raise UnknownName.of("machine", chip_id, CHIPS)
        chip = Hardware.get(chip_id)

        def whole(field: str, unit: str = "") -> int:
            return int(chip.field(field).value.m_as(unit))

        if chip_id == "h200":
            arrays, (rows, cols), fill, near = whole("sm_count"), GPU_TILE, 0, whole("l2_capacity", "byte")
        else:
            arrays, side, near = whole("tensor_units"), whole("array_dim"), whole("on_chip_memory", "byte")
            rows = cols = side
            fill = 2 * rows + cols - 2
        peak, bandwidth = chip.peak(DTYPE).m_as("flop/s"), chip.memory_bw.m_as("byte/s")
        return cls(chip.name, peak, arrays, rows, cols, fill, near, bandwidth)

    def map(self, product: Product, dataflow: str) -> Mapped:
        """Return what a layer takes when one operand stays.

        With F pieces of the operand that stays (`mlsys.systolic.cycles.Folding`), L steps that stream past a piece, and
        P arrays, the arithmetic takes ceil(F / P) (L + fill) steps. A step is 2 rows cols FLOPs of one array.

        Args:
            product: the layer.
            dataflow: what stays: "ws" weights, "os" outputs, "is" inputs.

        Raises:
            InvalidValue: if the dataflow is unknown.
        """
        fold = Folding.of(product.m, product.n, product.k, rows=self.rows, cols=self.cols, dataflow=dataflow)
        step_s = 2 * self.rows * self.cols * self.arrays / self.peak
        runs, pieces = (1, product.count * fold.folds) if product.together else (product.count, fold.folds)
        compute_s = runs * ceil(pieces / self.arrays) * (fold.stream + self.fill) * step_s
        size = bytes_per_element(DTYPE)
        each = _moved(product.m, product.n, product.k, dataflow, int(self.near_bytes / size))
        moved = int(product.count * size * each)
        return Mapped(compute_s, moved / self.bandwidth, moved, product.flops / self.peak)

    def best(self, product: Product) -> str:
        """Return the dataflow that takes the least time; of equals the first of "ws", "os", "is".

        >>> Machine.of("tpu-v4").best(Product("MLP, first", m=197, n=3072, k=768))
        'os'
        """
        return min(("ws", "os", "is"), key=lambda dataflow: self.map(product, dataflow).time_s)


@cache
def _moved(m: int, n: int, k: int, dataflow: str, near: int) -> int:
    return stationary_traffic(m, n, k, dataflow=dataflow, buffer=near).accesses.total
