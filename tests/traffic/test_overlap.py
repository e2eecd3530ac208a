from itertools import combinations, pairwise
from typing import Any

import pytest
from helpers.pieces import walked
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.errors import InvalidValue
from mlsys.runtime.streams import Copy, Gpu, Kernel, Operation, simulate
from mlsys.traffic.overlap import Timeline, best_pieces, overlap_gain, pipeline, time_in_pieces

times = st.integers(0, 20)
counts = st.integers(1, 12)


def lane(timeline: Timeline, name: str) -> list[Any]:
    return [event for event in timeline.events if event.lane == name]


@settings(deadline=None)
@given(counts, times, times, st.integers(1, 4))
def test_total_is_the_pipeline_formula(tiles: int, copy: int, compute: int, buffers: int) -> None:
    total = pipeline(tiles=tiles, copy_time=copy, compute_time=compute, buffers=buffers).total
    if buffers == 1:
        assert total == tiles * (copy + compute)
    else:
        assert total == copy + (tiles - 1) * max(copy, compute) + compute


@settings(deadline=None)
@given(counts, times, times, st.integers(1, 4))
def test_no_unit_does_two_things_and_no_buffer_is_overwritten(
    tiles: int, copy: int, compute: int, buffers: int
) -> None:
    timeline = pipeline(tiles=tiles, copy_time=copy, compute_time=compute, buffers=buffers)
    copies, computations = lane(timeline, "copy"), lane(timeline, "compute")
    assert len(copies) == len(computations) == tiles
    for events in (copies, computations):
        assert all(before.end <= after.start for before, after in pairwise(events))
    for copied, computed in zip(copies, computations, strict=True):
        assert copied.tile == computed.tile
        assert copied.buffer == computed.buffer < buffers
        assert copied.end <= computed.start
    for first, second in combinations(range(tiles), 2):
        if copies[first].buffer == copies[second].buffer:
            assert computations[first].end <= copies[second].start


@pytest.mark.parametrize(
    ("copy", "serial", "double", "bound"), [(4, 14, 10, "compute"), (12, 22, 12, "copy"), (10, 20, 10, "compute")]
)
def test_steady_state_of_the_examples(copy: int, serial: int, double: int, bound: str) -> None:
    for buffers, period in ((1, serial), (2, double)):
        timeline = pipeline(tiles=6, copy_time=copy, compute_time=10, buffers=buffers)
        ends = [event.end for event in lane(timeline, "compute")]
        assert {after - before for before, after in pairwise(ends)} == {period}
        assert timeline.steady_period == period
    assert timeline.bound == bound
    assert pipeline(tiles=6, copy_time=copy, compute_time=10, buffers=1).bound == "both"


def test_busy_shares_of_a_copy_bound_pipeline() -> None:
    timeline = pipeline(tiles=100, copy_time=12, compute_time=10)
    assert timeline.busy("copy") == 1200 / timeline.total
    assert timeline.busy("compute") == 1000 / timeline.total
    assert pipeline(tiles=1, copy_time=0, compute_time=0).busy("copy") == 0


@settings(deadline=None)
@given(st.integers(1, 50), st.integers(1, 50))
def test_gain_is_what_many_tiles_approach(copy: int, compute: int) -> None:
    totals = [pipeline(tiles=2000, copy_time=copy, compute_time=compute, buffers=b).total for b in (1, 2)]
    assert overlap_gain(copy_time=copy, compute_time=compute) == pytest.approx(1 - totals[1] / totals[0], abs=1e-3)


def test_copy_of_ten_and_compute_of_thirty_gain_a_quarter() -> None:
    assert overlap_gain(copy_time=10, compute_time=30) == 0.25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiles": 0}, "tiles must be a positive integer, got 0"),
        ({"buffers": 0}, "buffers must be a positive integer, got 0"),
        ({"copy_time": -1}, "copy_time must be a finite number of 0 or more, got -1; the nearest is 0"),
        ({"compute_time": float("nan")}, "compute_time must be a finite number"),
    ],
)
def test_bad_pipelines_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        pipeline(**({"tiles": 2, "copy_time": 1, "compute_time": 1, "buffers": 2} | change))


def test_gain_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidValue, match="both 0"):
        overlap_gain(copy_time=0, compute_time=0)


def test_unknown_lane_is_named() -> None:
    with pytest.raises(InvalidValue, match="lane must be one of 'copy', 'compute', got 'dma'"):
        pipeline(tiles=1, copy_time=1, compute_time=1).busy("dma")


stage_times = st.lists(st.integers(0, 40), min_size=1, max_size=3)


@settings(deadline=None)
@given(stage_times, st.integers(1, 30), st.integers(0, 5))
def test_pieces_take_as_long_as_each_operation_in_its_turn(stages: list[int], pieces: int, cost: int) -> None:
    assert time_in_pieces(stages, pieces=pieces, cost=cost) == pytest.approx(walked(stages, pieces, cost))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 40), st.integers(1, 12))
def test_pieces_take_as_long_as_in_simulated_streams(copy: int, compute: int, back: int, pieces: int) -> None:
    """Times in milliseconds on a link of 1 GB/s, so that a byte is a nanosecond; each piece in a stream of its own."""
    scale = 27720  # divisible by 1 to 12, so that pieces are whole bytes
    plan: list[Operation] = []
    for n in range(pieces):
        plan += [
            Copy(f"in {n}", f"s{n}", bytes=copy * scale // pieces),
            Kernel(f"f {n}", f"s{n}", blocks=1, block_s=compute * scale * 1e-9 / pieces),
            Copy(f"out {n}", f"s{n}", bytes=back * scale // pieces, direction="to host"),
        ]
    total_s = simulate(plan, Gpu(sms=1, link_bandwidth=1e9)).total_s
    assert total_s == pytest.approx(time_in_pieces((copy, compute, back), pieces=pieces) * scale * 1e-9)


@settings(deadline=None)
@given(stage_times, st.integers(1, 200))
def test_no_other_count_of_pieces_is_better(stages: list[int], cost_hundredths: int) -> None:
    cost = cost_hundredths / 100
    best = best_pieces(stages, cost=cost)
    assert walked(stages, best, cost) <= min(walked(stages, n, cost) for n in range(1, 100)) + 1e-9


@pytest.mark.parametrize(
    ("stages", "pieces", "cost", "said"),
    [
        ((), 1, 1.0, "stages is empty"),
        ((3, -1), 1, 1.0, "stage 2"),
        ((3, 1), 0, 1.0, "pieces"),
        ((3, 1), 1, -1.0, "cost"),
    ],
)
def test_pieces_refuse_what_cannot_be_timed(stages: Any, pieces: int, cost: float, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        time_in_pieces(stages, pieces=pieces, cost=cost)


def test_without_a_cost_there_is_no_best_count() -> None:
    with pytest.raises(InvalidValue, match="more pieces are always better"):
        best_pieces((10, 30), cost=0)
