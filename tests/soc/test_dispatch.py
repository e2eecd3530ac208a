"""A dispatcher, against every plan that there is and against plans whose estimates turn out wrong."""

from itertools import pairwise

import pytest
from helpers.small_chips import chip, random_case

from mlsys.errors import InvalidValue
from mlsys.soc import CannotRun, Plan, Stage, camera_pipeline, dispatch, exhaustive_plan, plan, run, soc

PHONE = soc("phone")


@pytest.mark.parametrize("seed", range(20))
def test_a_dispatcher_obeys_every_rule_and_never_beats_the_best_plan(seed):
    stages, small = random_case(seed, stages=4, blocks=3)
    done = dispatch(stages, small)
    assert {bar.stage for bar in done.bars} == {one.name for one in stages}
    for one in stages:
        bar = done[one.name]
        assert all(small.unit(bar.unit).runs(kind) for kind in one.work)
        for before in one.after:
            arrives = done[before].end_s + (0 if done[before].unit == bar.unit else small.handoff_s)
            assert bar.start_s >= arrives - 1e-9
    for unit in small.units:
        mine = sorted((bar.start_s, bar.end_s) for bar in done.bars if bar.unit == unit.name)
        assert all(end <= start + 1e-9 for (_, end), (start, _) in pairwise(mine))
    # It takes no stage early, so it never idles on purpose; the best plan may, and the dispatcher may not be faster.
    assert done.total_s >= run(stages, exhaustive_plan(stages, small), small).total_s * (1 - 1e-9)


def test_a_chain_is_dispatched_as_it_is_planned():
    done, planned = dispatch(camera_pipeline(), PHONE), run(camera_pipeline(), plan(camera_pipeline(), PHONE), PHONE)
    assert done.total_s == pytest.approx(planned.total_s)


def test_a_dispatcher_avoids_a_block_that_runs_late_and_a_plan_waits_for_it():
    """A should take 1 second on x, and takes 10. C, 3 seconds on x and 3.75 on y, is ready after 3.75 seconds."""
    two = chip({"x": {"a": 1.0, "p": 1.0}, "y": {"p": 0.8}})
    stages = (
        Stage("A", {"a": 1}),
        Stage("B", {"p": 3}),
        Stage("C", {"p": 3}, after=("B",)),
        Stage("D", {"a": 10}, after=("A",)),
    )
    planned, late = Plan.of(A="x", B="y", C="x", D="x"), {"A": 10.0}
    assert run(stages, planned, two, stretch=late).total_s == pytest.approx(10 + 3 + 10)
    done = dispatch(stages, two, stretch=late)
    assert (done["B"].unit, done["C"].unit) == ("y", "y")
    assert done["C"].end_s == pytest.approx(2 * 3.75)
    assert done.total_s == pytest.approx(10 + 10)


def test_a_dispatcher_that_looks_one_stage_ahead_can_be_beaten():
    """It sends the first stage to the block that is faster for it, and pays to get the result back."""
    two = chip({"x": {"p": 1.0, "q": 1.0}, "y": {"p": 1.25}}, handoff_s=5)
    stages = (Stage("A", {"p": 5}), Stage("B", {"q": 1}, after=("A",)))
    assert dispatch(stages, two).total_s == pytest.approx(4 + 5 + 1)
    assert run(stages, plan(stages, two), two).total_s == pytest.approx(5 + 1)


def test_a_stage_that_no_block_runs_is_refused_before_anything_runs():
    with pytest.raises(CannotRun, match="no block of the assumed phone runs 'scan'"):
        dispatch((*camera_pipeline(), Stage("one", {"scan": 1})), PHONE)
    with pytest.raises(InvalidValue, match="wait for each other"):
        dispatch((Stage("a", {"signal": 1}, after=("a",)),), PHONE)
