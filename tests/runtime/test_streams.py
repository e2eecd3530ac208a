"""The simulator of streams, held to identities, to another model of the same pipeline and to what cannot be beaten."""

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.errors import InvalidValue, UnknownName
from mlsys.runtime.streams import Copy, Gpu, Kernel, Record, Timeline, Wait, simulate
from mlsys.traffic.overlap import pipeline

mpl.use("agg")

GPU = Gpu(sms=100, link_bandwidth=1e9)
"""A copy of 1,000,000 bytes takes 1 ms."""


def copy(name, stream, ms, direction="to device"):
    return Copy(name, stream, round(ms * 1_000_000), direction)


def kernel(name, stream, ms, blocks=100, share=1.0):
    return Kernel(name, stream, blocks, ms / 1e3, share)


def ms(timeline: Timeline, name: str):
    bar = timeline[name]
    return pytest.approx((1e3 * bar.start_s, 1e3 * bar.end_s))


def test_a_stream_runs_its_operations_one_after_the_other():
    timeline = simulate([copy("in", "s", 4), kernel("f", "s", 10), copy("out", "s", 1, "to host")], GPU)
    assert ms(timeline, "in") == (0, 4)
    assert ms(timeline, "f") == (4, 14)
    assert ms(timeline, "out") == (14, 15)


@pytest.mark.parametrize(("copy_ms", "work_ms"), [(4, 10), (12, 10), (5, 5), (0, 3)])
@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_tiles_in_several_buffers_end_when_the_pipeline_model_says(copy_ms, work_ms, buffers):
    plan = []
    for tile in range(7):
        if tile >= buffers:
            plan.append(Wait(f"free {tile - buffers}", "copy"))
        plan += [copy(f"in {tile}", "copy", copy_ms), Record(f"full {tile}", "copy"), Wait(f"full {tile}", "work")]
        plan += [kernel(f"f {tile}", "work", work_ms), Record(f"free {tile}", "work")]
    expected = pipeline(tiles=7, copy_time=copy_ms, compute_time=work_ms, buffers=buffers)
    timeline = simulate(plan, GPU)
    assert 1e3 * timeline.total_s == pytest.approx(expected.total)
    for event in expected.events:
        name = f"{'in' if event.lane == 'copy' else 'f'} {event.tile}"
        assert ms(timeline, name) == (event.start, event.end)


def test_both_directions_of_the_link_work_at_once_but_each_serves_one_copy():
    plan = [copy("a", "1", 3), copy("b", "2", 3), copy("c", "3", 5, "to host")]
    timeline = simulate(plan, GPU)
    assert [ms(timeline, name) for name in "abc"] == [(0, 3), (3, 6), (0, 5)]
    assert timeline.busy("to device") == pytest.approx(1)
    assert timeline.busy("to host") == pytest.approx(5 / 6)


def test_small_kernels_share_the_sms_and_large_ones_take_turns():
    small = [kernel(name, name, 2, blocks=30) for name in "abc"]
    assert 1e3 * simulate(small, GPU).total_s == pytest.approx(2)
    large = [kernel(name, name, 2, blocks=100) for name in "abc"]
    assert 1e3 * simulate(large, GPU).total_s == pytest.approx(6)


def test_blocks_run_in_waves_and_the_next_kernel_uses_what_the_last_wave_leaves():
    timeline = simulate([kernel("a", "1", 1, blocks=250), kernel("b", "2", 1, blocks=50)], GPU)
    assert ms(timeline, "a") == (0, 3)
    assert ms(timeline, "b") == (2, 3)
    assert timeline.busy("SMs") == pytest.approx(1)


def test_two_blocks_of_half_an_sm_run_beside_each_other():
    assert 1e3 * simulate([kernel("a", "1", 1, blocks=200, share=0.5)], GPU).total_s == pytest.approx(1)
    assert 1e3 * simulate([kernel("a", "1", 1, blocks=201, share=0.5)], GPU).total_s == pytest.approx(2)


