"""Accesses of an inspected launch: each load, store and atomic is checked before it is carried out."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.grading.hazards.finding import Finding, Place, line_in_cell, listed
from mlsys.grading.hazards.memory import (
    ATOMIC,
    READ,
    WRITE,
    Addresses,
    Events,
    Lanes,
    LoadLog,
    Region,
    View,
    meetings,
    place_of,
)

Undefined = NDArray[np.int32]
"""For each lane of a block the number of the load that left it undefined; 0 for a lane with a value."""

LineOf = Callable[[], tuple[str, int]]


class TooManyAccesses(Exception):
    """A launch makes far more accesses than expected, as a loop does that waits for something that never comes."""


class Accesses:
    """The accesses of one launch, and what is wrong with them.

    Args:
        views: the tensors of the launch, by the name of the argument.
        grid: count of programs in each dimension.
        unwritten: names of the tensors in which nothing is written before the launch.
        line_of: returns file and line of the kernel's statement that is being run.
        most: how many accesses there may be; None for any number.
    """

    def __init__(
        self,
        views: dict[str, View],
        grid: tuple[int, ...],
        unwritten: frozenset[str],
        line_of: LineOf,
        most: int | None = None,
    ) -> None:
        self.views = views
        self.grid = grid
        self.findings: dict[tuple[object, ...], Finding] = {}
        self.events = Events()
        self.uses_old_values = False
        self.meets = False
        self.atomics: set[str] = set()
        self._line_of = line_of
        self._most = most
        self._log = LoadLog()
        self._undefined: list[tuple[int, View | None, tuple[int, ...]]] = []  # event, tensor and first lane of a load
        self._undefined_at: dict[tuple[object, ...], int] = {}
        for name in unwritten:
            view = views[name]
            region = view.region
            if region.unwritten is None:
                region.unwritten = np.zeros(region.cells, bool)
            start = (view.start - region.start) // region.cell_bytes
            region.unwritten[start : start + view.bytes // region.cell_bytes] = True

    # What the interpreter asks for, access by access.

    def event(self) -> int:
        """Record that the program makes an access, and return the event's number."""
        if self._most is not None and len(self.events.programs) > self._most:
            raise TooManyAccesses
        return self.events.add(self._line_of())

    def inside(
        self, event: int, view: View | None, addresses: Addresses, active: Lanes | None, itemsize: int, how: str
    ) -> tuple[list[tuple[View, Addresses, Lanes | None]], Lanes | None]:
        """Check an access against the elements of its tensor.

        Args:
            event: its number.
            view: the tensor of its pointer; None if the pointer does not say.
            addresses: one for each lane.
            active: which lanes take part; None if all do.
            itemsize: bytes of one element.
            how: what the access does, such as "loads".

        Returns:
            For each tensor concerned the addresses and the active lanes; and the active lanes that can be carried out.
        """
        if view is not None:
            held = view.holds(addresses, itemsize)
            outside = ~held if active is None else active & ~held
            if not outside.any():
                return [(view, addresses, active)], active
            self._out_of_bounds(event, view, addresses, outside, how)
            active = held if active is None else active & held
            return [(view, addresses, active)], active
        parts: list[tuple[View, Addresses, Lanes | None]] = []
        left: Lanes = np.ones(addresses.shape, bool) if active is None else active.copy()
        for one in self.views.values():
            held = one.holds(addresses, itemsize) & left
            if held.any():
                parts.append((one, addresses, held))
                left &= ~held
        if left.any():
            self._out_of_bounds(event, None, addresses, left, how)
        can: Lanes = ~left if active is None else active & ~left
        return parts, can

    def loaded(self, event: int, view: View, addresses: Addresses, active: Lanes | None, itemsize: int) -> None:
        """Record a load from one tensor, and find elements that nothing has written."""
        region = view.region
        self._log.add(event, region, addresses, active, itemsize)
        if region.unwritten is None:
            return
        used = addresses.ravel() if active is None else addresses[active]
        if used.size:
            cells = region.cells_of(used, itemsize).reshape(used.size, -1)[:, 0]
            fresh = region.unwritten[cells]
            for sort in (WRITE, ATOMIC):
                if sort in region.first:
                    fresh = fresh & (region.first[sort][cells] == 0)
            if fresh.any():
                self._unwritten(event, view, addresses, active, int(np.flatnonzero(fresh)[0]))

    def stores(
        self, event: int, view: View, addresses: Addresses, active: Lanes | None, values: NDArray[Any], now: Any
    ) -> None:
        """Record a store to one tensor before it is carried out, and find what another program has stored there.

        Args:
            event: its number.
            view: the tensor.
            addresses: one for each lane.
            active: which lanes take part; None if all do.
            values: one for each lane.
            now: returns the values at some addresses.
        """
        used = addresses.ravel() if active is None else addresses[active]
        new = values.ravel() if active is None else values[active]
        if not used.size:
            return
        region = view.region
        cells = region.cells_of(used, values.itemsize)
        if WRITE in region.last:
            before = region.last[WRITE][cells].reshape(used.size, -1)[:, 0]
            foreign = (before > 0) & (before < self.events.begin)
            if foreign.any():
                differs = np.zeros_like(foreign)
                differs[foreign] = ~_same(now(used[foreign]), new[foreign])
                if differs.any():
                    self._conflict_of_programs(event, view, addresses, active, new, before, differs, now)
        region.enter(WRITE, cells, event)

    def stored(self, event: int, view: View, addresses: Addresses, active: Lanes | None, values: Any, now: Any) -> None:
        """Find lanes of a store that has been carried out which another lane has overwritten."""
        used = addresses.ravel() if active is None else addresses[active]
        new = values.ravel() if active is None else values[active]
        if used.size < 2:
            return
        lost = ~_same(now(used), new)
        if lost.any():
            self._conflict_of_lanes(event, view, addresses, active, new, int(np.flatnonzero(lost)[0]))

    def atomic(self, event: int, view: View, addresses: Addresses, active: Lanes | None, itemsize: int) -> None:
        """Record an atomic operation on one tensor."""
        used = addresses.ravel() if active is None else addresses[active]
        if used.size:
            view.region.enter(ATOMIC, view.region.cells_of(used, itemsize), event)
            self.events.add_atomic(event, used)

    # Lanes without a value.

    def masked_off(self, event: int, view: View | None, active: Lanes) -> Undefined:
        """Return which lanes a load without `other=` leaves undefined, by the number of the load."""
        first = _lane(~active, active.shape)
        key = (self.events.lines[event], view and view.name)
        number = self._undefined_at.get(key)
        if number is None:
            self._undefined.append((event, view, first))
            number = self._undefined_at[key] = len(self._undefined)
        else:
            self._undefined[number - 1] = (event, view, first)
        return np.where(active, np.int32(0), np.int32(number))

    def undefined_used(self, undefined: Undefined, what: str, event: int | None = None) -> None:
        """Report lanes without a value that decide something.

        Args:
            undefined: the lanes that are used, as `masked_off` numbers them.
            what: what they decide, such as "is stored".
            event: the access in which they do; None for a branch.
        """
        number = int(undefined.max())
        load, view, masked = self._undefined[number - 1]
        use = self._line_of() if event is None else self.events.lines[event]
        key = ("masked lane used", self.events.lines[load], view and view.name)
        if key in self.findings:
            return
        place = place_of(self.events, load, self.grid)
        lane = _lane(undefined > 0, undefined.shape) if undefined.size > 1 else masked
        tensor = f" from {view.name}" if view else ""
        where = "the same line" if use == self.events.lines[load] else f"line {line_in_cell(*use)}"
        self._report(
            key,
            place,
            f"this load{tensor} has a mask and no other=, so lanes such as {listed(masked)} are undefined, and one of "
            f"them {what} in {where}. Give the load an other= that leaves the result right, or mask that lane there.",
            lane,
            view,
        )

    # What can be told only after the last program.

    def finish(self) -> None:
        """Find programs that meet at one address."""
        self._log.enter(stored_only=True)
        regions: dict[int, Region] = {id(view.region): view.region for view in self.views.values()}
        for region in regions.values():
            for one, other in ((READ, WRITE), (READ, ATOMIC), (ATOMIC, WRITE)):
                for mine, theirs, cell in meetings(region, one, other, self.events.programs):
                    self.meets = True
                    if not self.events.ordered(mine, theirs):
                        self._race(region, one, other, mine, theirs, cell)

    def last_writer(self, view: View, address: int) -> int:
        """Return the last event that changed an element; 0 if none did."""
        cell = int(view.region.cells_of(np.array([address], np.uint64), 1).ravel()[0])
        return max(
            (int(view.region.last[sort][cell]) for sort in (WRITE, ATOMIC) if sort in view.region.last), default=0
        )

    # How each is said.

    def _report(
        self, key: tuple[object, ...], place: Place, sentence: str, lane: tuple[int, ...] | None, view: View | None
    ) -> None:
        at = f", lane {listed(lane)}" if lane else ""
        kind = str(key[0])
        name = view.name if view else None
        self.findings.setdefault(key, Finding(kind, place.line, place.program, f"{place}{at}: {sentence}", lane, name))

    def _key(self, kind: str, event: int, view: View | None) -> tuple[object, ...]:
        return kind, self.events.lines[event], view and view.name

    def _out_of_bounds(self, event: int, view: View | None, addresses: Addresses, outside: Lanes, how: str) -> None:
        key = self._key("out of bounds", event, view)
        if key in self.findings:
            return
        lane = _lane(outside, addresses.shape)
        address = int(addresses[outside][0])
        count = int(outside.sum())
        lanes = "1 lane" if count == 1 else f"{count} lanes"
        if view is None:
            what = f"{how} outside all tensors in {lanes}. Mask the access in every dimension"
        else:
            shape = tuple(view.tensor.shape)
            held = np.array([address], np.uint64)
            others = [other.name for other in self.views.values() if other.holds(held, view.itemsize)[0]]
            where = f"in {others[0]}" if others else "outside all tensors"
            what = (
                f"{how} outside {view.name}, whose shape is {shape}, in {lanes}; the first is "
                f"{_distance(view, address)}, {where}. Mask the access in every dimension"
            )
        sentence = f"{what}, and check the strides in its address."
        self._report(key, place_of(self.events, event, self.grid), sentence, lane, view)

    def _unwritten(self, event: int, view: View, addresses: Addresses, active: Lanes | None, which: int) -> None:
        lane = _active_lane(addresses.shape, active, which)
        address = int((addresses.ravel() if active is None else addresses[active])[which])
        sentence = (
            f"loads {view.element(address)}, which nothing has written. Start from a value of your own, such as "
            f"tl.zeros, or fill {view.name} before the launch."
        )
        key = self._key("unwritten read", event, view)
        self._report(key, place_of(self.events, event, self.grid), sentence, lane, view)

    def _conflict_of_programs(
        self,
        event: int,
        view: View,
        addresses: Addresses,
        active: Lanes | None,
        new: NDArray[Any],
        before: NDArray[np.int32],
        differs: Lanes,
        now: Any,
    ) -> None:
        self.meets = True
        used = addresses.ravel() if active is None else addresses[active]
        for which in np.flatnonzero(differs):
            other = int(before[which])
            if self.events.ordered(other, event):
                continue
            theirs = place_of(self.events, other, self.grid)
            address = used[which : which + 1]
            sentence = (
                f"stores {_number(new[which], view)} at {view.element(int(address[0]))}, where program "
                f"{listed(theirs.program)} has stored {_number(now(address)[0], view)}{_in_line(theirs, event, self)}. "
                "Which of them stays is chance: let one program write each element, or add with tl.atomic_add."
            )
            lane = _active_lane(addresses.shape, active, int(which))
            key = self._key("conflicting stores", event, view)
            self._report(key, place_of(self.events, event, self.grid), sentence, lane, view)
            return

    def _conflict_of_lanes(
        self, event: int, view: View, addresses: Addresses, active: Lanes | None, new: NDArray[Any], which: int
    ) -> None:
        used = addresses.ravel() if active is None else addresses[active]
        partners = np.flatnonzero(used == used[which])
        other = int(next((p for p in partners if not _same(new[p : p + 1], new[which : which + 1])[0]), partners[-1]))
        lane, rival = (_active_lane(addresses.shape, active, one) for one in (which, other))
        sentence = (
            f"stores {_number(new[which], view)} at {view.element(int(used[which]))}, where lane {listed(rival)} of "
            f"the same store stores {_number(new[other], view)}. Which of them stays is chance: give each lane an "
            "address of its own, or reduce the lanes to one value first."
        )
        key = self._key("conflicting stores", event, view)
        self._report(key, place_of(self.events, event, self.grid), sentence, lane, view)

    def _race(self, region: Region, one: str, other: str, mine: int, theirs: int, cell: int) -> None:
        view = self._view_of(region, cell)
        address = region.start + cell * region.cell_bytes
        here, there = (place_of(self.events, event, self.grid) for event in (mine, theirs))
        does = {READ: "loads", ATOMIC: "updates with an atomic"}[one]
        they = {WRITE: "stores", ATOMIC: "updates with an atomic"}[other]
        sentence = (
            f"{does} {view.element(address)}, which program {listed(there.program)} {they}"
            f"{_in_line(there, mine, self)} in the same launch. Either can come first: "
        )
        if one == READ and other == WRITE:
            sentence += "add with tl.atomic_add, let each program load only what it stores itself, or use two launches."
        elif one == READ:
            sentence += "use the value that the atomic returns, or load in a second launch."
        else:
            sentence += "use atomics for every update, and set the first value before the launch."
        self._report(("race", self.events.lines[mine], view.name), here, sentence, None, view)

    def _view_of(self, region: Region, cell: int) -> View:
        address = np.array([region.start + cell * region.cell_bytes], np.uint64)
        held = [view for view in self.views.values() if view.region is region and view.holds(address, 1)[0]]
        return held[0] if held else next(view for view in self.views.values() if view.region is region)


