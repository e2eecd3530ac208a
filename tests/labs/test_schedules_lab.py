import os
import random

import pytest
from helpers.known_lab import KnownLab

from mlsys import systolic
from mlsys.core.cells import run_cell
from mlsys.dataflow.loop_nest import matmul
from mlsys.dataflow.tiles import tiled_accesses
from mlsys.grading.draws import SEED_VARIABLE
from mlsys.grading.replays.network_plan import best_cycles
from mlsys.grading.replays.network_plan import plan_cycles as counted_cycles

SCHEDULES = KnownLab("schedules")
verdict, with_fault = SCHEDULES.verdict, SCHEDULES.with_fault
CELLS = SCHEDULES.cells
ANSWERS = ("setup", "d-layers", "e-given", "a-schedule", "b-schedule", "c-cycles", "e-plan", "challenge-schedule")


@pytest.fixture(scope="module")
def names():
    """What the lab's setup and solutions define."""
    found = {"__name__": "__main__"}
    for cell in ANSWERS:
        run_cell(CELLS[cell].source, cell, found)
    return found


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("question", ["a", "b", "c", "e", "challenge"])
def test_the_solution_passes_whatever_the_hidden_tests_draw(question, seed):
    found = verdict(question, seed=seed)
    assert found.name == "passed", found.message


FAULTS = {  # question, what, cell, right, wrong, part of the message
    ("a", "no skew of the rows"): (
        "a-schedule",
        "[0 + i + p for p",
        "[p for p",
        "PE (1,0) at cycle 0: a[1,0] meets nothing",
    ),
    ("a", "no skew of the columns"): ("a-schedule", "[0 + p + j for j", "[p for j", "PE (0,1) at cycle 0"),
    ("a", "columns of A"): (
        "a-schedule",
        "for p in range(k)] for i in range(m)]",
        "for i in range(m)] for p in range(k)]",
        "a must have length 1",
    ),
    ("a", "late"): ("a-schedule", "p +", "1 + p +", "at cycle"),
    ("b", "weights from the top"): ("b-schedule", "0 + k - 1 - p for j", "p for j", "it needs b["),
    ("b", "inputs a cycle early"): ("b-schedule", "[0 + k + i + p for", "[k - 1 + i + p for", "it needs b[0,0]"),
    ("b", "no skew"): ("b-schedule", "[0 + k + i + p for", "[k + i for", "from above"),
    ("b", "sums a cycle late"): ("b-schedule", "(k - 1) + j", "k + j", "leaves column"),
    ("c", "full folds"): (
        "c-cycles",
        "2 * min(rows, down - row) + min(cols, n - col)",
        "2 * rows + cols",
        "got 15, should be 10",
    ),
    ("c", "the drain of os left out"): (
        "c-cycles",
        "2 * min(rows, down - row)",
        '(1 + (dataflow == "ws")) * min(rows, down - row)',
        '"os")',
    ),
    ("c", "one wave too many"): ("c-cycles", "+ stream - 2", "+ stream", "got 17, should be 15"),
    ("c", "rounded down"): (
        "c-cycles",
        "-(-rows * cols * waiting // gain)",
        "rows * cols * waiting // gain",
        "should be 1,351",
    ),
    ("c", "never None"): ("c-cycles", " if gain > 0 else None", " if gain else None", "return None"),
    ("e", "no change of order"): (
        "e-plan",
        "(change if last != dataflow else 0)",
        "0",
        "times the cycles of the best one",
    ),
    ("e", "too large for the memory"): (
        "e-plan",
        'min(extent[y], (chip["memory"] - tile_x * tile_z) // (tile_x + tile_z))',
        "extent[y]",
        "the memory holds",
    ),
    ("challenge", "loads without waiting"): ("challenge-schedule", "max(m, 2 * rows - 1)", "m", "challenge"),
    ("challenge", "one cycle early"): ("challenge-schedule", "2 * rows - 1", "2 * rows - 2", "meets"),
    ("challenge", "one cycle late"): ("challenge-schedule", "2 * rows - 1", "2 * rows", "are enough"),
    ("challenge", "swaps without loading"): ("challenge-schedule", "start + j - 1 - p", "start + j - p", "it needs b["),
}


@pytest.mark.parametrize("case", FAULTS, ids=" ".join)
def test_a_visible_test_finds_each_usual_mistake_and_says_where(case):
    cell, right, wrong, message = FAULTS[case]
    found = verdict(case[0], with_fault(cell, right, wrong))
    if case == ("challenge", "loads without waiting"):
        message = "both enter" if "both enter" in found.message else "meets"
    assert found.name in ("wrong answer", "error"), found
    assert message in found.message
    assert "hidden test" not in found.message


def test_the_given_functions_count_as_the_package_does(names):
    chance = random.Random(4)
    chip = {"rows": 7, "cols": 5, "memory": 10**6, "bandwidth": 3}
    layers, plan = [], []
    for _ in range(200):
        layer = tuple(chance.randint(1, 60) for _ in "mnk")
        tile = tuple(chance.choice([1, chance.randint(1, side), side]) for side in layer)
        dataflow = chance.choice(systolic.DATAFLOWS)
        order = names["ORDER"][dataflow]
        right = tiled_accesses(matmul(*layer), order, dict(zip("mnk", tile, strict=True))).total
        assert names["moved_elements"](layer, dataflow, tile) == right, (layer, dataflow, tile)
        layers.append(layer)
        plan.append((dataflow, tile))
    assert names["plan_cycles"](plan, layers, chip) == counted_cycles(plan, layers, chip)