def test_an_event_orders_two_streams():
    plan = [kernel("a", "1", 5, blocks=10), Record("done", "1"), Wait("done", "2"), kernel("b", "2", 1, blocks=10)]
    assert ms(simulate(plan, GPU), "b") == (5, 6)


def test_short_kernels_wait_for_the_host_that_issues_them():
    gpu = Gpu(sms=100, link_bandwidth=1e9, issue_s=6e-6)
    timeline = simulate([kernel(f"k{n}", "s", 0.001) for n in range(1000)], gpu)
    assert timeline.total_s == pytest.approx(1000 * 6e-6 + 1e-6)
    assert timeline.busy("SMs") == pytest.approx(1 / 6, rel=1e-3)


PLANS = st.lists(
    st.tuples(
        st.sampled_from("xyz"),
        st.one_of(
            st.tuples(st.just("to device"), st.integers(0, 5)),
            st.tuples(st.just("to host"), st.integers(0, 5)),
            st.tuples(st.integers(1, 250), st.integers(1, 5)),
        ),
    ),
    min_size=1,
    max_size=15,
)


@given(PLANS)
@settings(max_examples=100, deadline=None)
def test_no_plan_beats_its_busiest_lane_or_its_longest_stream_nor_loses_to_one_after_the_other(drawn):
    plan = [
        copy(str(n), stream, length, what) if isinstance(what, str) else kernel(str(n), stream, length, blocks=what)
        for n, (stream, (what, length)) in enumerate(drawn)
    ]
    timeline = simulate(plan, GPU)
    alone = [simulate([one], GPU).total_s for one in plan]
    streams = {}
    for one, time in zip(plan, alone, strict=True):
        streams[one.stream] = streams.get(one.stream, 0) + time
    lanes = [sum(bar.busy_s for bar in timeline.bars if bar.lane == lane) for lane in {b.lane for b in timeline.bars}]
    assert max(*lanes, *streams.values()) - 1e-9 <= timeline.total_s <= sum(alone) + 1e-9
    for bar, time in zip(timeline.bars, alone, strict=True):
        assert bar.end_s - bar.start_s >= time - 1e-9


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ([Wait("done", "s")], "stream 's' waits for 'done', which is not recorded before: CUDA would not wait at all"),
        ([Record("e", "s"), Record("e", "t")], "the event 'e' is recorded twice; give each event its own name"),
        ([Kernel("f", "s", 0, 1e-3)], "blocks of 'f' must be a positive integer, got 0; the nearest is 1"),
        ([Kernel("f", "s", 1, -1e-3)], "block_s of 'f' must be a finite number of 0 or more"),
        ([Kernel("f", "s", 1, 1e-3, share=2)], "share of 'f' is 2; it must be above 0 and at most 1"),
        ([Copy("a", "s", -1)], "bytes of 'a' must be a finite number of 0 or more"),
        ([Copy("a", "s", 1, "to devise")], "direction of 'a' must be one of .*; did you mean 'to device'?"),
    ],
)
def test_a_plan_that_cannot_run_is_refused(plan, message):
    with pytest.raises(InvalidValue, match=message):
        simulate(plan, GPU)


def test_a_link_without_bandwidth_is_refused():
    with pytest.raises(InvalidValue, match="link_bandwidth is 0; a copy would never end"):
        simulate([], Gpu(sms=1, link_bandwidth=0))


def test_an_operation_that_is_not_there_is_named():
    with pytest.raises(UnknownName, match="unknown operation 'g'"):
        simulate([kernel("f", "s", 1)], GPU)["g"]


def test_the_drawing_has_a_bar_for_every_operation_and_no_two_overlap():
    plan = [copy("in", "1", 2), kernel("a", "1", 2, blocks=30), kernel("b", "2", 3, blocks=30)]
    ax = simulate(plan, GPU).plot()
    boxes = [patch.get_bbox() for patch in ax.patches]
    assert len(boxes) == 3
    assert sorted(box.width for box in boxes) == pytest.approx([2, 2, 3])
    for number, box in enumerate(boxes):
        for other in boxes[:number]:
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            along = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert min(across, along) <= 1e-9
    assert {text.get_text() for text in ax.texts} >= {"in", "a", "b"}
