"""Timelines, against longest paths where memory is no limit, and against sums by hand where it is."""

import random

import pytest
from helpers.small_chips import chip, random_case

from mlsys.errors import InvalidValue, UnknownName
from mlsys.soc import CannotRun, Plan, Stage, camera_pipeline, run, soc

PHONE = soc("phone")
GOOD = Plan.of(denoise="GPU", shrink="GPU", detect="NPU", boxes="CPU", overlay="GPU", listen="DSP")


@pytest.mark.parametrize("seed", range(40))
def test_without_contention_a_timeline_is_the_longest_path(seed):
    stages, small = random_case(seed, stages=6, blocks=3, bandwidth=1e9)
    draw = random.Random(seed)
    places = tuple((one.name, draw.choice(small.that_run(one.work)).name) for one in stages)
    by_name, unit_of = {one.name: one for one in stages}, dict(places)
    ends: dict[str, float] = {}
    free: dict[str, float] = {}
    for name, unit in places:
        one, block = by_name[name], small.unit(unit)
        arrivals = [ends[b] + (small.handoff_s if unit_of[b] != unit else 0) for b in one.after]
        start = max([free.get(unit, 0.0), *arrivals])
        ends[name] = start + sum(count / block.rates[kind] for kind, count in one.work.items())
        free[unit] = ends[name]
    done = run(stages, Plan(places), small)
    assert {bar.stage: bar.end_s for bar in done.bars} == pytest.approx(ends)
    assert done.total_s == pytest.approx(max(ends.values()))


def test_two_streams_that_fill_the_memory_take_twice_as_long():
    two = chip({"a": {"p": 1e9}, "b": {"p": 1e9}}, bandwidth=10)
    stages = (Stage("one", {"p": 1}, 100), Stage("two", {"p": 1}, 100))
    done = run(stages, Plan.of(one="a", two="b"), two)
    assert [bar.alone_s for bar in done.bars] == pytest.approx([10, 10])
    assert done["one"].took_s == pytest.approx(20)
    assert done.total_s == pytest.approx(20)


def test_a_stream_goes_faster_once_its_neighbor_has_ended():
    """The short one moves 20 at rate 5, which takes 4; the long one then has 80 left of 100, and the memory alone."""
    two = chip({"a": {"p": 1e9}, "b": {"p": 1e9}}, bandwidth=10)
    stages = (Stage("short", {"p": 1}, 20), Stage("long", {"p": 1}, 100))
    done = run(stages, Plan.of(short="a", long="b"), two)
    assert done["short"].end_s == pytest.approx(4)
    assert done["long"].end_s == pytest.approx(4 + 8)


def test_a_stage_that_asks_for_little_is_not_slowed_by_one_that_asks_for_much():
    two = chip({"a": {"p": 1}, "b": {"p": 1e9}}, bandwidth=10)
    stages = (Stage("arithmetic", {"p": 10}, 40), Stage("stream", {"p": 1}, 100))  # demands of 4 and 10 a second
    done = run(stages, Plan.of(arithmetic="a", stream="b"), two)
    assert done["arithmetic"].took_s == pytest.approx(10)
    assert done["stream"].took_s == pytest.approx(10 + (100 - 60) / 10)


def test_priority_decides_who_waits():
    two = chip({"a": {"p": 1e9}, "b": {"p": 1e9}}, bandwidth=10)
    stages = (Stage("camera", {"p": 1}, 100, priority=1), Stage("model", {"p": 1}, 100))
    done = run(stages, Plan.of(camera="a", model="b"), two)
    assert (done["camera"].end_s, done["model"].end_s) == pytest.approx((10, 20))


def test_others_get_what_the_stages_leave():
    one = chip({"a": {"p": 1e9}}, bandwidth=10)
    stage = (Stage("camera", {"p": 1}, 100),)
    fair = run(stage, Plan.of(camera="a"), one, background={"model": 1e3})
    assert fair.total_s == pytest.approx(20)
    assert fair.served_bytes["model"] == pytest.approx(100)
    first = run(stage, Plan.of(camera="a"), one, background={"model": 8}, background_priority=1)
    assert first.total_s == pytest.approx(100 / 2)
    last = run(stage, Plan.of(camera="a"), one, background={"model": 8}, background_priority=-1)
    assert last.total_s == pytest.approx(10)
    assert last.served_bytes["model"] == pytest.approx(0)


