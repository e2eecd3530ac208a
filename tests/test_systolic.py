import csv
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.errors import InvalidValue
from mlsys.systolic import (
    DATAFLOWS,
    PARTS,
    Fault,
    dram_accesses,
    frames,
    gemm_cycles,
    simulate,
    sram_accesses,
    stream_efficiency,
    utilization,
)
from mlsys.traffic.near_memory import LRUMemory

GOLDEN = list(csv.DictReader((Path(__file__).parent / "golden" / "systolic.csv").open()))
side = st.integers(1, 14)
grid = st.integers(1, 6)
dataflows = st.sampled_from(DATAFLOWS)


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, shape)


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: "-".join(row.values()))
def test_cycles_are_those_of_the_independent_simulator(row: dict[str, str]) -> None:
    sizes = {name: int(row[name]) for name in ("m", "n", "k", "rows", "cols")}
    # The program does not count the draining of an output-stationary array.
    assert gemm_cycles(**sizes, dataflow=row["dataflow"], drain=False) == int(row["last_cycle"]) + 1


@settings(deadline=None)
@given(side, side, side, grid, grid, dataflows, st.booleans(), st.integers(0, 99))
def test_cycle_by_cycle_array_agrees_with_numpy_and_the_closed_forms(
    m: int, n: int, k: int, rows: int, cols: int, dataflow: str, drain: bool, seed: int
) -> None:
    a, b = integers(seed, m, k), integers(seed + 1, k, n)
    run = simulate(a, b, rows=rows, cols=cols, dataflow=dataflow, drain=drain)
    assert np.array_equal(run.product, a @ b)
    assert run.product.dtype == np.int64
    assert run.cycles == gemm_cycles(m, n, k, rows=rows, cols=cols, dataflow=dataflow, drain=drain)
    assert run.macs == m * n * k
    assert run.sram == sram_accesses(m, n, k, rows=rows, cols=cols, dataflow=dataflow)
    assert run.sram.total >= m * k + k * n + m * n
    assert run.utilization == utilization(m, n, k, rows=rows, cols=cols, dataflow=dataflow, drain=drain)


def held_operand_element_by_element(
    a: np.ndarray, b: np.ndarray, rows: int, cols: int
) -> tuple[np.ndarray, int, list[list[list[int]]]]:
    """Weight stationary, written as plain elements with registers that look only at their neighbors; k, n fit."""
    steps, k, n = len(a), b.shape[0], b.shape[1]
    weight = [[0] * cols for _ in range(rows)]
    for cycle in range(rows):  # the last row enters first
        entering = [int(b[rows - 1 - cycle, c]) if rows - 1 - cycle < k and c < n else 0 for c in range(cols)]
        weight = [entering, *weight[:-1]]
    right = [[0] * cols for _ in range(rows)]
    down = [[0] * cols for _ in range(rows)]
    product = np.zeros((steps, n), dtype=int)
    missing, cycle, sums = steps * cols, 0, []
    while missing:
        entering = [int(a[cycle - r, r]) if 0 <= cycle - r < steps and r < k else 0 for r in range(rows)]
        right = [[entering[r], *right[r][:-1]] for r in range(rows)]
        above = [[0] * cols, *down[:-1]]
        down = [[above[r][c] + right[r][c] * weight[r][c] for c in range(cols)] for r in range(rows)]
        sums.append(down)
        for c in range(cols):
            step = cycle - (rows - 1) - c
            if 0 <= step < steps:
                missing -= 1
                if c < n:
                    product[step, c] = down[-1][c]
        cycle += 1
    return product, rows + cycle, sums


@settings(deadline=None)
@given(side, grid, grid, grid, grid, st.integers(0, 99))
def test_registers_are_those_of_an_array_written_element_by_element(
    m: int, rows: int, cols: int, n: int, k: int, seed: int
) -> None:
    n, k = min(n, cols), min(k, rows)
    a, b = integers(seed, m, k), integers(seed + 1, k, n)
    product, cycles, sums = held_operand_element_by_element(a, b, rows, cols)
    shown = list(frames(a, b, rows=rows, cols=cols, dataflow="ws"))
    assert np.array_equal(product, a @ b)
    assert len(shown) == cycles
    assert [frame.down.tolist() for frame in shown if frame.phase == "compute"] == sums


