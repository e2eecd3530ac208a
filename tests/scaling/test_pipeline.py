"""Pipelines: the schedules keep what they must, and wait as long as published formulas say."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.errors import InvalidValue
from mlsys.scaling import bubble_share, schedule

SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 3))


def of(shape, **more):
    """A schedule of so many stages, with a multiple of them as microbatches, interleaved if there are stages."""
    stages, rounds, groups = shape
    return schedule(stages, stages * rounds, interleaving=groups if stages > 1 else 1, **more)


@given(SHAPES)
def test_every_pass_runs_once_after_what_it_needs_and_none_overlaps_on_its_stage(shape):
    step = of(shape)
    stages, groups = step.stages, 1 + max(one.group for one in step.passes)
    ran = {(one.forward, one.microbatch, one.group * stages + one.stage): one for one in step.passes}
    assert len(ran) == len(step.passes) == 2 * stages * groups * (1 + max(one.microbatch for one in step.passes))
    last = stages * groups - 1
    for (forward, microbatch, place), one in ran.items():
        if forward and place > 0:
            assert ran[True, microbatch, place - 1].end <= one.start + 1e-9
        if not forward:
            assert ran[True, microbatch, place].end <= one.start + 1e-9
            if place < last:
                assert ran[False, microbatch, place + 1].end <= one.start + 1e-9
    for stage in range(stages):
        own = sorted((one for one in step.passes if one.stage == stage), key=lambda one: one.start)
        assert all(before.end <= after.start + 1e-9 for before, after in pairwise(own))


@given(SHAPES, st.floats(0.5, 3))
def test_stages_wait_as_long_as_narayanan_et_al_say(shape, backward):
    step = of(shape, backward=backward)
    stages, rounds, groups = shape
    share = bubble_share(stages, stages * rounds, groups if stages > 1 else 1)
    for stage in range(stages):
        assert step.waiting(stage) == pytest.approx(share, abs=1e-9)


@given(st.integers(1, 8), st.integers(1, 12))
def test_gpipe_waits_as_long_and_holds_every_microbatch(stages, count):
    plain, gpipe = schedule(stages, count), schedule(stages, count, order="gpipe")
    assert gpipe.total == pytest.approx(plain.total)
    for stage in range(stages):
        assert gpipe.most_held(stage) == count
        assert plain.most_held(stage) == min(count, stages - stage)


@given(SHAPES)
def test_the_first_stage_holds_what_korthikanti_et_al_say(shape):
    """Groups of layers in flight: p v (1 + (p - 1) / (p v)), once the pipeline is full."""
    stages, rounds, groups = shape
    if stages == 1 or rounds == 1:
        return
    expected = stages * groups * (1 + (stages - 1) / (stages * groups)) if groups > 1 else stages
    assert of(shape).most_held(0) == round(expected)


def test_what_is_wrong_is_named():
    with pytest.raises(
        InvalidValue, match="9 microbatches are no multiple of 4 stages, which interleaving needs: give 8"
    ):
        schedule(4, 9, interleaving=2)
    with pytest.raises(InvalidValue, match="gpipe has one group"):
        schedule(4, 8, interleaving=2, order="gpipe")
    with pytest.raises(InvalidValue, match="order must be one of"):
        schedule(4, 8, order="f1b1")
    with pytest.raises(InvalidValue, match="backward is 0"):
        schedule(4, 8, backward=0)
    with pytest.raises(InvalidValue, match="microbatches"):
        bubble_share(4, 0)
