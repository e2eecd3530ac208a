"""Issue slots of a warp, against threads that run alone: a warp needs a slot for each place that any thread visits."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import eq, lt

import pytest

from mlsys.errors import InvalidValue
from mlsys.hardware.simt import Branch, Loop, Statement, Step, issue

Place = tuple[int, ...]


def alone(program: Sequence[Statement], value: list[int], here: Place = ()) -> Iterator[Place]:
    """The places that one thread visits: the positions of its statements, with the rounds of their loops."""
    for number, statement in enumerate(program):
        place = (*here, number)
        if isinstance(statement, Step):
            yield place
            if statement.changes:
                value[0] = statement.changes(value[0])
        elif isinstance(statement, Branch):
            yield place
            passed = statement.test(value[0])
            yield from alone(statement.then if passed else statement.otherwise, value, (*place, int(passed)))
        else:
            rounds = 0
            yield (*place, rounds, 0)
            while statement.test(value[0]):
                yield from alone(statement.body, value, (*place, rounds, 1))
                rounds += 1
                yield (*place, rounds, 0)


def leaves(modulus: int, rest: int) -> Callable[[int], bool]:
    """A test of what is left of a value after division."""
    return lambda x: x % modulus == rest


def drawn_program(draw: random.Random, deep: int = 0) -> list[Statement]:
    """A random program whose loops end, because each round of a loop lowers the value and nothing raises it."""
    program: list[Statement] = []
    for _ in range(draw.randint(1, 3)):
        kind = draw.choice(("step", "branch", "loop")) if deep < 3 else "step"
        if kind == "step":
            program.append(Step("step", draw.choice((None, lambda x: x - 2))))
        elif kind == "branch":
            modulus, rest = draw.randint(2, 4), draw.randint(0, 1)
            inside = [drawn_program(draw, deep + 1) if draw.random() < 0.8 else [] for _ in range(2)]
            program.append(Branch("if", leaves(modulus, rest), *inside))
        else:
            least = draw.randint(0, 3)
            body = [*drawn_program(draw, deep + 1), Step("lower", lambda x: x - 1)]
            program.append(Loop("while", partial(lt, least), body))
    return program


@pytest.mark.parametrize("seed", range(60))
def test_a_warp_issues_once_for_each_place_that_some_thread_visits(seed: int) -> None:
    draw = random.Random(seed)
    program = drawn_program(draw)
    values = [draw.randint(0, 7) for _ in range(draw.choice((1, 8, 32)))]
    threads = [list(alone(program, [value])) for value in values]
    run = issue(program, values)
    visited = [place for thread in threads for place in thread]
    assert len(run.slots) == len(set(visited))
    together = sorted(visited.count(place) for place in set(visited))
    assert sorted(sum(slot.active) for slot in run.slots) == together
    for lane, thread in enumerate(threads):
        assert sum(slot.active[lane] for slot in run.slots) == len(thread)
    assert run.longest_lane == max(map(len, threads)) <= len(run.slots)
    assert run.slots_needed <= run.longest_lane
    assert run.share == pytest.approx(len(visited) / (len(run.slots) * len(values)))
    draw.shuffle(values)
    assert len(issue(program, values).slots) == len(run.slots), "the order of the lanes does not matter"


def test_paths_run_one_after_the_other_and_meet_behind_the_branch() -> None:
    program: list[Statement] = [
        Branch("if", lambda x: x == 1, [Step("then")], [Step("else")]),
        Step("after"),
    ]
    run = issue(program, [1, 0, 0, 1])
    assert [(slot.text, slot.active) for slot in run.slots] == [
        ("if", (True,) * 4),
        ("then", (True, False, False, True)),
        ("else", (False, True, True, False)),
        ("after", (True,) * 4),
    ]


def test_a_path_that_no_lane_needs_costs_nothing() -> None:
    program = [Branch("if", lambda x: x == 1, [Step("then")] * 9, [Step("else")])]
    assert len(issue(program, [0] * 32).slots) == 2


def test_32_paths_leave_one_lane_at_work() -> None:
    program: list[Statement] = []
    for lane in range(32):
        program = [Branch("if", partial(eq, lane), [Step("own")] * 1000, program)]
    run = issue(program, range(32))
    own = [slot for slot in run.slots if slot.text == "own"]
    assert len(own) == 32_000
    assert all(sum(slot.active) == 1 for slot in own)


@pytest.mark.parametrize(
    ("program", "values", "message"),
    [
        ([Loop("while", lambda x: True, [Step("x")])], [1], "still running after 100000 slots"),
        ([Step("x")], [], "number of lanes must be a positive integer, got 0"),
    ],
)
def test_bad_input_is_named(program: list[Statement], values: list[int], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        issue(program, values)
