"""Plans, against the published example of the heuristic and against every plan that there is."""

import csv
import itertools
from pathlib import Path

import pytest
from helpers.small_chips import chip, random_case

from mlsys.errors import InvalidValue
from mlsys.soc import CannotRun, Plan, Stage, camera_pipeline, exhaustive_plan, list_schedule, plan, run, soc

GOLDEN = Path(__file__).parents[1] / "golden" / "heft.csv"
PHONE = soc("phone")


def published_example():
    """Ten tasks on three processors, from the paper that introduced the heuristic."""
    with GOLDEN.open(newline="") as file:
        rows = list(csv.DictReader(file))
    times = {row["task"]: {unit: float(row[unit]) for unit in ("p1", "p2", "p3")} for row in rows}
    after = {
        row["task"]: {name: float(takes) for name, takes in (pair.split(":") for pair in row["after"].split())}
        for row in rows
    }
    return times, after


def test_the_list_schedule_of_the_published_example_ends_at_80():
    placed = list_schedule(*published_example())
    assert max(one.end for one in placed) == 80


def test_a_list_schedule_keeps_every_rule_of_the_problem():
    times, after = published_example()
    placed = {one.task: one for one in list_schedule(times, after)}
    for one in placed.values():
        assert one.end - one.start == times[one.task][one.unit]
        for before, handoff in after[one.task].items():
            arrives = placed[before].end + (0 if placed[before].unit == one.unit else handoff)
            assert one.start >= arrives
    for first, second in itertools.combinations(placed.values(), 2):
        assert first.unit != second.unit or first.end <= second.start or second.end <= first.start


def every_plan(stages, small, clocks):
    """Yield all plans, found without the package's search: each order, each block, each clock of each block."""
    names = [one.name for one in stages]
    after = {one.name: set(one.after) for one in stages}
    units = [unit.name for unit in small.units]
    for order in itertools.permutations(names):
        if any(not after[name] <= set(order[:place]) for place, name in enumerate(order)):
            continue
        for chosen in itertools.product(units, repeat=len(names)):
            by_name = {one.name: one for one in stages}
            places = tuple(zip(order, chosen, strict=True))
            if all(set(by_name[name].work) <= set(small.unit(unit).rates) for name, unit in places):
                for picked in itertools.product(clocks, repeat=len(units)):
                    yield Plan(places, dict(zip(units, picked, strict=True)))


@pytest.mark.parametrize("seed", range(30))
def test_a_plan_is_within_5_percent_of_the_fastest_of_all(seed):
    stages, small = random_case(seed, stages=4, blocks=3)
    best = min(run(stages, found, small).total_s for found in every_plan(stages, small, (1.0,)))
    assert best <= run(stages, plan(stages, small), small).total_s * (1 + 1e-9)
    assert run(stages, plan(stages, small), small).total_s <= 1.05 * best
    assert run(stages, exhaustive_plan(stages, small), small).total_s == pytest.approx(best)


@pytest.mark.parametrize("seed", range(100, 112))
def test_a_plan_is_within_5_percent_of_the_most_frugal_that_is_in_time(seed):
    stages, small = random_case(seed, stages=3, blocks=2)
    clocks = (0.4, 0.7, 1.0)
    fastest = run(stages, exhaustive_plan(stages, small), small).total_s
    deadline = 1.6 * fastest
    energies = []
    for found in every_plan(stages, small, clocks):
        done = run(stages, found, small)
        if done.total_s <= deadline:
            energies.append(done.energy_until_j(deadline, small.base_w))
    done = run(stages, plan(stages, small, least="energy", deadline_s=deadline, clocks=clocks), small)
    assert done.total_s <= deadline
    assert min(energies) * (1 - 1e-9) <= done.energy_until_j(deadline, small.base_w) <= 1.05 * min(energies)


def test_five_stages_on_four_blocks_are_within_5_percent_of_the_best():
    for seed in (200, 201, 202):
        stages, small = random_case(seed, stages=5, blocks=4)
        best = run(stages, exhaustive_plan(stages, small), small).total_s
        assert run(stages, plan(stages, small), small).total_s <= 1.05 * best


@pytest.mark.parametrize("seed", range(300, 308))
def test_a_plan_beside_others_that_use_the_memory_is_within_5_percent_too(seed):
    stages, small = random_case(seed, stages=4, blocks=3, bandwidth=6.0)
    others = {"model": 4.0}
    best = min(run(stages, found, small, background=others).total_s for found in every_plan(stages, small, (1.0,)))
    found = plan(stages, small, background=others)
    assert best * (1 - 1e-9) <= run(stages, found, small, background=others).total_s <= 1.05 * best


def test_the_camera_meets_its_deadline_with_less_energy_at_lower_clocks():
    clocks = PHONE.units[0].curve.points.clocks
    fast = run(camera_pipeline(), plan(camera_pipeline(), PHONE), PHONE)
    found = plan(camera_pipeline(), PHONE, least="energy", deadline_s=1 / 30, clocks=clocks)
    frugal = run(camera_pipeline(), found, PHONE)
    assert frugal.total_s <= 1 / 30
    assert frugal.energy_until_j(1 / 30, PHONE.base_w) < 0.75 * fast.energy_until_j(1 / 30, PHONE.base_w)
    assert found.unit_of("detect") == "NPU"
    assert found.unit_of("boxes") == "CPU"


def test_what_cannot_be_planned_is_refused_with_what_to_do():
    with pytest.raises(InvalidValue, match=r"within 5 ms; the fastest takes 7 ms: give it more time"):
        plan(camera_pipeline(), PHONE, deadline_s=0.005)
    with pytest.raises(CannotRun, match="no block of the assumed phone runs 'scan': write it with operations"):
        plan((Stage("one", {"scan": 1}),), PHONE)
    with pytest.raises(CannotRun, match="no block of the assumed phone runs 'branches': write it with operations"):
        plan((Stage("one", {"branches": 1, "filter": 1}),), PHONE.without("CPU"))
    two = chip({"a": {"p": 1}, "b": {"q": 1}})
    with pytest.raises(CannotRun, match="of a small chip runs all of 'p', 'q': split the stage, so that each part has"):
        plan((Stage("one", {"p": 1, "q": 1}),), two)
    with pytest.raises(InvalidValue, match="'power'"):
        plan(camera_pipeline(), PHONE, least="power")
    with pytest.raises(InvalidValue, match="no clocks"):
        plan(camera_pipeline(), PHONE, clocks=())
    with pytest.raises(InvalidValue, match="are too many to try"):
        exhaustive_plan(camera_pipeline(), PHONE, clocks=(0.4, 0.6, 0.8, 1.0))
