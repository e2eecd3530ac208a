"""Check a schedule of a systolic array that a student returns as integers, by replaying it cycle by cycle.

A schedule says in which cycle each element of the operands enters the array at its edge; cycles are counted from 0, or
from another number. Everything else follows: what has entered at the left moves one column to the right per cycle, what
has entered at the top moves down, and a product is right if partners meet. The replay moves labels, such as a[1, 2],
instead of numbers, so it can say what met what.

>>> assert_output_stationary({"a": [[0, 1]], "b": [[0], [1]]}, 1, 1, 2)
>>> assert_output_stationary({"a": [[0, 1]], "b": [[1], [2]]}, 1, 1, 2)
Traceback (most recent call last):
...
mlsys.grading.verdicts.WrongAnswer: m=1, n=1, k=2: PE (0,0) at cycle 0: a[0,0] meets nothing; it needs b[0,0]
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from mlsys.grading.checks.assertions import shown
from mlsys.grading.verdicts import WrongAnswer
from mlsys.systolic import gemm_cycles

MAX_CYCLE = 999
"""Latest cycle that a schedule may name, counted from its first: ten times as many as the arrays of the tests need."""


@dataclass(frozen=True)
class _Case:
    """A schedule in messages: the sizes that it is for, and the number of its first cycle."""

    sizes: str
    first: int

    def __str__(self) -> str:
        return self.sizes


@dataclass(frozen=True)
class Item:
    """A number on its way: an element of the operand or result `name`, of one fold if there are several."""

    name: str
    index: tuple[int, int]
    fold: int | None = None

    def __str__(self) -> str:
        where = "" if self.fold is None else f" of fold {self.fold}"
        return f"{self.name}[{self.index[0]},{self.index[1]}]{where}"


Registers = list[list[Item | None]]
"""What the elements of an array hold, row by row."""


def assert_output_stationary(schedule: object, m: int, n: int, k: int, *, first: int = 0) -> None:
    """Raise `WrongAnswer` unless partners meet everywhere in an m x n array that keeps its sums, in the least time.

    a[i, p] enters row i at the left, b[p, j] enters column j at the top, and both can be multiplied in the cycle in
    which they enter. The least time is m + n + k - 2 cycles; moving the sums out is not counted.

    Args:
        schedule: what the student's function returned: a dict with the cycles "a", m lists of k ints, and "b", k lists
            of n ints.
        m: rows of A and C, and of the array.
        n: columns of B and C, and of the array.
        k: columns of A, rows of B.
        first: number of the first cycle.
    """
    what = _Case(f"m={m}, n={n}, k={k}", first)
    parts = _parts(schedule, ("a", "b"), what)
    a, b = _table(parts["a"], m, k, "a", what), _table(parts["b"], k, n, "b", what)
    left = _entering({Item("a", (i, p)): (i, a[i][p]) for i in range(m) for p in range(k)}, "row", what)
    top = _entering({Item("b", (p, j)): (j, b[p][j]) for j in range(n) for p in range(k)}, "column", what)
    right: Registers = [[None] * n for _ in range(m)]
    down: Registers = [[None] * n for _ in range(m)]
    busy_until, met = 0, 0
    for cycle in range(max(cycle for _, cycle in (left | top)) + m + n):
        right = [[left.get((i, cycle)), *row[:-1]] for i, row in enumerate(right)]
        down = [[top.get((j, cycle)) for j in range(n)], *down[:-1]]
        for i in range(m):
            for j in range(n):
                x, y = right[i][j], down[i][j]
                place = f"{what}: PE ({i},{j}) at cycle {cycle + first}"
                if x and (y is None or x.index[1] != y.index[0]):
                    needed = Item("b", (x.index[1], j))
                    raise WrongAnswer(f"{place}: {x} meets {y or 'nothing'}; it needs {needed}")
                if y and x is None:
                    raise WrongAnswer(f"{place}: {y} meets nothing; it needs {Item('a', (i, y.index[0]))}")
                if x and y:
                    busy_until, met = cycle, met + 1
    assert met == m * n * k, "each a[i, p] passes n elements, and its partner was in each of them"
    _check_cycles(busy_until + 1, gemm_cycles(m, n, k, rows=m, cols=n, dataflow="os", drain=False), what)


def assert_weight_stationary(schedule: object, m: int, n: int, k: int, *, first: int = 0) -> None:
    """Raise `WrongAnswer` unless partners meet everywhere in a k x n array that keeps B, in the least time.

    A weight that enters column j at the top moves all weights of that column one row down, and stays until the next one
    enters; it can be multiplied from the cycle after its entry. a[i, p] enters row p at the left. The sum for c[i, j]
    starts in row 0 and moves down one row per cycle. The least time is 2k + m + n - 2 cycles.

    Args:
        schedule: what the student's function returned: a dict with the cycles "a", m lists of k ints, "b", k lists of n
            ints, and "c", m lists of n ints: the cycle in which the bottom row finishes c[i, j].
        m: rows of A and C.
        n: columns of B and C, and of the array.
        k: columns of A, rows of B and of the array.
        first: number of the first cycle.
    """
    what = _Case(f"m={m}, n={n}, k={k}", first)
    parts = _parts(schedule, ("a", "b", "c"), what)
    a, b = _table(parts["a"], m, k, "a", what), _table(parts["b"], k, n, "b", what)
    c = _table(parts["c"], m, n, "c", what)
    left = _entering({Item("a", (i, p)): (p, a[i][p]) for i in range(m) for p in range(k)}, "row", what)
    top = _entering({Item("b", (p, j)): (j, b[p][j]) for p in range(k) for j in range(n)}, "column", what)
    finished = _ColumnsOfSums(k, n, left, top, what).run()
    for i in range(m):
        for j in range(n):
            if finished[Item("c", (i, j))] != c[i][j]:
                at = [str(item) for item, cycle in finished.items() if item.index[1] == j and cycle == c[i][j]]
                raise WrongAnswer(
                    f"{what}: by your schedule, c[{i},{j}] leaves column {j} in cycle {c[i][j] + first}; "
                    f"in the replay {at[0] if at else 'nothing'} leaves there in that cycle"
                )
    cycles = max(finished.values()) + 1
    _check_cycles(cycles, gemm_cycles(m, n, k, rows=k, cols=n, dataflow="ws"), what)


def assert_double_buffered(schedule: object, folds: int, m: int, rows: int, cols: int, *, first: int = 0) -> None:
    """Raise `WrongAnswer` unless several folds run right on an array that loads weights while it computes.

    Each element has a second weight register. Weights enter it as in `assert_weight_stationary`. The element multiplies
    with the other register, into which it copies the second one when the swap signal of a fold passes. The signal is
    in element (0, 0) in the cycle swap[fold] and moves with the inputs, so it is in element (p, j) p + j cycles later,
    and the copied weight is used in that very cycle.

    All folds have the same size, A_f[m, rows] B_f[rows, cols]. Their least time follows from what each has to wait for:
    m cycles until the inputs of the fold before have entered, or 2 rows - 1 cycles until the weights of the fold before
    have been copied from the last row and the next ones have been moved in. Before the first fold and after the last,
    nothing overlaps:

        cycles = (folds - 1) max(m, 2 rows - 1) + 2 rows + cols + m - 2

    Args:
        schedule: what the student's function returned: a dict with "a", per fold m lists of `rows` ints, "b", per fold
            `rows` lists of `cols` ints, and "swap", one int per fold.
        folds: number of folds.
        m: rows of each A_f.
        rows: rows of the array.
        cols: columns of the array.
        first: number of the first cycle.
    """
    what = _Case(f"folds={folds}, m={m}, rows={rows}, cols={cols}", first)
    parts = _parts(schedule, ("a", "b", "swap"), what)
    swap = _row(parts["swap"], folds, "swap", what)
    if any(second <= first for first, second in pairwise(swap)):
        raise WrongAnswer(f"{what}: swap must rise from fold to fold, got {shown([one + first for one in swap])}")
    weights, inputs = _list(parts["b"], folds, "b", what), _list(parts["a"], folds, "a", what)
    left_items: dict[Item, tuple[int, int]] = {}
    top_items: dict[Item, tuple[int, int]] = {}
    for fold in range(folds):
        a = _table(inputs[fold], m, rows, f"a[{fold}]", what)
        b = _table(weights[fold], rows, cols, f"b[{fold}]", what)
        left_items |= {Item("a", (i, p), fold): (p, a[i][p]) for i in range(m) for p in range(rows)}
        top_items |= {Item("b", (p, j), fold): (j, b[p][j]) for p in range(rows) for j in range(cols)}
    left, top = _entering(left_items, "row", what), _entering(top_items, "column", what)
    finished = _ColumnsOfSums(rows, cols, left, top, what, frozenset(swap)).run()
    least = (folds - 1) * max(m, 2 * rows - 1) + gemm_cycles(m, cols, rows, rows=rows, cols=cols, dataflow="ws")
    _check_cycles(max(finished.values()) + 1, least, what)


@dataclass
class _ColumnsOfSums:
    """An array that keeps weights while inputs move right and sums move down; `run` says when each sum is finished."""

    rows: int
    cols: int
    left: dict[tuple[int, int], Item]
    top: dict[tuple[int, int], Item]
    what: _Case
    swaps: frozenset[int] | None = None
    finished: dict[Item, int] = field(default_factory=dict)

    def run(self) -> dict[Item, int]:
        rows, cols = self.rows, self.cols
        loaded, used, right, sums = (self._empty() for _ in range(4))
        for cycle in range(max(cycle for _, cycle in (self.left | self.top)) + rows + cols):
            right = [[self.left.get((p, cycle)), *row[:-1]] for p, row in enumerate(right)]
            if self.swaps is None:
                used = loaded
            else:
                passing = [[cycle - p - j in self.swaps for j in range(cols)] for p in range(rows)]
                used = [
                    [new if now else old for new, old, now in zip(*three, strict=True)]
                    for three in zip(loaded, used, passing, strict=True)
                ]
            above = [*self._empty()[:1], *sums[:-1]]
            sums = [
                [self._element(cycle, p, j, right[p][j], used[p][j], above[p][j]) for j in range(cols)]
                for p in range(rows)
            ]
            self.finished |= {item: cycle for item in sums[-1] if item}
            loaded = self._pushed(loaded, cycle)
        return self.finished

    def _empty(self) -> Registers:
        return [[None] * self.cols for _ in range(self.rows)]

    def _element(
        self, cycle: int, p: int, j: int, x: Item | None, weight: Item | None, above: Item | None
    ) -> Item | None:
        """Return the sum that an element hands down, after checking that what meets in it belongs together."""
        place = f"{self.what}: PE ({p},{j}) at cycle {cycle + self.what.first}"
        if x is None:
            if above:
                needed = Item("a", (above.index[0], p), above.fold)
                raise WrongAnswer(
                    f"{place}: the sum for {above} comes from above and meets no input; it needs {needed}"
                )
            return None
        needed = Item("b", (p, j), x.fold)
        if weight != needed:
            raise WrongAnswer(f"{place}: {x} meets {weight or 'no weight'}; it needs {needed}")
        result = Item("c", (x.index[0], j), x.fold)
        if p and above != result:
            from_above = f"the sum for {above}" if above else "no sum"
            raise WrongAnswer(f"{place}: {x} meets {from_above} from above; it needs the sum for {result}")
        return result

    def _pushed(self, loaded: Registers, cycle: int) -> Registers:
        """Return the loaded weights after this cycle: a column into which one enters has moved down."""
        entering = [self.top.get((j, cycle)) for j in range(self.cols)]
        return [
            [(entering[j] if p == 0 else loaded[p - 1][j]) if entering[j] else loaded[p][j] for j in range(self.cols)]
            for p in range(self.rows)
        ]


def _check_cycles(taken: int, least: int, what: _Case) -> None:
    if taken > least:
        raise WrongAnswer(
            f"{what}: everything meets its partner, but the last multiplication is in cycle {taken - 1 + what.first}, "
            f"so the array needs {taken} cycles; {least} are enough"
        )


def _entering(items: dict[Item, tuple[int, int]], line: str, what: _Case) -> dict[tuple[int, int], Item]:
    """Return who enters which row or column in which cycle; two cannot enter the same at once."""
    entering: dict[tuple[int, int], Item] = {}
    for item, place in items.items():
        if place in entering:
            cycle = place[1] + what.first
            raise WrongAnswer(f"{what}: {entering[place]} and {item} both enter {line} {place[0]} in cycle {cycle}")
        entering[place] = item
    return entering


def _parts(schedule: object, names: Sequence[str], what: _Case) -> dict[str, object]:
    listed = ", ".join(f'"{name}"' for name in names)
    if not isinstance(schedule, dict) or set(map(repr, schedule)) != set(map(repr, names)):
        raise WrongAnswer(f"{what}: return a dict with the keys {listed}, got {shown(schedule)}")
    return schedule


def _table(value: object, rows: int, cols: int, name: str, what: _Case) -> list[list[int]]:
    return [_row(row, cols, f"{name}[{i}]", what) for i, row in enumerate(_list(value, rows, name, what))]


def _row(value: object, length: int, name: str, what: _Case) -> list[int]:
    row = _list(value, length, name, what)
    for i, cycle in enumerate(row):
        if type(cycle) is not int:
            raise WrongAnswer(f"{what}: {name}[{i}] must be a plain int, got {shown(cycle)}")
        if not 0 <= cycle - what.first <= MAX_CYCLE:
            allowed = f"from {what.first} to {what.first + MAX_CYCLE}"
            raise WrongAnswer(f"{what}: {name}[{i}] must be a cycle {allowed}, got {shown(cycle)}")
    return [cycle - what.first for cycle in row if type(cycle) is int]


def _list(value: object, length: int, name: str, what: _Case) -> list[object]:
    if not isinstance(value, list | tuple):
        raise WrongAnswer(f"{what}: {name} must be a list, got {shown(value)}")
    if len(value) != length:
        raise WrongAnswer(f"{what}: {name} must have length {length}, got {len(value)}")
    return list(value)
