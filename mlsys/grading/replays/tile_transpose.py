"""Check a transpose of one tile by a warp, which a student returns as integers, by replaying it access by access.

A warp loads a tile of a matrix, puts each element into a slot of shared memory, and stores the tile transposed. The
replay counts the sectors of each access to device memory with `mlsys.traffic.coalescing`, and the passes of each access
to shared memory: lanes that need different words of one bank take turns (NVIDIA, CUDA C++ Best Practices Guide, "Shared
Memory and Memory Banks").
"""

from collections import Counter
from collections.abc import Sequence

from mlsys.grading.checks.assertions import shown
from mlsys.grading.verdicts import WrongAnswer
from mlsys.traffic.banks import BANKS
from mlsys.traffic.coalescing import SECTOR_BYTES, WARP_LANES, warp_transactions

SIDE = 32
"""Rows and columns of the tile."""
ELEMENT_BYTES = 4
MOST_SHOWN = 10**12
"""Numbers of elements from here on are not written out in messages."""
SLOTS = 1152
"""Slots of shared memory, of one element each: 36 for each of the 32 rows of the tile."""


def assert_tile_transpose(schedule: object, stride_x: int, stride_y: int) -> None:
    """Raise `WrongAnswer` unless a schedule transposes a 32 x 32 tile of 4-byte elements with the least traffic.

    Element (i, j) of the tile is element i stride_x + j of x, counted from the tile's first element, and goes to
    element j stride_y + i of y. Both tiles begin on a sector, and both strides are multiples of 8, so that the least
    traffic is 4 sectors for each access of a warp to device memory, and one pass for each access to shared memory.

    Args:
        schedule: what the student's function returned: a dict with "loads" and "stores", 32 lists each of 32 elements
            of x or y, lane by lane, and "slots", 32 lists of 32 ints: the slot of element (i, j).
        stride_x: elements from one row of x to the next.
        stride_y: elements from one row of y to the next.
    """
    what = f"stride_x={stride_x}, stride_y={stride_y}"
    names = ("loads", "slots", "stores")
    if not isinstance(schedule, dict) or set(map(repr, schedule)) != set(map(repr, names)):
        raise WrongAnswer(f'{what}: return a dict with the keys "loads", "slots", "stores", got {shown(schedule)}')
    loads, slots, stores = (_table(schedule[name], name, what) for name in names)
    _check_slots(slots, what)
    tile = [(i, j) for i in range(SIDE) for j in range(SIDE)]
    in_x = {i * stride_x + j: (i, j) for i, j in tile}
    in_y = {j * stride_y + i: (i, j) for i, j in tile}
    for name, accesses, elements in (("loads", loads, in_x), ("stores", stores, in_y)):
        _check_coverage(name, accesses, elements, what)
        for number, access in enumerate(accesses):
            place = f"{what}: {name}[{number}]"
            _check_sectors(access, place)
            _check_banks([slots[i][j] for i, j in map(elements.__getitem__, access)], place)


def _check_slots(slots: Sequence[Sequence[int]], what: str) -> None:
    taken: dict[int, tuple[int, int]] = {}
    for i, row in enumerate(slots):
        for j, slot in enumerate(row):
            if not 0 <= slot < SLOTS:
                raise WrongAnswer(f"{what}: slots[{i}][{j}] must be a slot from 0 to {SLOTS - 1}, got {shown(slot)}")
            if slot in taken:
                raise WrongAnswer(f"{what}: elements {taken[slot]} and {(i, j)} are both in slot {slot}")
            taken[slot] = i, j


def _check_coverage(
    name: str, accesses: Sequence[Sequence[int]], elements: dict[int, tuple[int, int]], what: str
) -> None:
    matrix = "x" if name == "loads" else "y"
    seen: set[int] = set()
    for number, access in enumerate(accesses):
        for lane, position in enumerate(access):
            if position not in elements:
                element = f"element {position}" if abs(position) < MOST_SHOWN else "a number that large"
                raise WrongAnswer(f"{what}: {name}[{number}], lane {lane}: {element} of {matrix} is not in the tile")
            if position in seen:
                raise WrongAnswer(
                    f"{what}: {name}[{number}], lane {lane}: element {position} of {matrix} is there twice"
                )
            seen.add(position)


def _check_sectors(access: Sequence[int], place: str) -> None:
    moved = warp_transactions([ELEMENT_BYTES * position for position in access], element_bytes=ELEMENT_BYTES)
    least = WARP_LANES * ELEMENT_BYTES // SECTOR_BYTES
    if moved.sectors > least:
        raise WrongAnswer(f"{place} touches {moved.sectors} sectors; {least} are enough")


def _check_banks(slots: Sequence[int], place: str) -> None:
    [(bank, passes)] = Counter(slot % BANKS for slot in slots).most_common(1)
    if passes > 1:
        one, other = [lane for lane, slot in enumerate(slots) if slot % BANKS == bank][:2]
        raise WrongAnswer(
            f"{place}: {passes} lanes, such as lanes {one} and {other}, need bank {bank} of shared memory, "
            f"so the access takes {passes} passes; one is enough"
        )


def _table(value: object, name: str, what: str) -> list[list[int]]:
    rows = _list(value, name, what)
    table = []
    for i, row in enumerate(rows):
        entries = _list(row, f"{name}[{i}]", what)
        for j, entry in enumerate(entries):
            if type(entry) is not int:
                raise WrongAnswer(f"{what}: {name}[{i}][{j}] must be a plain int, got {shown(entry)}")
        table.append([entry for entry in entries if type(entry) is int])
    return table


def _list(value: object, name: str, what: str) -> list[object]:
    if not isinstance(value, list | tuple):
        raise WrongAnswer(f"{what}: {name} must be a list, got {shown(value)}")
    if len(value) != SIDE:
        raise WrongAnswer(f"{what}: {name} must have length {SIDE}, got {len(value)}")
    return list(value)