@settings(deadline=None)
@given(side, side, side, grid, grid, dataflows, st.integers(0, 99))
def test_values_move_only_between_neighbors(
    m: int, n: int, k: int, rows: int, cols: int, dataflow: str, seed: int
) -> None:
    a, b = integers(seed, m, k), integers(seed + 1, k, n)
    shown = list(frames(a, b, rows=rows, cols=cols, dataflow=dataflow))
    assert len(shown) == gemm_cycles(m, n, k, rows=rows, cols=cols, dataflow=dataflow)
    assert [frame.cycle for frame in shown] == list(range(len(shown)))
    for before, after in pairwise(shown):
        if (before.fold, before.phase) != (after.fold, after.phase):
            continue
        assert np.array_equal(after.right[:, 1:], before.right[:, :-1])
        own = after.product[1:] if after.phase == "compute" and dataflow != "os" else 0
        assert np.array_equal(after.down[1:], before.down[:-1] + own)
    assert sum(int(frame.active.sum()) for frame in shown) == m * n * k


def test_two_by_two_example_cycle_by_cycle() -> None:
    shown = list(frames([[2, 4], [1, 3]], [[1, 3], [5, 2]], rows=2, cols=2, dataflow="os"))
    assert shown[0].product.tolist() == [[2, 0], [0, 0]]
    assert shown[1].product.tolist() == [[20, 6], [1, 0]]
    assert shown[3].held.tolist() == [[22, 14], [16, 9]]
    assert [frame.phase for frame in shown] == ["compute"] * 4 + ["drain"] * 2
    assert [frame.down[-1].tolist() for frame in shown[4:]] == [[16, 9], [22, 14]]


