"""Error maps: where the errors of a result are, as a small picture for the feedback page and in words.

The result is cut into at most 48 x 48 blocks. A block says whether none, some or all of its elements are wrong, and
nothing of their values. In a hidden test a block is no smaller than a tile or an eighth of a side, so an answer that
fails on purpose, element by element, cannot write much into the map.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mlsys.errors import InvalidValue

if TYPE_CHECKING:
    import torch

MAX_BLOCKS = 48
"""Most blocks along a side of the map, which then adds less than 20 KB to a page, whatever is wrong."""
MAX_HIDDEN_BLOCKS = 8
"""Most blocks along a side of the map in a hidden test."""
RIGHT, SOME, WRONG = "0", "1", "2"

_LONG_PX, _SHORT_PX = 320, 32


@dataclass(frozen=True)
class ErrorMap:
    """A map of the blocks of a matrix that are wrong.

    Attributes:
        shape: rows and columns of the matrix; a vector is one row.
        block: rows and columns of one block; those at the edge may be cut off.
        tile: rows and columns of one program's tile, or None where a test does not know.
        rows: a string per row of blocks, a character per block: "0" all right, "1" some wrong, "2" all wrong.
    """

    shape: tuple[int, int]
    block: tuple[int, int]
    tile: tuple[int, int] | None
    rows: tuple[str, ...]

    def __post_init__(self) -> None:
        sizes = [*self.shape, *self.block, *(self.tile or ())]
        sizes_fit = len(self.shape) == len(self.block) == 2 == len(self.tile or self.shape)
        if not sizes_fit or not all(type(size) is int and 0 < size < 1 << 40 for size in sizes):
            raise InvalidValue(f"{sizes} are not the sizes of a matrix, of its blocks and of its tiles")
        high, wide = (-(-size // step) for size, step in zip(self.shape, self.block, strict=True))
        fits = high <= MAX_BLOCKS and wide <= MAX_BLOCKS and len(self.rows) == high
        if not fits or not all(
            type(row) is str and len(row) == wide and not set(row) - set("012") for row in self.rows
        ):
            raise InvalidValue(
                f"the picture of {self.shape} by {self.block} has other rows than {high} of {wide} marks"
            )

    @classmethod
    def of(cls, wrong: "torch.Tensor", tile: tuple[int, int] | None, *, hidden: bool) -> Self | None:
        """Map a tensor of booleans; None for one that is empty or has not one or two dimensions."""
        if wrong.dim() not in (1, 2) or wrong.numel() == 0:
            return None
        marks = wrong.cpu().numpy().reshape(-1 if wrong.dim() == 2 else 1, wrong.shape[-1])
        high, wide = (int(size) for size in marks.shape)
        tile = tuple(tile) if tile is not None and wrong.dim() == 2 else None  # type: ignore[assignment]
        block = _side(high, tile and tile[0], hidden), _side(wide, tile and tile[1], hidden)
        starts = [np.arange(0, size, step) for size, step in zip((high, wide), block, strict=True)]

        bands = [marks[start : start + block[0]].sum(axis=0, dtype=np.int64) for start in starts[0]]
        count = np.add.reduceat(np.stack(bands), starts[1], axis=1)
        total = np.outer(*(np.diff(start, append=size) for start, size in zip(starts, (high, wide), strict=True)))
        levels = (count > 0).astype(int) + (count == total)
        return cls((high, wide), block, tile, tuple("".join(map(str, row)) for row in levels))

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Read the map that a record holds.

        Raises:
            InvalidValue: it is no such picture.
        """
        try:
            shape, block, tile, rows = (content[name] for name in ("shape", "block", "tile", "rows"))
            return cls(tuple(shape), tuple(block), tuple(tile) if tile else None, tuple(rows))
        except (KeyError, TypeError) as error:
            raise InvalidValue(f"a picture of errors has a shape, blocks, tiles and rows: {error}") from error

    def plain(self) -> dict[str, Any]:
        """Return the map as JSON, as `read` takes it."""
        tile = list(self.tile) if self.tile else None
        return {"shape": list(self.shape), "block": list(self.block), "tile": tile, "rows": list(self.rows)}

    def in_words(self) -> str:
        """Describe the map in words, for those who do not see it."""
        rows, cols = self.shape
        marks = {mark for row in self.rows for mark in row}
        if len(marks) == 1 and SOME not in marks:
            return f"In a result of {rows} x {cols}, {'no' if RIGHT in marks else 'every'} element is wrong."
        tile = self.tile
        if tile is None or any(size % step for size, step in zip(tile, self.block, strict=True)):
            spans = [self._span(axis, name, 1) for axis, name in enumerate(("row", "column"))]
            return f"In a result of {rows} x {cols}, the errors are in {' and '.join(spans)}."
        spans = [self._span(axis, name, tile[axis]) for axis, name in enumerate(("tile row", "tile column"))]
        tiles = f"in tiles of {tile[0]} x {tile[1]}"
        return f"In a result of {rows} x {cols} {tiles}, the errors are in {' and '.join(spans)}."

    def _span(self, axis: int, name: str, unit: int) -> str:
        """Name the rows (axis 0) or columns that have errors; `unit` elements count as one."""
        places = {place[axis] for place in self._wrong_blocks()}
        step = self.block[axis]
        numbers = {number // unit for place in places for number in range(place * step, (place + 1) * step, unit)}
        return _ranges(sorted(number for number in numbers if number * unit < self.shape[axis]), name)

    def _wrong_blocks(self) -> list[tuple[int, int]]:
        return [(i, j) for i, marks in enumerate(self.rows) for j, mark in enumerate(marks) if mark != RIGHT]

    def svg(self) -> str:
        """Draw the map as an inline SVG; its colors are the page's."""
        high, wide = len(self.rows), len(self.rows[0])
        longest = max(self.shape)
        height, width = (max(_SHORT_PX, round(_LONG_PX * size / longest)) for size in self.shape)
        paths = [
            f'<path class="{name}" d="{path}"/>'
            for mark, name in ((SOME, "some"), (WRONG, "wrong"))
            if (path := _runs(self.rows, mark))
        ]
        if lines := self._tile_lines():
            paths.append(f'<path class="tiles" d="{lines}"/>')
        return (
            f'<svg class="errors" role="img" aria-label="{self.in_words()}" width="{width}" height="{height}" '
            f'viewBox="0 0 {wide} {high}" preserveAspectRatio="none">'
            f'<rect class="right" width="{wide}" height="{high}"/>{"".join(paths)}</svg>'
        )

    def _tile_lines(self) -> str:
        if self.tile is None:
            return ""
        high, wide = len(self.rows), len(self.rows[0])
        tiles = [-(-size // step) for size, step in zip(self.shape, self.tile, strict=True)]
        if max(tiles) > MAX_BLOCKS:
            return ""
        down, across = (step / block for step, block in zip(self.tile, self.block, strict=True))
        lines = [f"M0 {number * down:g}H{wide}" for number in range(1, tiles[0])]
        return "".join([*lines, *(f"M{number * across:g} 0V{high}" for number in range(1, tiles[1]))])


def _side(size: int, tile: int | None, hidden: bool) -> int:
    """Return the elements along one side of a block: a power of two, as tiles are, which so hold whole blocks."""
    step, most = (tile or 1, MAX_HIDDEN_BLOCKS) if hidden else (1, MAX_BLOCKS)
    while -(-size // step) > most:
        step *= 2
    return step


def _runs(rows: Sequence[str], mark: str) -> str:
    """Return a path over all blocks with this mark, neighbors in a row together."""
    found = []
    for y, row in enumerate(rows):
        x = 0
        while (x := row.find(mark, x)) >= 0:
            end = x
            while end < len(row) and row[end] == mark:
                end += 1
            found.append(f"M{x} {y}h{end - x}v1h-{end - x}z")
            x = end
    return "".join(found)


def _ranges(numbers: Sequence[int], name: str) -> str:
    """Write numbers in rising order in words.

    >>> _ranges([0, 1, 2, 5], "column"), _ranges([36], "row")
    ('columns 0 to 2 and 5', 'row 36')
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [f"{first}" if first == last else f"{first} to {last}" for first, last in ranges]
    said = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"{name}{'s' if len(numbers) > 1 else ''} {said}"
