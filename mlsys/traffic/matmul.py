"""DRAM traffic of a tiled matrix product, counted by replaying its loop nest through a near memory of given size.

The near memory stands for whatever holds the tiles: shared memory and registers of one block, or a whole L2 cache. It
keeps the tiles that were used last (least recently used goes first), so it shows both what a tiling saves and
what it spills.

>>> from mlsys import traffic
>>> one = traffic.untiled(m=1024, n=1024, k=1024)
>>> tiled = traffic.tiled_matmul(m=1024, n=1024, k=1024, tile_m=64, tile_n=64, tile_k=64, memory_bytes=48 * 1024)
>>> round(one.total / tiled.total, 1)
<Quantity(62.1, 'dimensionless')>
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations, product
from math import ceil, prod
from types import MappingProxyType

from mlsys.core.arguments import positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue, UnknownName
from mlsys.traffic.near_memory import LRUMemory
from mlsys.units import Quantity, ureg

ORDERS = tuple("".join(order) for order in permutations("mnk"))
"""Loop orders, outermost loop first; in "mnk" a tile of C is finished before the next one begins."""


@dataclass(frozen=True)
class Traffic:
    """Bytes that cross between DRAM and the near memory, by operand ("A", "B", "C").

    Attributes:
        read: bytes read, by operand.
        written: bytes written, by operand.
        working_set: bytes of one tile of each operand, which one step needs at once.
    """

    read: Mapping[str, int]
    written: Mapping[str, int]
    working_set: int = 0

    @property
    def total_bytes(self) -> int:
        """All bytes, as a plain number."""
        return sum(self.read.values()) + sum(self.written.values())

    @property
    def bytes_read(self) -> Quantity:
        """Bytes read."""
        return ureg.Quantity(sum(self.read.values()), "byte")

    @property
    def bytes_written(self) -> Quantity:
        """Bytes written."""
        return ureg.Quantity(sum(self.written.values()), "byte")

    @property
    def total(self) -> Quantity:
        """All bytes."""
        return ureg.Quantity(self.total_bytes, "byte")


def _traffic(read: Mapping[str, int], written: Mapping[str, int], working_set: int) -> Traffic:
    return Traffic(MappingProxyType(dict(read)), MappingProxyType(dict(written)), working_set)


@dataclass(frozen=True)
class Schedule:
    """Tile sizes for C[m, n] += A[m, k] B[k, n], and the traffic that they cause."""

    tile_m: int
    tile_n: int
    tile_k: int
    traffic: Traffic = field(compare=False)


def compulsory_bytes(m: int, n: int, k: int, dtype: str = "fp32") -> int:
    """Bytes that no schedule can avoid: A and B read once, C written once.

    Formula: size (m k + k n + m n).

    >>> compulsory_bytes(2, 3, 4, "fp16")
    52
    """
    sizes = [positive_int(*item) for item in (("m", m), ("n", n), ("k", k))]
    m, n, k = sizes
    return int(bytes_per_element(dtype) * (m * k + k * n + m * n))


def untiled(m: int, n: int, k: int, dtype: str = "fp32") -> Traffic:
    """Traffic when every multiply-add fetches its two operands and each element of C is written once.

    Formula: size (2 m n k) read and size m n written; the running sum stays in a register.

    >>> untiled(2, 3, 4).total
    <Quantity(216, 'byte')>
    """
    compulsory_bytes(m, n, k, dtype)  # refuses the same bad sizes
    size = int(bytes_per_element(dtype))
    return _traffic({"A": size * m * n * k, "B": size * m * n * k}, {"C": size * m * n}, 3 * size)


def tiled_matmul(
    m: int,
    n: int,
    k: int,
    tile_m: int,
    tile_n: int,
    tile_k: int,
    *,
    memory_bytes: int,
    dtype: str = "fp32",
    order: str = "mnk",
) -> Traffic:
    """Replay the tiled loop nest through a near memory of `memory_bytes`, tile by tile.

    Every step uses one tile of A (tile_m x tile_k), one of B (tile_k x tile_n) and adds into one of C (tile_m x
    tile_n). Tiles at an edge have their real, smaller size. A sum that is evicted before it is finished is written,
    and read again when it is needed.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        tile_m: rows of a tile of A and C.
        tile_n: columns of a tile of B and C.
        tile_k: columns of a tile of A, rows of a tile of B.
        memory_bytes: size of the near memory.
        dtype: format of all three matrices.
        order: loop order, outermost first, one of `ORDERS`.

    Raises:
        InvalidValue: if a size is not a positive integer, or one tile alone does not fit the memory.
        UnknownName: if the order or the dtype is unknown.

    >>> tiled_matmul(128, 128, 128, 64, 64, 64, memory_bytes=48 * 1024).bytes_read  # A and B, twice each
    <Quantity(262144, 'byte')>
    """
    if order not in ORDERS:
        raise UnknownName.of("loop order", order, ORDERS)
    size = int(bytes_per_element(dtype))
    extents = {"m": positive_int("m", m), "n": positive_int("n", n), "k": positive_int("k", k)}
    tiles = {
        "m": min(m, positive_int("tile_m", tile_m)),
        "n": min(n, positive_int("tile_n", tile_n)),
        "k": min(k, positive_int("tile_k", tile_k)),
    }
    memory = LRUMemory(positive_int("memory_bytes", memory_bytes))
    rows, cols, depths = (_lengths(extents[x], tiles[x]) for x in "mnk")
    loops = {"m": range(len(rows)), "n": range(len(cols)), "k": range(len(depths))}
    at_m, at_n, at_k = (order.index(x) for x in "mnk")
    for step in product(*(loops[x] for x in order)):
        i, j, p = step[at_m], step[at_n], step[at_k]
        memory.read(("A", i, p), size * rows[i] * depths[p])
        memory.read(("B", p, j), size * depths[p] * cols[j])
        memory.accumulate(("C", i, j), size * rows[i] * cols[j])
    memory.flush()
    return _traffic(memory.bytes_read, memory.bytes_written, size * _elements(**tiles))


def _elements(m: int, n: int, k: int) -> int:
    return m * k + k * n + m * n


def _lengths(extent: int, tile: int) -> list[int]:
    """The tiles' real sizes along one side.

    >>> _lengths(10, 4)
    [4, 4, 2]
    """
    return [min(tile, extent - start) for start in range(0, extent, tile)]


def best_schedule(m: int, n: int, k: int, *, memory_bytes: int, dtype: str = "fp32") -> Schedule:
    """The tile sizes with the least traffic among all that fit, for the order "mnk".

    Only tile sizes that cut a side into equal parts matter, for a tile that is larger without saving a pass takes room
    and gives nothing. For each pair (tile_m, tile_n) either k is not cut, so that a band of A stays for all of n, or
    it is cut so finely that the tile of C has nearly the whole memory.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        memory_bytes: size of the near memory; three tiles must fit at once.
        dtype: format of all three matrices.

    Raises:
        InvalidValue: if not even tiles of one element fit.

    Source: Lam, Rothberg and Wolf, The cache performance and optimizations of blocked algorithms, ASPLOS 1991.

    >>> best = best_schedule(256, 256, 256, memory_bytes=16 * 1024)
    >>> best.tile_m, best.tile_n, best.tile_k
    (52, 64, 6)
    """
    size = int(bytes_per_element(dtype))
    capacity = positive_int("memory_bytes", memory_bytes) // size
    compulsory_bytes(m, n, k, dtype)  # refuses the same bad sizes
    found = [
        (_elements_moved(m, n, k, tile_m, tile_n, tile_k), -tile_k, tile_m, tile_n)
        for tile_m, tile_n in product(equal_parts(m), equal_parts(n))
        if (tile_k := min(k, (capacity - tile_m * tile_n) // (tile_m + tile_n))) >= 1
    ]
    if not found:
        raise InvalidValue(f"{memory_bytes} bytes hold no three {dtype} elements: use {3 * size} bytes or more")
    _, minus_tile_k, tile_m, tile_n = min(found)
    replayed = tiled_matmul(m, n, k, tile_m, tile_n, -minus_tile_k, memory_bytes=memory_bytes, dtype=dtype)
    return Schedule(tile_m, tile_n, -minus_tile_k, replayed)


def equal_parts(extent: int) -> list[int]:
    """Return the sizes that cut `extent` into 1, 2, 3, ... parts, the last one perhaps smaller.

    >>> equal_parts(10)
    [10, 5, 4, 3, 2, 1]
    """
    return sorted({ceil(extent / parts) for parts in range(1, extent + 1)}, reverse=True)


def _elements_moved(m: int, n: int, k: int, tile_m: int, tile_n: int, tile_k: int) -> int:
    """Elements that cross, for the order "mnk" and a memory that holds three tiles and no more."""
    passes_a, passes_b = ceil(n / tile_n), ceil(m / tile_m)
    if tile_k == k:  # the tile of A is a whole band and stays while j runs; so does B if it is a single tile
        passes_a = 1
        passes_b = 1 if tile_n == n else passes_b
    return prod((m, k, passes_a)) + prod((k, n, passes_b)) + m * n