def _in_line(place: Place, event: int, accesses: Accesses) -> str:
    return "" if line_in_cell(*accesses.events.lines[event]) == place.line else f" in line {place.line}"


def _distance(view: View, address: int) -> str:
    """Say how far from the elements of a tensor an address is."""
    offset = (address - view.start) // view.itemsize
    if offset < 0:
        return f"{-offset} {_elements(-offset)} before its start"
    if offset >= view.extent:
        past = offset - view.extent + 1
        return f"{past} {_elements(past)} past its end"
    return "in the gaps between its strided elements"


def _elements(count: int) -> str:
    return "element" if count == 1 else "elements"


def _lane(chosen: Lanes, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the indices of the first lane that is chosen."""
    return tuple(int(index) for index in np.unravel_index(int(np.flatnonzero(chosen)[0]), shape))


def _active_lane(shape: tuple[int, ...], active: Lanes | None, which: int) -> tuple[int, ...]:
    """Return the indices of one of the active lanes, by its number among them."""
    flat = which if active is None else int(np.flatnonzero(active)[which])
    return tuple(int(index) for index in np.unravel_index(flat, shape))


def _same(one: NDArray[Any], other: NDArray[Any]) -> Lanes:
    """Return which values have the same bits; NaNs do not compare equal."""
    bits = f"u{one.itemsize}"
    same: Lanes = np.ascontiguousarray(one).view(bits) == np.ascontiguousarray(other).view(bits)
    return same


def _number(value: Any, view: View) -> str:
    """Write a value of a tensor as text; the interpreter keeps bfloat16 as its bits."""
    if str(view.tensor.dtype) == "torch.bfloat16":
        value = np.array([int(value) << 16], np.uint32).view(np.float32)[0]
    return f"{float(value):.6g}"
