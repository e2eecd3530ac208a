"""Plans of networks: their cycles against the package's rules, and the best ones against every plan there is."""

import random
from itertools import product

import pytest

from mlsys.dataflow.loop_nest import matmul
from mlsys.dataflow.search import exhaustive_search
from mlsys.grading import WrongAnswer
from mlsys.grading.replays.network_plan import ORDERS, _least_moved, assert_plan, best_cycles, plan_cycles
from mlsys.systolic import DATAFLOWS

CHIP = {"rows": 4, "cols": 3, "memory": 40, "bandwidth": 2}


def steps(layer, memory):
    """Every dataflow with every tile, equal parts or not, that fits."""
    return [
        (dataflow, tile)
        for tile in product(*(range(1, side + 1) for side in layer))
        if tile[0] * tile[2] + tile[2] * tile[1] + tile[0] * tile[1] <= memory
        for dataflow in DATAFLOWS
    ]


def test_the_best_plan_is_the_best_of_all_plans():
    chance = random.Random(5)
    for _ in range(6):
        layers = tuple(tuple(chance.randint(1, 5) for _ in "mnk") for _ in range(3))
        chip = CHIP | {"memory": chance.randint(6, 40), "bandwidth": chance.randint(1, 3)}
        by_layer = []
        for layer in layers:  # the tiles of a layer touch no other layer: the best one for each dataflow is enough
            found = {d: [step for step in steps(layer, chip["memory"]) if step[0] == d] for d in DATAFLOWS}
            by_layer.append([min(x, key=lambda step: plan_cycles([step], [layer], chip)) for x in found.values()])
        least = min(plan_cycles(plan, layers, chip) for plan in product(*by_layer))
        assert best_cycles(layers, tuple(sorted(chip.items()))) == least


def test_the_three_orders_move_as_little_as_all_six():
    chance = random.Random(6)
    for _ in range(20):
        layer, memory = tuple(chance.randint(1, 40) for _ in "mnk"), chance.randint(10, 800)
        assert (
            min(_least_moved(layer, memory).values()) == exhaustive_search(matmul(*layer), memory=memory).accesses.total
        )


def test_a_change_of_dataflow_moves_the_result_once_more():
    layers = [(8, 6, 4), (8, 5, 6)]
    same = [("ws", (2, 2, 2)), ("ws", (2, 2, 2))]
    other = [("ws", (2, 2, 2)), ("os", (2, 2, 2))]
    apart = [plan_cycles([step], [layer], CHIP) for step, layer in zip(other, layers, strict=True)]
    assert plan_cycles(other, layers, CHIP) == sum(apart) + 8 * 6
    assert plan_cycles(same, layers, CHIP) == sum(
        plan_cycles([step], [layer], CHIP) for step, layer in zip(same, layers, strict=True)
    )


def test_a_loop_order_keeps_the_operand_that_its_dataflow_names():
    stays = {"ws": {"k", "n"}, "os": {"m", "n"}, "is": {"m", "k"}}
    assert {dataflow: set(order[:2]) for dataflow, order in ORDERS.items()} == stays


PLANS = [
    (None, "one .dataflow, tile. for each of 1 layers"),
    ([], "for each of 1 layers"),
    ([("ws", (2, 2, 2))] * 2, "for each of 1 layers"),
    ([("ws",)], "layer 0: give"),
    ([("rs", (2, 2, 2))], "must be one of ws, os, is, got 'rs'"),
    ([(["ws"], (2, 2, 2))], "must be one of ws, os, is"),
    ([("ws", (2, 2))], "three ints"),
    ([("ws", (2, 2.0, 2))], "three ints"),
    ([("ws", (2, True, 2))], "three ints"),
    ([("ws", (0, 2, 2))], "tile_m must be from 1 to m = 8, got 0"),
    ([("ws", (2, 7, 2))], "tile_n must be from 1 to n = 6, got 7"),
    ([("ws", (2, 2, 10**30))], "tile_k must be from 1 to k = 4"),
    ([("ws", (8, 6, 4))], "together have 104 elements, and the memory holds 40"),
    ([("ws", (1, 1, 1))], r"times the cycles of the best one; the limit is 1\.05"),
]


@pytest.mark.parametrize(("plan", "message"), PLANS)
def test_a_message_says_what_is_wrong_with_a_plan(plan, message):
    with pytest.raises(WrongAnswer, match=message):
        assert_plan(plan, [(8, 6, 4)], CHIP)


def test_a_plan_may_take_a_twentieth_longer_than_the_best():
    layers, chip = [(40, 30, 20)], CHIP | {"rows": 8, "cols": 8, "memory": 60, "bandwidth": 4}
    least = best_cycles(tuple(layers), tuple(sorted(chip.items())))
    taken = {step: plan_cycles([step], layers, chip) / least for step in steps((40, 30, 1), 60)}
    near = {step: ratio for step, ratio in taken.items() if 1.03 < ratio < 1.07}
    assert min(near.values()) < 1.05 < max(near.values())
    for step, ratio in near.items():
        if ratio <= 1.05:
            assert_plan([step], layers, chip)
        else:
            with pytest.raises(WrongAnswer, match="the limit is 1.05"):
                assert_plan([step], layers, chip)
