"""Plans of fusion: the least bytes against every division into groups, rules one by one, and what is no plan."""

import numpy as np
import pytest
import torch

from mlsys import grading
from mlsys.grading import WrongAnswer
from mlsys.grading.replays.fusion_plan import (
    MAX_READS,
    assert_groups,
    compile_groups,
    draw_graph,
    least_bytes,
    plan_bytes,
    shapes,
    why_illegal,
)

CHAIN = {
    "inputs": {"x": (8, 16), "v": (1, 16)},
    "ops": [("a", "add", ("x", "v")), ("b", "exp", ("a",)), ("s", "row_sum", ("b",)), ("y", "div", ("b", "s"))],
    "outputs": ["y"],
}
PRODUCT = {
    "inputs": {"x": (8, 16), "w": (16, 16)},
    "ops": [("r", "relu", ("x",)), ("p", "matmul", ("r", "w")), ("s", "row_max", ("p",)), ("y", "sub", ("p", "s"))],
    "outputs": ["y"],
}


def divisions(items):
    """Every division of a list into groups."""
    if not items:
        yield []
        return
    for rest in divisions(items[1:]):
        yield [[items[0]], *rest]
        for number, group in enumerate(rest):
            yield [*rest[:number], [items[0], *group], *rest[number + 1 :]]


def in_order(graph, groups):
    """The groups by the last of their results, an order in which legal groups can run."""
    places = {result: number for number, (result, _, _) in enumerate(graph["ops"])}
    return sorted(groups, key=lambda group: max(places[one] for one in group))


@pytest.mark.parametrize("count", [3, 5, 6, 7])
def test_the_least_bytes_are_those_of_the_best_of_all_divisions(count):
    draw = grading.Draws(f"least {count}")
    for _ in range(6):
        graph = draw_graph(draw, count)
        every = [in_order(graph, groups) for groups in divisions([result for result, _, _ in graph["ops"]])]
        legal = [groups for groups in every if not why_illegal(graph, groups)]
        assert least_bytes(graph) == min(plan_bytes(graph, groups) for groups in legal)


def test_bytes_are_what_each_kernel_reads_and_stores():
    matrix, row, column = 4 * 8 * 16, 4 * 16, 4 * 8
    one_by_one = (2 * matrix + row) + 2 * matrix + (matrix + column) + (2 * matrix + column)
    assert plan_bytes(CHAIN, [["a"], ["b"], ["s"], ["y"]]) == one_by_one
    assert plan_bytes(CHAIN, [["a", "b", "s", "y"]]) == least_bytes(CHAIN) == 2 * matrix + row


@pytest.mark.parametrize(
    ("graph", "groups", "reason"),
    [
        (CHAIN, [["b", "s", "y"], ["a"]], "reads a, which no earlier group stores"),
        (CHAIN, [["a", "b", "s"], ["y"]], "must store one result, and b and s"),
        (PRODUCT, [["r", "p"], ["s", "y"]], "must read both arguments"),
        (PRODUCT, [["r"], ["p", "s", "y"]], "a matrix product and a reduction"),
    ],
)
def test_each_rule_is_checked(graph, groups, reason):
    assert reason in why_illegal(graph, groups)
    with pytest.raises(WrongAnswer, match=reason):
        assert_groups(groups, graph)


def test_a_kernel_reads_four_tensors_at_most():
    names = [f"x{number}" for number in range(MAX_READS + 1)]
    ops, before = [], names[0]
    for number, name in enumerate(names[1:]):
        ops.append((f"t{number}", "add", (before, name)))
        before = f"t{number}"
    graph = {"inputs": dict.fromkeys(names, (8, 16)), "ops": ops, "outputs": [before]}
    assert f"reads {MAX_READS + 1} tensors" in why_illegal(graph, [[result for result, _, _ in ops]])


def test_two_products_are_two_kernels():
    ops = [("p", "matmul", ("x", "w")), ("q", "matmul", ("x", "w")), ("y", "add", ("p", "q"))]
    graph = {"inputs": PRODUCT["inputs"], "ops": ops, "outputs": ["y"]}
    assert "2 matrix products" in why_illegal(graph, [["p", "q", "y"]])


@pytest.mark.parametrize(
    "plan",
    [
        None, 7, "abs", [], [["a"], ["b"], ["s"]], [["a", "b", "s", "y", "y"]], [["a", "b", "s", "y"], []],
        [["a", "b", "s", "z"]], [["a", "b", "s", 7]], ["absy"], [["a", "b", "s", ["y"]]], {"a": ["b"]},
        [["x", "a", "b", "s", "y"]],
    ],
)  # fmt: skip
def test_what_is_no_plan_is_refused(plan):
    with pytest.raises(WrongAnswer):
        assert_groups(plan, CHAIN)


def test_values_that_are_no_numbers_refuse_no_plan():
    ops = [("e0", "exp", ("x",))] + [(f"e{n + 1}", "mul", (f"e{n}", f"e{n}")) for n in range(9)]
    graph = {"inputs": {"x": (8, 16)}, "ops": [*ops, ("y", "sub", ("e9", "e9"))], "outputs": ["y"]}
    assert_groups([[result for result, _, _ in graph["ops"]]], graph)


def test_a_worse_plan_is_told_how_much_it_could_save():
    with pytest.raises(WrongAnswer, match="4 kernels move 3,712 bytes; a better plan moves 71% less"):
        assert_groups([["a"], ["b"], ["s"], ["y"]], CHAIN)


@pytest.mark.parametrize("seed", range(4))
def test_compiled_groups_compute_what_the_graph_says(seed):
    graph, chance = draw_graph(grading.Draws(f"compiled {seed}"), 6), np.random.default_rng(seed)
    rows, _ = graph["inputs"].get("x", (0, 0))
    graph["inputs"] = {
        name: tuple(1 if side == 1 else 6 if side == rows else 12 for side in size)
        for name, size in graph["inputs"].items()
    }
    graph["ops"] = [(result, "relu" if kind == "exp" else kind, arguments) for result, kind, arguments in graph["ops"]]
    compiled = compile_groups(graph, best_of(graph), "cpu")
    inputs = {name: torch.tensor(chance.normal(size=size)).float() for name, size in graph["inputs"].items()}
    for found, due in zip(compiled(*inputs.values()), evaluated(graph, inputs), strict=True):
        torch.testing.assert_close(found.double(), due, rtol=1e-4, atol=1e-3)


def best_of(graph):
    every = (in_order(graph, groups) for groups in divisions([result for result, _, _ in graph["ops"]]))
    return min(
        (groups for groups in every if not why_illegal(graph, groups)), key=lambda groups: plan_bytes(graph, groups)
    )


def evaluated(graph, inputs):
    found = {name: value.double() for name, value in inputs.items()}
    functions = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "max": torch.maximum, "relu": torch.relu}
    functions |= {"matmul": torch.matmul, "row_sum": lambda x: x.sum(1, keepdim=True)}
    functions |= {"row_max": lambda x: x.amax(1, keepdim=True)}
    for result, kind, arguments in graph["ops"]:
        found[result] = functions[kind](*(found[name] for name in arguments))
    assert {name: tuple(value.shape) for name, value in found.items()} == shapes(graph)
    return [found[name] for name in graph["outputs"]]
