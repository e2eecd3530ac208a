"""A near memory that keeps the blocks used last, and counts the bytes that cross between it and DRAM.

Any loop nest can be replayed through it: call `read` and `accumulate` in the order of its steps, then `flush`.
"""

from collections import Counter, OrderedDict

from mlsys.errors import InvalidValue


class LRUMemory:
    """A memory of `capacity` bytes that evicts whole tiles, least recently used first, and counts what crosses it.

    A key is a tuple whose first item names the operand, such as `("A", 0, 3)`; `bytes_read` and `bytes_written` count
    per operand. A tile that was changed is written back when it is evicted, and at `flush`.

    >>> memory = LRUMemory(capacity=100)
    >>> memory.read(("A", 0), 60)
    >>> memory.read(("A", 1), 60)  # does not fit beside the first
    >>> memory.read(("A", 0), 60)
    >>> memory.bytes_read["A"]
    180
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.bytes_read: Counter[str] = Counter()
        self.bytes_written: Counter[str] = Counter()
        self._tiles: OrderedDict[tuple[object, ...], tuple[int, bool]] = OrderedDict()
        self._used = 0
        self._spilled: set[tuple[object, ...]] = set()

    def read(self, key: tuple[object, ...], size: int) -> None:
        """Use a tile of `size` bytes, fetching it unless it is here."""
        if key in self._tiles:
            self._tiles.move_to_end(key)
        else:
            self._insert(key, size, changed=False)
            self.bytes_read[str(key[0])] += size

    def accumulate(self, key: tuple[object, ...], size: int) -> None:
        """Add into a tile of `size` bytes: a sum that begins needs no fetch, one that was evicted comes back."""
        if key in self._tiles:
            self._tiles[key] = (size, True)
            self._tiles.move_to_end(key)
        else:
            self._insert(key, size, changed=True)
            if key in self._spilled:
                self.bytes_read[str(key[0])] += size

    def flush(self) -> None:
        """Write back everything that was changed, and forget all."""
        while self._tiles:
            self._evict()

    def _insert(self, key: tuple[object, ...], size: int, changed: bool) -> None:
        if size > self.capacity:
            raise InvalidValue(f"tile {key} has {size:,} bytes; the memory holds {self.capacity:,}: use smaller tiles")
        self._used += size
        while self._used > self.capacity:
            self._evict()
        self._tiles[key] = (size, changed)

    def _evict(self) -> None:
        key, (size, changed) = self._tiles.popitem(last=False)
        self._used -= size
        if changed:
            self.bytes_written[str(key[0])] += size
            self._spilled.add(key)
