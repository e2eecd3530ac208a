"""Traffic of chains that are cut into kernels, against a replay and against counts by hand."""

from itertools import combinations

import pytest

from mlsys import ops
from mlsys.errors import InvalidValue, UnknownName
from mlsys.ops.chain import Chain, Operation

ROWS, COLS = 6, 4
SIZES = {"n": ROWS * COLS, "r": ROWS, "c": COLS}


def chain(*operations, results, kinds):
    made = tuple(Operation(f"step {number}", tuple(reads), writes) for number, (reads, writes) in enumerate(operations))
    return Chain(made, {name: SIZES[kind] for name, kind in kinds.items()}, tuple(results), dtype="fp32")


CHAINS = {
    "element-wise": chain(
        ("x", "a"), ("as", "b"), ("bt", "y"),
        results="y", kinds=dict.fromkeys("xaby", "n") | dict.fromkeys("st", "c"),
    ),
    "softmax": chain(
        ("x", "m"), ("xm", "d"), ("d", "e"), ("e", "s"), ("es", "y"),
        results="y", kinds=dict.fromkeys("xdey", "n") | dict.fromkeys("ms", "r"),
    ),
    "residual": chain(
        ("xr", "h"), ("h", "q"), ("q", "v"), ("hv", "z"), ("zg", "y"),
        results="hy", kinds=dict.fromkeys("xrhqzy", "n") | {"v": "r", "g": "c"},
    ),
    "used twice": chain(("x", "a"), ("a", "b"), ("ab", "y"), results="y", kinds=dict.fromkeys("xaby", "n")),
}  # fmt: skip


def cuttings(chain):
    places = range(1, len(chain.operations))
    return [cuts for count in range(len(places) + 1) for cuts in combinations(places, count)]


def replayed(chain, cuts):
    """Run the operations one by one with empty registers at every cut, and count what is loaded and stored."""
    moved, registers, memory = 0, set(), set()
    order = list(chain.operations)
    for place, operation in enumerate(order):
        if place in cuts:
            registers = set()
        for name in operation.reads:
            if name not in registers:
                assert name in memory or all(name != other.writes for other in order), f"{name} was lost"
                moved += chain.elements[name]
                registers.add(name)
        registers.add(operation.writes)
        ends = next((cut for cut in sorted(cuts) if cut > place), len(order))
        if operation.writes in chain.results or any(operation.writes in later.reads for later in order[ends:]):
            moved += chain.elements[operation.writes]
            memory.add(operation.writes)
    return 4 * moved


@pytest.mark.parametrize("name", CHAINS)
def test_every_cutting_moves_what_a_replay_moves(name):
    for cuts in cuttings(CHAINS[name]):
        assert CHAINS[name].bytes(cuts).m_as("byte") == replayed(CHAINS[name], cuts), cuts


@pytest.mark.parametrize("name", CHAINS)
def test_a_cut_never_saves_traffic(name):
    for cuts in cuttings(CHAINS[name]):
        for cut in cuts:
            without = [place for place in cuts if place != cut]
            assert CHAINS[name].bytes(without) < CHAINS[name].bytes(cuts)


def test_counts_by_hand():
    n, r, c = SIZES["n"], SIZES["r"], SIZES["c"]
    whole, apart = (), (1, 2, 3, 4)
    assert CHAINS["softmax"].bytes(apart).m_as("byte") == 4 * (8 * n + 4 * r)
    assert CHAINS["softmax"].bytes(whole).m_as("byte") == 4 * 2 * n
    assert CHAINS["residual"].bytes(whole).m_as("byte") == 4 * (4 * n + c)
    assert CHAINS["residual"].bytes((1,)).m_as("byte") == 4 * (5 * n + c), "the sum alone, then the norm"


def test_a_chain_of_equal_steps_is_what_fuse_makes_of_it():
    relu = ops.elementwise(elements=100, dtype="fp16")
    steps = tuple(Operation("ReLU", (name,), after) for name, after in ("xa", "ab", "by"))
    found = Chain(steps, dict.fromkeys("xaby", 100), ("y",), dtype="fp16")
    assert found.bytes(()) == ops.fuse([relu] * 3).bytes
    assert found.bytes((1, 2)) == 3 * relu.bytes


def test_kernels_name_what_they_move():
    first, second = CHAINS["softmax"].kernels((3,))
    assert (first.operations, first.reads, first.writes) == (("step 0", "step 1", "step 2"), ("x",), ("e",))
    assert (second.reads, second.writes) == (("e",), ("y",))


@pytest.mark.parametrize(
    ("operations", "sizes", "results", "complaint"),
    [
        ([], "", "", "no operation"),
        ([("x", "a"), ("x", "a")], "xa", "a", "'a' is made twice"),
        ([("x", "a")], "xa", "y", "no operation makes the result 'y'; they make a"),
        ([("b", "a"), ("x", "b")], "xab", "a", "'b' is read before an operation makes it"),
        ([("x", "a")], "x", "a", "'a' has no size"),
    ],
)
def test_a_chain_that_cannot_be_is_refused(operations, sizes, results, complaint):
    made = tuple(Operation("step", tuple(reads), writes) for reads, writes in operations)
    with pytest.raises(InvalidValue, match=complaint):
        Chain(made, dict.fromkeys(sizes, 8), tuple(results))


def test_a_size_a_cut_and_a_format_that_cannot_be_are_refused():
    step = Operation("step", ("x",), "y")
    with pytest.raises(InvalidValue, match="elements of x must be a positive integer, got 0"):
        Chain((step,), {"x": 0, "y": 1}, ("y",))
    with pytest.raises(UnknownName, match="unknown dtype 'fp17'"):
        Chain((step,), {"x": 1, "y": 1}, ("y",), dtype="fp17")
    with pytest.raises(InvalidValue, match="cut 5 is not between two of 5 operations: use 1 to 4"):
        CHAINS["softmax"].bytes((1, 5))
