"""Memory of an inspected launch: which elements each tensor has, who wrote them, and who read them.

Every load, store and atomic of the launch is an event, with its program and its line. Programs run one after the other,
so the events of one program are a range of numbers. For each element that is stored, a region keeps its first and its
last event of each sort. From these it follows whether several programs are involved: if the first and the last event
belong to the same program, all between them do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mlsys.grading.hazards.finding import Place, line_in_cell

if TYPE_CHECKING:
    import torch

Addresses = NDArray[np.uint64]
Cells = NDArray[np.int64]
Lanes = NDArray[np.bool_]

_MAX_LOGGED = 2**24
"""Most elements that the log of loads holds, 8 bytes each; a longer log is entered at once."""

READ, WRITE, ATOMIC = "read", "write", "atomic"


class Region:
    """The memory of one storage, cut into cells as large as the smallest element type of its views."""

    def __init__(self, start: int, cell_bytes: int, cells: int) -> None:
        self.start = start
        self.cell_bytes = cell_bytes
        self.cells = cells
        self.first: dict[str, NDArray[np.int32]] = {}
        self.last: dict[str, NDArray[np.int32]] = {}
        self.unwritten: Lanes | None = None

    def cells_of(self, addresses: Addresses, itemsize: int) -> Cells:
        """Return the cells of elements; an element that is larger than a cell has several, in the last dimension."""
        offsets = (addresses - np.uint64(self.start)).astype(np.int64)
        if self.cell_bytes > 1:
            offsets //= self.cell_bytes
        parts = max(1, itemsize // self.cell_bytes)
        return offsets if parts == 1 else offsets[..., None] + np.arange(parts)

    def enter(self, sort: str, cells: Cells, event: int) -> None:
        """Record an event of a sort for some cells."""
        if sort not in self.last:
            self.first[sort] = np.zeros(self.cells, np.int32)
            self.last[sort] = np.zeros(self.cells, np.int32)
        first = self.first[sort]
        new = first[cells] == 0
        if new.all():
            first[cells] = event
        elif new.any():
            first[cells[new]] = event
        self.last[sort][cells] = event


@dataclass
class View:
    """The elements of one tensor argument.

    Attributes:
        name: name of the argument.
        tensor: the launch's own copy of the caller's tensor.
        region: the region of its storage.
        start: address of its first element.
        extent: elements from the first to the last, with the gaps between them.
        own: which elements of the extent belong to the tensor; None if all do.
    """

    name: str
    tensor: "torch.Tensor"
    region: Region
    start: int = field(init=False)
    extent: int = field(init=False)
    own: Lanes | None = field(init=False)

    def __post_init__(self) -> None:
        tensor = self.tensor
        self.start = tensor.data_ptr()
        self.itemsize = tensor.element_size()
        self.extent = extent_of(tensor)
        self.bytes = self.extent * self.itemsize
        self.own = None if _is_dense(tensor) else _elements(tensor, self.extent)

    def holds(self, addresses: Addresses, itemsize: int) -> Lanes:
        """Return which addresses are those of the tensor's elements."""
        offsets = addresses - np.uint64(self.start)  # an address before the start wraps around to a huge offset
        if itemsize > self.bytes:
            return np.zeros(addresses.shape, bool)
        inside: Lanes = offsets <= np.uint64(self.bytes - itemsize)
        if self.own is not None:
            places = np.where(inside, offsets, 0).astype(np.int64)
            inside &= self.own[places // self.itemsize] & (places % self.itemsize == 0)
        return inside

    def index_of(self, address: int) -> tuple[int, ...]:
        """Return the indices of the element at an address."""
        rest = (address - self.start) // self.itemsize
        index = [0] * self.tensor.ndim
        for axis in sorted(range(self.tensor.ndim), key=self.tensor.stride, reverse=True):
            if self.tensor.stride(axis) and self.tensor.shape[axis] > 1:
                index[axis] = min(rest // self.tensor.stride(axis), self.tensor.shape[axis] - 1)
                rest -= index[axis] * self.tensor.stride(axis)
        return tuple(index)

    def element(self, address: int) -> str:
        """Name the element at an address, such as "out[2, 3]"."""
        return f"{self.name}[{', '.join(map(str, self.index_of(address)))}]"


class Events:
    """The accesses of a launch in order, numbered from 1, each with its program and its line."""

    def __init__(self) -> None:
        self.program = 0
        self.begin = 1
        self.programs: list[int] = [-1]
        self.lines: list[tuple[str, int]] = [("", 0)]
        self._atomics: dict[int, list[tuple[int, Addresses]]] = {}

    def start(self, program: int) -> None:
        """Let a program begin."""
        self.program = program
        self.begin = len(self.programs)

    def add(self, line: tuple[str, int]) -> int:
        """Record an access and return its number."""
        self.programs.append(self.program)
        self.lines.append(line)
        return len(self.programs) - 1

    def add_atomic(self, event: int, addresses: Addresses) -> None:
        """Record where an atomic operation took place: programs can wait for each other there."""
        self._atomics.setdefault(self.program, []).append((event, addresses.ravel()))

    def ordered(self, one: int, other: int) -> bool:
        """Return whether atomics put two accesses of different programs in order.

        They do if the program of the earlier one uses an atomic at some address after it, such as to release a lock,
        and the program of the later one uses an atomic at that address before it, such as to take the lock.
        """
        earlier, later = sorted((one, other))
        released = [at for event, at in self._atomics.get(self.programs[earlier], ()) if event > earlier]
        acquired = [at for event, at in self._atomics.get(self.programs[later], ()) if event < later]
        if not released or not acquired:
            return False
        return bool(np.intersect1d(np.concatenate(released), np.concatenate(acquired)).size)


class LoadLog:
    """Loads that have not been entered into their regions: most tensors are never stored, and need no record."""

    def __init__(self) -> None:
        self._loads: list[tuple[int, Region, Addresses, Lanes | None, int]] = []
        self._logged = 0

    def add(self, event: int, region: Region, addresses: Addresses, active: Lanes | None, itemsize: int) -> None:
        """Record a load; the arrays must not change afterwards."""
        self._loads.append((event, region, addresses, active, itemsize))
        self._logged += addresses.size
        if self._logged > _MAX_LOGGED:
            self.enter(stored_only=False)

    def enter(self, stored_only: bool) -> None:
        """Enter the loads into their regions, or into those that are stored to, and forget the others."""
        for event, region, addresses, active, itemsize in self._loads:
            if not stored_only or WRITE in region.last or ATOMIC in region.last:
                used = addresses.ravel() if active is None else addresses[active]
                region.enter(READ, region.cells_of(used, itemsize), event)
        self._loads, self._logged = [], 0


def meetings(region: Region, one: str, other: str, programs: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield where events of two sorts by different programs meet: the event of each, and a cell.

    Each pair of events comes once, with the first cell in which the two meet.
    """
    if one not in region.last or other not in region.last:
        return
    ends = [region.first[one], region.last[one], region.first[other], region.last[other]]
    both = np.flatnonzero((ends[0] > 0) & (ends[2] > 0))
    if not both.size:
        return
    events = np.stack([end[both] for end in ends])
    owners = np.asarray(programs, np.int64)[events]
    mixed = (owners != owners[0]).any(axis=0)
    if not mixed.any():
        return
    rows, where = np.unique(events[:, mixed], axis=1, return_index=True)
    cells = both[mixed][where]
    seen = set()
    for row, cell in zip(rows.T.tolist(), cells.tolist(), strict=True):
        for mine in row[:2]:
            for theirs in row[2:]:
                if programs[mine] != programs[theirs] and (mine, theirs) not in seen:
                    seen.add((mine, theirs))
                    yield mine, theirs, cell


def lay_out(tensors: "dict[str, torch.Tensor]") -> dict[str, View]:
    """Copy the storages of tensors, and return a view of each copy; tensors that shared memory do so again."""
    import torch

    storages: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        storages.setdefault(tensor.untyped_storage().data_ptr(), []).append(name)
    views = {}
    for names in storages.values():
        copied = tensors[names[0]].untyped_storage().clone()
        mine = {}
        for name in names:
            old = tensors[name]
            empty = torch.empty(0, dtype=old.dtype)
            mine[name] = empty.set_(copied, old.storage_offset(), old.shape, old.stride())
        cell = min(tensor.element_size() for tensor in mine.values())
        start = min(tensor.data_ptr() for tensor in mine.values())
        end = max(tensor.data_ptr() + extent_of(tensor) * tensor.element_size() for tensor in mine.values())
        region = Region(start, cell, -(-(end - start) // cell))
        views.update({name: View(name, tensor, region) for name, tensor in mine.items()})
    return {name: views[name] for name in tensors}


def extent_of(tensor: "torch.Tensor") -> int:
    """Return the count of elements from the first to the last of a strided tensor, with the gaps between them."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))


def _is_dense(tensor: "torch.Tensor") -> bool:
    """Return whether a tensor has no gaps between its elements."""
    covered = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if step > covered:
            return False
        covered += (size - 1) * step
    return True


def _elements(tensor: "torch.Tensor", extent: int) -> Lanes:
    import torch

    own = torch.zeros(extent, dtype=torch.bool)
    own.as_strided(tensor.shape, tensor.stride()).fill_(True)
    return np.asarray(own.numpy())


def place_of(events: Events, event: int, grid: tuple[int, ...]) -> Place:
    """Return the place of an event."""
    import linecache

    file, line = events.lines[event]
    program = tuple(int(index) for index in np.unravel_index(events.programs[event], grid))
    return Place(line_in_cell(file, line), linecache.getline(file, line).strip(), program)