def stuck_weight_stationary(a: np.ndarray, b: np.ndarray, rows: int, cols: int, fault: Fault) -> np.ndarray:
    """What theory says a fault does to C, from the definition of the array and not from its registers."""
    k, n = b.shape
    row_of, col_of = np.arange(k) % rows, np.arange(n) % cols
    value, expected = int(fault.value), a @ b
    for j in range(n):
        if fault.part == "product" and col_of[j] == fault.col:
            others = row_of != fault.row
            expected[:, j] = a[:, others] @ b[others, j] + value * -(-k // rows)
        if fault.part == "held" and col_of[j] == fault.col:
            expected[:, j] = a @ np.where(row_of == fault.row, value, b[:, j])
        if fault.part == "right" and col_of[j] >= fault.col:
            expected[:, j] = np.where(row_of == fault.row, value, a) @ b[:, j]
        if fault.part == "down" and col_of[j] == fault.col:
            # Sums from above are lost, and the weights below were loaded through the same stuck register.
            expected[:, j] = value * -(-k // rows) + a[:, row_of > fault.row].sum(axis=1) * value
    return expected


def stuck_output_stationary(a: np.ndarray, b: np.ndarray, rows: int, cols: int, fault: Fault) -> np.ndarray:
    (m, k), n = a.shape, b.shape[1]
    value, expected = int(fault.value), a @ b
    for i in range(m):
        for j in range(n):
            row, col = i % rows, j % cols
            if fault.part == "product" and (row, col) == (fault.row, fault.col):
                expected[i, j] = k * value
            if fault.part == "held" and (row, col) == (fault.row, fault.col):
                expected[i, j] = value
            if fault.part == "right" and row == fault.row and col >= fault.col:
                expected[i, j] = value * b[:, j].sum()
            if fault.part == "down" and col == fault.col:
                # Rows above are drained through the stuck register; rows below multiply what came through it.
                expected[i, j] = value if row <= fault.row else value * a[i].sum()
    return expected


THEORY: dict[str, Callable[..., np.ndarray]] = {
    "ws": stuck_weight_stationary,
    "os": stuck_output_stationary,
    "is": lambda a, b, rows, cols, fault: stuck_weight_stationary(b.T, a.T, rows, cols, fault).T,
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("dataflow", DATAFLOWS)
@settings(deadline=None, max_examples=30)
@given(m=side, n=side, k=side, rows=grid, cols=grid, value=st.integers(-20, 20), data=st.data())
def test_fault_shows_exactly_where_theory_says(
    dataflow: str, part: str, m: int, n: int, k: int, rows: int, cols: int, value: int, data: Any
) -> None:
    row, col = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, cols - 1))
    fault = Fault(row, col, part, value)
    a, b = integers(m, m, k), integers(n, k, n)
    run = simulate(a, b, rows=rows, cols=cols, dataflow=dataflow, fault=fault)
    assert np.array_equal(run.product, THEORY[dataflow](a, b, rows, cols, fault))


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_fault_of_any_number_is_kept(dataflow: str) -> None:
    a, b = integers(1, 3, 3), integers(2, 3, 3)
    run = simulate(a, b, rows=3, cols=3, dataflow=dataflow, fault=Fault(1, 1, "product", 0.5))
    whole = simulate(2 * a, b, rows=3, cols=3, dataflow=dataflow, fault=Fault(1, 1, "product", 1))
    assert np.array_equal(2 * run.product, whole.product)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("scale", [1, 1 << 12, 1 << 26])
def test_integers_are_exact_at_every_magnitude(dataflow: str, scale: int) -> None:
    a, b = integers(3, 33, 65) * scale + 1, integers(4, 65, 17) * scale - 1
    assert np.array_equal(simulate(a, b, rows=8, cols=4, dataflow=dataflow).product, a @ b)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floating_point_stays_within_rounding(dataflow: str, dtype: type) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((40, 70)).astype(dtype), rng.standard_normal((70, 30)).astype(dtype)
    run = simulate(a, b, rows=16, cols=8, dataflow=dataflow)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert run.product.dtype == np.result_type(dtype, np.float32)
    bound = 70 * np.finfo(run.product.dtype).eps * (abs(a).astype(np.float64) @ abs(b).astype(np.float64))
    assert np.all(abs(run.product - exact) <= bound)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_many_batches_of_folds_change_nothing(dataflow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = integers(6, 37, 29), integers(7, 29, 31)
    whole = simulate(a, b, rows=4, cols=5, dataflow=dataflow)
    monkeypatch.setattr("mlsys.systolic.folds._TAPE_BYTES", 1)
    cut = simulate(a, b, rows=4, cols=5, dataflow=dataflow)
    assert np.array_equal(whole.product, cut.product)
    assert (whole.cycles, whole.macs, whole.sram) == (cut.cycles, cut.macs, cut.sram)


def replayed(
    sizes: tuple[int, int, int], rows: int, cols: int, dataflow: str, srams: tuple[int, int, int]
) -> tuple[int, int, int, int]:
    """Element by element through least recently used memories, one per matrix."""
    m, n, k = sizes
    inputs, weights, outputs = (LRUMemory(capacity) for capacity in srams)
    along_rows, along_cols, stream = {"ws": (k, n, m), "os": (m, n, k), "is": (k, m, n)}[dataflow]
    for first_col in range(0, along_cols, cols):
        for first_row in range(0, along_rows, rows):
            for step in range(stream):
                for row in range(first_row, min(first_row + rows, along_rows)):
                    if dataflow != "is":
                        inputs.read(("A", *((step, row) if dataflow == "ws" else (row, step))), 1)
                    else:
                        weights.read(("B", row, step), 1)
                for col in range(first_col, min(first_col + cols, along_cols)):
                    if dataflow == "os":
                        weights.read(("B", step, col), 1)
                    else:
                        outputs.accumulate(("C", step, col), 1)
            for row in range(first_row, min(first_row + rows, along_rows)):
                for col in range(first_col, min(first_col + cols, along_cols)):
                    if dataflow == "ws":
                        weights.read(("B", row, col), 1)
                    elif dataflow == "is":
                        inputs.read(("A", col, row), 1)
                    else:
                        outputs.accumulate(("C", row, col), 1)
    outputs.flush()
    return inputs.bytes_read["A"], weights.bytes_read["B"], outputs.bytes_written["C"], outputs.bytes_read["C"]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 8), st.integers(1, 8), st.integers(1, 8), st.integers(1, 3), st.integers(1, 3), dataflows, st.data()
)
def test_dram_accesses_are_those_of_least_recently_used_memories(
    m: int, n: int, k: int, rows: int, cols: int, dataflow: str, data: Any
) -> None:
    exact_fits = [size for size in (m * k, k * n, k * cols, m * cols, n * cols) if size >= 9]
    srams = tuple(data.draw(st.integers(9, 70) | st.sampled_from([9, *exact_fits])) for _ in range(3))
    counted = dram_accesses(
        m, n, k, rows=rows, cols=cols, dataflow=dataflow,
        input_sram=srams[0], weight_sram=srams[1], output_sram=srams[2],
    )  # fmt: skip
    expected = replayed((m, n, k), rows, cols, dataflow, srams)
    assert (counted.input_reads, counted.weight_reads, counted.output_writes, counted.output_reads) == expected
    assert counted.total == sum(expected)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("short", range(4))
