"""Pairs of students whose code has much in common that is not the lab's own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from mlsys.classroom.similarity.tokens import RUN, Token, runs

MIN_SHARED = 80
"""Runs that a pair must have in common to be listed, about ten lines: shorter kernels for one task are alike anyway."""
_MOST_PLACES = 50
"""Places of the other text at which the longest passage is looked for."""


@dataclass(frozen=True, eq=False)
class Work:
    """The code of one student: cells with their tokens.

    Attributes:
        student: whose it is.
        term: the earlier term that it is of; empty for this one.
        group: students of one group hand in the same.
        submission: digest of the file.
        names: what each cell answers.
        sources: the text of each cell.
        cells: the tokens of each cell.
        left_out: cells that are too long to be compared.
    """

    student: str
    term: str
    group: str
    submission: str
    names: Sequence[str]
    sources: Sequence[str]
    cells: Sequence[Sequence[Token]] = field(repr=False)
    left_out: int = 0

    @cached_property
    def runs(self) -> frozenset[int]:
        """The runs of tokens in it."""
        return frozenset(number for cell in self.cells for number in runs(cell))

    @property
    def who(self) -> str:
        """The student, with the term if it is an earlier one."""
        return f"{self.student} ({self.term})" if self.term else self.student


@dataclass(frozen=True)
class Passage:
    """Tokens that two works have in common: the cell and the first and last line, in each of both."""

    left: tuple[int, int, int]
    right: tuple[int, int, int]


@dataclass(frozen=True)
class Pair:
    """Two works with much in common.

    Attributes:
        left: one of them, of this term.
        right: the other.
        share: part of the runs of the work that has fewer, without the lab's own, which the other has as well.
        shared: how many runs that are.
        passages: where they are, in the order of the left work.
    """

    left: Work
    right: Work
    share: float
    shared: int
    passages: tuple[Passage, ...]


def similar_pairs(
    works: Sequence[Work], starter: Iterable[Sequence[Token]], least: float, most: int
) -> tuple[list[Pair], int]:
    """Return the pairs with the largest part in common, and how many there are beyond `most`.

    Pairs of two earlier terms, or of one group, are no pairs.

    Args:
        works: of this term and of earlier ones, one per student and term.
        starter: the tokens of the lab's own cells, which do not count.
        least: the smallest part that is listed, from 0 to 1.
        most: how many pairs are listed.
    """
    given = _given(starter)
    own = {work: work.runs - given for work in works}
    found = []
    for left, right in combinations(sorted(works, key=lambda work: bool(work.term)), 2):
        if left.term or (left.group and not right.term and left.group == right.group):
            continue
        smaller = min(len(own[left]), len(own[right]))
        if smaller < MIN_SHARED:
            continue
        shared = len(own[left] & own[right])
        if shared >= MIN_SHARED and shared >= least * smaller:
            found.append((shared / smaller, shared, left, right))
    found.sort(key=lambda one: (-one[0], -one[1], one[2].who, one[3].who))
    pairs = [
        Pair(left, right, share, shared, tuple(passages(left, right, given)))
        for share, shared, left, right in found[:most]
    ]
    return pairs, max(0, len(found) - most)


def too_short(works: Iterable[Work], starter: Iterable[Sequence[Token]]) -> list[str]:
    """Return whose own code is too short to be compared."""
    given = _given(starter)
    return [work.who for work in works if not work.term and len(work.runs - given) < MIN_SHARED]


def passages(left: Work, right: Work, given: frozenset[int]) -> list[Passage]:
    """Return what two works have in common, each passage as long as it can be."""
    places: dict[int, list[tuple[int, int]]] = {}
    for index, cell in enumerate(right.cells):
        for place, number in enumerate(runs(cell)):
            if number not in given:
                places.setdefault(number, []).append((index, place))
    found = []
    for index, cell in enumerate(left.cells):
        numbers, start = runs(cell), 0
        while start < len(numbers):
            others = places.get(numbers[start], [])[:_MOST_PLACES]
            lengths = [(_length(cell, start, right.cells[other], place), other, place) for other, place in others]
            length, other, place = max(lengths, default=(0, 0, 0))
            if length >= RUN:
                here, there = cell[start : start + length], right.cells[other][place : place + length]
                found.append(Passage((index, here[0].line, here[-1].line), (other, there[0].line, there[-1].line)))
            start += max(1, length)
    return found


def _given(starter: Iterable[Sequence[Token]]) -> frozenset[int]:
    return frozenset(number for cell in starter for number in runs(cell))


def _length(left: Sequence[Token], start: int, right: Sequence[Token], place: int) -> int:
    """Return how many tokens are the same from these places on."""
    length = 0
    for one, other in zip(left[start:], right[place:], strict=False):
        if one.kind != other.kind:
            break
        length += 1
    return length