def test_a_stage_that_never_gets_bandwidth_is_refused_and_not_run_for_ever():
    one = chip({"a": {"p": 1e9}}, bandwidth=10)
    with pytest.raises(InvalidValue, match="lower background_priority or the bytes per second"):
        run((Stage("camera", {"p": 1}, 1),), Plan.of(camera="a"), one, background={"x": 10}, background_priority=1)


def test_energy_adds_up_from_work_time_and_bytes():
    stage = Stage("one", {"conv2d": 4e12}, bytes=1e9)
    done = run((stage,), Plan.of(one="NPU"), PHONE)
    switching, leaking, moving, rest = 2.5 * 1, 0.25 * 1, 1e9 * 40e-12, 0.6 * 1
    assert done.total_s == pytest.approx(1)
    assert done.energy_j == pytest.approx(switching + leaking + moving + rest)
    assert done.energy_until_j(3, 0.6) == pytest.approx(done.energy_j + 2 * 0.6)
    assert done.mean_power_w(3, 0.6) == pytest.approx((done.energy_j + 1.2) / 3)


def test_a_lower_clock_takes_longer_and_switches_at_a_lower_voltage():
    stage = Stage("one", {"conv2d": 4e12})
    half = run((stage,), Plan((("one", "NPU"),), {"NPU": 0.5}), PHONE)
    scale = (PHONE.unit("NPU").curve.points.voltage(0.5) / 1.055) ** 2
    assert half.total_s == pytest.approx(2)
    assert half.energies_j["NPU"] == pytest.approx(2.5 * scale + 0.25 * 2)


def test_a_stretched_stage_takes_longer_by_its_factor():
    late = run(camera_pipeline(), GOOD, PHONE, stretch={"boxes": 3})
    usual = run(camera_pipeline(), GOOD, PHONE)
    assert late.total_s - usual.total_s == pytest.approx(2 * usual["boxes"].took_s)


def test_a_block_without_the_operation_is_refused_and_the_message_names_those_that_have_it():
    with pytest.raises(CannotRun, match="the NPU runs no 'filter': use CPU or GPU or DSP"):
        run(camera_pipeline(), Plan(tuple((s, "NPU" if s == "denoise" else u) for s, u in GOOD.places)), PHONE)
    with pytest.raises(CannotRun, match="the DSP runs no 'branches': use CPU"):
        run(camera_pipeline(), Plan(tuple((s, "DSP" if s == "boxes" else u) for s, u in GOOD.places)), PHONE)


@pytest.mark.parametrize(
    ("places", "error", "message"),
    [
        (GOOD.places[1:], InvalidValue, "'shrink' before 'denoise', whose result it needs: swap them"),
        (GOOD.places[:-1], InvalidValue, "no block for 'listen': place every stage"),
        ((*GOOD.places, ("listen", "CPU")), InvalidValue, "'listen' twice"),
        ((*GOOD.places[:-1], ("lissen", "CPU")), UnknownName, "did you mean 'listen'"),
        ((*GOOD.places[:-1], ("listen", "TPU")), UnknownName, "unknown block of the assumed phone"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(places, error, message):
    with pytest.raises(error, match=message):
        run(camera_pipeline(), Plan(tuple(places)), PHONE)


@pytest.mark.parametrize(
    ("stages", "error", "message"),
    [
        ((Stage("a", {"p": 1}, after=("b",)), Stage("b", {"p": 1}, after=("a",))), InvalidValue, "a, b wait for each"),
        ((Stage("a", {"p": 1}), Stage("a", {"p": 1})), InvalidValue, "two stages are called 'a'"),
        ((Stage("a", {"p": -1}),), InvalidValue, "'p' of 'a'"),
        ((Stage("a", {"p": 1}, after=("c",)),), UnknownName, "stage before 'a'"),
    ],
)
def test_stages_that_no_order_could_run_are_refused(stages, error, message):
    small = chip({"u": {"p": 1}})
    with pytest.raises(error, match=message):
        run(stages, Plan(tuple((one.name, "u") for one in stages)), small)


def test_a_clock_that_the_block_does_not_have_is_refused():
    with pytest.raises(InvalidValue, match="outside the table"):
        run(camera_pipeline(), Plan(GOOD.places, {"NPU": 0.1}), PHONE)