def test_the_network_has_the_convolutions_of_resnet_50(names):
    assert len(names["RESNET"]) == 53
    assert names["RESNET"][:3] == [(12544, 64, 147), (3136, 64, 64), (3136, 64, 576)]
    assert names["RESNET"][-1] == (49, 2048, 512)
    assert set(names["SIX_LAYERS"]) <= set(names["RESNET"])
    macs = sum(m * n * k for m, n, k in names["RESNET"])
    assert macs == pytest.approx(4.09e9, rel=0.01)  # torchvision's count


def test_the_choices_by_hand_are_the_only_right_ones(names):
    for layer, right in zip(names["SIX_LAYERS"], ["ws", "ws", "os", "is", "os", "is"], strict=True):
        cycles = {x: systolic.gemm_cycles(*layer, rows=64, cols=64, dataflow=x) for x in systolic.DATAFLOWS}
        second = sorted(cycles.values())[1]
        assert cycles[right] < 0.95 * second


def networks_of(source, names, seed, monkeypatch):
    """The networks and chips that a test cell of e draws, by their names in messages."""
    monkeypatch.setenv(SEED_VARIABLE, seed)
    found = {}

    class Listening:
        @staticmethod
        def assert_plan(plan, layers, chip, name):
            found[name] = layers, chip

    quiet = type("Quiet", (), {"passed": staticmethod(print)})
    run_cell(source, "e-test", names | {"network_plan": Listening, "plan": lambda layers, chip: [], "scorecard": quiet})
    return found


def shortcuts(names, layers, chip):
    """Plans that simple ideas give, each with the best tiles: name -> plan."""
    best = [_each(names, layer, chip) for layer in layers]
    cycles = [
        {d: names["layer_cycles"](layer, d, tile, chip) for d, tile in own.items()}
        for layer, own in zip(layers, best, strict=True)
    ]
    sequences = {d: [d] * len(layers) for d in names["ORDER"]}
    sequences["the best by itself"] = [min(own, key=own.get) for own in cycles]
    back = []
    for number, own in enumerate(cycles):
        change = names["change_cycles"](layers[number - 1], chip) if number else 0
        back.append(min(own, key=lambda d: own[d] + (change if back and back[-1] != d else 0)))
    sequences["one layer back"] = back
    return {name: [(d, own[d]) for d, own in zip(flows, best, strict=True)] for name, flows in sequences.items()}


def _each(names, layer, chip):
    """The best tile of a layer for each dataflow, by trying the equal parts of two sides and both ends of the third."""
    found = {}
    for dataflow, (x, y, z) in names["ORDER"].items():
        side = dict(zip("mnk", layer, strict=True))
        tiles = []
        for parts in range(1, side[x] + 1):
            for inner in (1, side[z]):
                outer = -(-side[x] // parts)
                other = min(side[y], (chip["memory"] - outer * inner) // (outer + inner))
                if other >= 1:
                    sizes = {x: outer, y: other, z: inner}
                    tiles.append(tuple(sizes[loop] for loop in "mnk"))
        found[dataflow] = min(tiles, key=lambda tile: names["layer_cycles"](layer, dataflow, tile, chip))
    return found


@pytest.mark.parametrize("seed", ["public", "1", "2"])
@pytest.mark.parametrize("part", ["visible", "hidden"])
def test_no_shortcut_passes_e_whatever_is_drawn(names, part, seed, monkeypatch):
    visible, _, hidden = CELLS["e-test"].source.partition("### BEGIN HIDDEN TESTS")
    source = visible if part == "visible" else f"small = {visible.split('small = ')[1].splitlines()[0]}\n{hidden}"
    worst = {}
    for layers, chip in networks_of(source, names, seed, monkeypatch).values():
        if len(layers) > 20:  # the traps are the small networks
            continue
        least = best_cycles(tuple(layers), tuple(sorted(chip.items())))
        for name, plan in shortcuts(names, layers, chip).items():
            worst[name] = max(worst.get(name, 0), counted_cycles(plan, layers, chip) / least)
    assert min(worst.values()) > 1.15, worst
    assert os.environ[SEED_VARIABLE] == seed


def test_answers_to_the_shown_networks_do_not_pass_the_hidden_ones(names):
    source = "shown = " + repr({
        tuple(layers): names["plan"](list(layers), chip)
        for layers, chip in [(names["RESNET"], names["CHIP"])]
    }) + """
def plan(layers, chip):
    return shown.get(tuple(layers)) or [("os", tuple(min(16, side) for side in layer)) for layer in layers]
"""  # fmt: skip
    found = verdict("e", SCHEDULES.with_cell("e-plan", source))
    assert found.name == "wrong answer"


def test_the_numbers_of_the_predictions_follow_from_the_solutions(names):
    late = [systolic.gemm_cycles(49, 512, 4608, rows=64, cols=64, dataflow=d) for d in systolic.DATAFLOWS]
    assert names["half_busy_batch"](128, 128, 128, 128) == 2 * 128 + 128 - 2
    assert max(late) / min(late) == pytest.approx(3.6, abs=0.05)
    assert systolic.utilization(382, 128, 128, rows=128, cols=128, dataflow="ws") == 0.5


def test_whole_folds_count_as_the_chapter_does(names):
    for dataflow in ("ws", "os"):
        for m, n, k in [(24, 16, 32), (8, 8, 8), (48, 24, 16)]:
            found = names["product_cycles"](m, n, k, 8, 8, dataflow)
            assert found == systolic.gemm_cycles(m, n, k, rows=8, cols=8, dataflow=dataflow)
