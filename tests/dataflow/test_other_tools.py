"""Our counts against those of Timeloop and ZigZag: equal where the model is the same, every difference explained."""

from math import prod

import pytest

from mlsys.dataflow.levels import level_accesses, steps
from mlsys.dataflow.other_tools import TimeloopRun, ZigZagRun, timeloop_run, timeloop_runs, zigzag_runs
from mlsys.dataflow.row_stationary import RowMapping, row_stationary
from mlsys.dataflow.tiles import operand_loops
from mlsys.errors import UnknownName

PRODUCTS = [(128, 128, 128), (32, 512, 256)]
ZIGZAG = [run for sizes in PRODUCTS for run in zigzag_runs(*sizes).values()]


def said(run: ZigZagRun) -> str:
    return "-".join(map(str, (*run.nest.extents.values(), run.order)))


@pytest.mark.parametrize("run", timeloop_runs().values(), ids=timeloop_runs())
def test_accesses_and_cycles_are_those_of_timeloop(run: TimeloopRun) -> None:
    assert level_accesses(run.nest, run.levels) == run.counts
    assert steps(run.levels) == run.cycles


def test_energy_is_that_of_timeloop() -> None:
    """Timeloop prints two decimals of a microjoule."""
    run = timeloop_run("eyeriss_like")
    assert run.energy_of(level_accesses(run.nest, run.levels)) == pytest.approx(run.energy_pj, abs=5e3)
    assert (run.cycles, run.energy_pj) == (86016, 59.28e6)


@pytest.mark.parametrize("run", ZIGZAG, ids=said)
def test_zigzag_reads_as_many_weights_and_inputs_and_writes_as_many_sums(run: ZigZagRun) -> None:
    ours, theirs = run.counted(), run.accesses
    assert (ours.weights, ours.inputs, ours.sum_writes) == (theirs.weights, theirs.inputs, theirs.sum_writes)


@pytest.mark.parametrize("run", ZIGZAG, ids=said)
def test_zigzag_also_reads_the_zero_of_a_sum_that_comes_back(run: ZigZagRun) -> None:
    """Where sums come back, ZigZag reads each for its first visit too: once more for each output."""
    outputs = prod(run.nest.extents[loop] for loop in operand_loops(run.nest, "outputs"))
    zeros = 0 if run.order.endswith("k") else outputs
    assert run.accesses.sum_reads - run.counted().sum_reads == zeros
    # Each zero costs a read of the memory and a write of the register; a register is read for its first product too.
    extra = zeros * (run.memory.read_pj / run.memory.block + run.register_pj) + outputs * run.register_pj
    assert run.energy_pj - run.counted_pj() == pytest.approx(extra)


@pytest.mark.parametrize("run", ZIGZAG, ids=said)
def test_zigzags_cycles_are_ours_and_those_of_the_zeros(run: ZigZagRun) -> None:
    """All words of zeros but the first, which nothing waits for; or the last word of finished sums."""
    zeros = (run.accesses.sum_reads - run.counted().sum_reads) // run.sums_per_word
    assert run.cycles - run.counted_cycles() == (zeros - 1 if zeros else 1)


@pytest.mark.parametrize("sizes", PRODUCTS)
def test_orders_have_the_ranks_that_zigzag_gives_them(sizes: tuple[int, int, int]) -> None:
    runs = zigzag_runs(*sizes).values()
    energy = ranks([run.energy_pj for run in runs])
    assert ranks([run.counted_pj() for run in runs]) == energy
    assert ranks([run.counted().total for run in runs]) == energy
    assert ranks([run.counted_cycles() for run in runs]) == ranks([run.cycles for run in runs])


def ranks(values: list[float]) -> list[int]:
    """How many of the values are smaller than each."""
    return [sum(round(other, 3) < round(value, 3) for other in values) for value in values]


def test_rows_that_stay_use_registers_as_timeloop_says_and_fetch_less_from_the_buffer() -> None:
    """Eyeriss's own count of the same mapping. Two ways of sharing inputs explain what Timeloop fetches more."""
    run = timeloop_run("eyeriss_like")
    size = run.nest.extents
    rows = RowMapping(m=8, n=1, e=14, p=8, q=1, r=3, t=1)
    layer = row_stationary(rows, filters=size["m"], channels=size["c"], kernel=size["r"], output=size["p"], stride=2)
    assert layer.counts["weights"]["register_file"] == run.counts["weights_spad", "weights"].reads
    assert layer.counts["inputs"]["register_file"] == run.counts["ifmap_spad", "inputs"].reads
    assert layer.counts["sums"]["register_file"] == 2 * run.counts["psum_spad", "outputs"].reads  # read and written
    fetched = run.counts["shared_glb", "inputs"].reads
    rows_of_neighbors, rows_at_diagonals = 14 * 3, 14 * 2 + 1  # a set of 14 x 3 elements with stride 2
    taps, columns = 3 * size["q"], 2 * size["q"] + 1  # a row read for every position, and once
    assert layer.counts["inputs"]["buffer"] * rows_of_neighbors * taps == fetched * rows_at_diagonals * columns


def test_an_unknown_run_is_named_with_those_that_are_known() -> None:
    with pytest.raises(UnknownName, match="eyeriss_like"):
        timeloop_run("eyeriss_lke")
    assert zigzag_runs(1, 2, 3) == {}