def test_a_memory_that_just_fits_and_one_that_is_one_short(dataflow: str, short: int) -> None:
    sizes, rows, cols = (6, 7, 8), 3, 3
    just = {"ws": (6 * 8, 9, 6 * 3), "os": (6 * 8, 8 * 3, 9), "is": (9, 8 * 7, 7 * 3)}[dataflow]
    srams = [max(9, size - (index + 1 == short)) for index, size in enumerate(just)]
    counted = dram_accesses(
        *sizes, rows=rows, cols=cols, dataflow=dataflow,
        input_sram=srams[0], weight_sram=srams[1], output_sram=srams[2],
    )  # fmt: skip
    expected = replayed(sizes, rows, cols, dataflow, (srams[0], srams[1], srams[2]))
    assert (counted.input_reads, counted.weight_reads, counted.output_writes, counted.output_reads) == expected


@given(st.integers(1, 4000), grid, grid)
def test_dataflows_are_counted_by_the_same_rule(side: int, rows: int, cols: int) -> None:
    """All three sides alike, so each dataflow has the same folds and the same stream: no cycle may differ."""
    cycles = {gemm_cycles(side, side, side, rows=rows, cols=cols, dataflow=dataflow) for dataflow in DATAFLOWS}
    assert len(cycles) == 1


def test_spilled_sums_grow_with_the_folds_of_k_only() -> None:
    spills = {d: sram_accesses(64, 64, 96, rows=32, cols=32, dataflow=d).spilled_sums for d in DATAFLOWS}
    assert spills == {"ws": 2 * 64 * 64, "os": 0, "is": 2 * 64 * 64}


def test_fill_efficiency_is_the_share_of_busy_cycles() -> None:
    busy = [frame.active.mean() for frame in frames(np.ones((9, 4)), np.ones((4, 3)), rows=4, cols=3, dataflow="ws")]
    assert np.mean(busy[4:]) == pytest.approx(stream_efficiency(9, rows=4, cols=3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"m": 0}, "m must be a positive integer, got 0; the nearest is 1"),
        ({"k": 2.5}, "k must be a positive integer, got 2.5; the nearest is 2"),
        ({"rows": -4}, "rows must be a positive integer, got -4; the nearest is 1"),
        ({"dataflow": "weight"}, "dataflow must be one of 'ws', 'os', 'is', got 'weight'"),
        ({"dataflow": "OS"}, "did you mean 'os'?"),
    ],
)
def test_bad_sizes_and_dataflows_are_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"m": 4, "n": 4, "k": 4, "rows": 2, "cols": 2, "dataflow": "ws"}
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        gemm_cycles(**(arguments | change))


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.ones(3), np.ones((3, 2)), r"a must be a matrix of real numbers, got shape \(3,\)"),
        (np.ones((2, 3)), np.ones((4, 2)), "b must have 3 rows"),
        (np.ones((2, 3)), np.ones((3, 2)) * 1j, "b must be a matrix of real numbers"),
        (np.ones((0, 3)), np.ones((3, 2)), "m must be a positive integer, got 0"),
    ],
)
def test_operands_that_make_no_product_are_named(a: np.ndarray, b: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        simulate(a, b, rows=2, cols=2, dataflow="ws")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda: Fault(0, 0, "sum", 1), "part must be one of 'product', 'held', 'right', 'down', got 'sum'"),
        (lambda: Fault(-1, 0, "held", 1), "row must be an integer of 0 or more, got -1; the nearest is 0"),
        (lambda: Fault(0, 0, "held", float("nan")), "must be finite"),
        (lambda: Fault(5, 0, "held", 1), "the array has 2 rows"),
        (lambda: Fault(0, 2, "held", 1), "the array has 2 columns"),
    ],
)
def test_faults_outside_the_array_are_refused(fault: Callable[[], Fault], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        simulate(np.ones((2, 2)), np.ones((2, 2)), rows=2, cols=2, dataflow="ws", fault=fault())


def test_memory_below_one_tile_is_refused() -> None:
    with pytest.raises(InvalidValue, match="weight_sram of 100 elements cannot hold one ws step .* 1024 elements"):
        dram_accesses(64, 64, 64, rows=32, cols=32, dataflow="ws", input_sram=4096, weight_sram=100, output_sram=4096)
