"""The chapter on compilers: its listings, its solutions, and what its viewer says."""

import re
import sys
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from mlsys import Hardware
from mlsys.compiler import compile
from mlsys.compiler.fuse import fuse
from mlsys.compiler.ir.expression import size
from mlsys.compiler.lower import lower
from mlsys.compiler.memory import plan
from mlsys.measure.device import torch_sees_gpu

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _figures import compilers as figures  # noqa: E402
from _interactive import compilers as viewer  # noqa: E402

PAGE = (ROOT / "book/software/compilers.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.skipif(torch_sees_gpu(), reason="the chapter runs in the interpreter")


def test_the_listings_are_those_that_the_viewer_compiles():
    for listing in (figures.NETWORK, figures.NOTHING_FUSED):
        assert f"ipython3\n{listing}```" in PAGE


@pytest.fixture(scope="module")
def names():
    """What the listings and the solutions of the page define."""
    found = {"nn": nn, "F": functional, "compile": compile, "fuse": fuse, "h200": Hardware.get("h200")}
    found |= {"replace": replace, "ceil": ceil, "size": size, "plan": plan, "lower": lower}
    exec(figures.NETWORK, found)
    for solution in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(solution, found)
    return found


@pytest.fixture(scope="module")
def network(names):
    torch.manual_seed(0)
    return names["Network"](64).eval(), torch.randn(8, 64)


def right(network, **stages):
    model, x = network
    torch.testing.assert_close(compile(model, [x], stages=stages)(x)[0], model(x).detach(), atol=1e-5, rtol=1e-5)


def test_stages_of_the_solutions_give_right_results(names, network):
    right(network, schedule=names["small_tiles"])
    right(network, memory=names["first_fit"])


def test_the_planner_of_the_solution_never_lets_two_live_tensors_overlap(names, network):
    model, x = network
    for stage in ({}, {"fuse": viewer_stage()}):
        seen = []
        compile(
            model, [x], stages={**stage, "memory": lambda program, seen=seen: seen.append(program) or plan(program)}
        )
        placed = names["first_fit"](seen[0])
        for one, (first, end, length) in placed.lifetimes.items():
            for other, (begin, stop, _) in placed.lifetimes.items():
                if other != one and first < stop and begin < end:
                    low, high = sorted((placed.offsets[one], placed.offsets[other]))
                    assert high - low >= length
        assert placed.memory == plan(seen[0]).memory


def viewer_stage():
    found = {"fuse": fuse, "replace": replace, "h200": Hardware.get("h200")}
    exec(figures.NOTHING_FUSED, found)
    return found["nothing_fused"]


def test_a_program_for_each_shape_is_compiled_once(names):
    model = names["ByShape"](nn.ReLU())
    for length in (3, 5, 3):
        x = torch.randn(length)
        torch.testing.assert_close(model(x)[0], torch.relu(x))
    assert len(model.programs) == 2


class Scaled(nn.Module):
    def forward(self, x):
        return torch.exp(x * 1.0) * 0.5


def test_a_product_with_one_is_dropped_and_another_is_not(names):
    x = torch.randn(4)
    compiled = compile(Scaled(), [x], stages={"optimize": names["without_ones"]})
    assert compiled.stages["optimize"].count("Mul(") == 1
    torch.testing.assert_close(compiled(x)[0], Scaled()(x))


def test_softmax_without_its_maximum_is_right_until_the_exponential_overflows(names):
    model, x = nn.Softmax(-1), torch.randn(2, 8)
    spoiled = compile(model, [x], stages={"lower": names["without_maximum"]})
    torch.testing.assert_close(spoiled(x)[0], model(x))
    assert spoiled(x + 88)[0].isnan().any()
    torch.testing.assert_close(compile(model, [x])(x + 88)[0], model(x + 88))


def test_the_theorem_is_what_the_compiler_decides_for_large_tensors():
    class Users(nn.Module):
        def __init__(self, inputs, users):
            super().__init__()
            self.inputs, self.users = inputs, users

        def forward(self, *xs):
            y = xs[0] * 2 if len(xs) == 1 else torch.add(xs[0], xs[1])
            return tuple(f(y) for f in (torch.exp, torch.sin, torch.cos, torch.abs)[: self.users])

    for inputs in (1, 2):
        for users in (1, 2, 3, 4):
            decided = []
            xs = [torch.zeros(1 << 22) for _ in range(inputs)]
            compile(Users(inputs, users), xs, stages={"fuse": lambda g, d=decided: d.append(p := fuse(g, CHIP)) or p})
            stored = len(decided[0].kernels) > users
            assert stored == (inputs * users > inputs + 1 + users), (inputs, users)


CHIP = Hardware.get("h200")


def test_the_viewer_marks_a_line_about_the_operation_in_each_form():
    numbers = viewer.content().numbers
    for way in numbers["ways"]:
        for place, operation in enumerate(numbers["operations"]):
            dropped = way["kernel"][place] < 0
            assert dropped == (operation["op"] in ("Abs", "ReduceMean"))
            for stage in way["stages"]:
                marked = [stage["lines"][line] for line in stage["marked"][place]]
                if stage["name"] in ("import", "optimize") and marked:
                    assert any(line.strip().startswith(operation["result"]) for line in marked[:1])
                if stage["name"] == "lower" and not dropped:
                    assert marked[0].startswith("def ")
                    called = marked[0].removeprefix("def ").partition("(")[0]
                    assert marked[1].startswith(f"    launch({called},")
    assert [way["kernels"] for way in numbers["ways"]] == [4, 12]
