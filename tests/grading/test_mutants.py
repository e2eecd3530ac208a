"""Mutants of kernels, and the page that says what finds those of the labs."""

import ast
import inspect as python_inspect
import re
from pathlib import Path

import pytest
import torch
from helpers import hazard_kernels as kernels
from helpers.lab_mutants import PAGE, WHOLE_TOKEN, WRONG_ON_PURPOSE, Launch, outcome

from mlsys.course.lab import Lab, find_labs
from mlsys.errors import InvalidValue
from mlsys.grading.mutants import MISTAKES, mutants

ROOT = Path(__file__).parents[2]


def texts(name):
    return mutants(python_inspect.getsource(getattr(kernels, name).fn))


@pytest.mark.parametrize(
    ("kernel", "mistake", "before", "after"),
    [
        ("add", "load without a mask", "tl.load(x + i, mask=i < n)", "tl.load(x + i)"),
        ("total", "load without other=", "tl.load(x + i, mask=i < n, other=0.0)", "tl.load(x + i, mask=i < n)"),
        ("add", "< for <=, or <= for <", "i < n", "i <= n"),
        ("add", "no program's offset", "tl.program_id(0) * B", "0"),
        ("copy", "another stride", "stride_row", "stride_column"),
        ("copy", "no stride", "row * stride_row", "row"),
        ("product", "loop too short", "range(0, K, T)", "range(0, K - T, T)"),
        ("product", "float16 for float32", "tl.float32", "tl.float16"),
        ("product", "row for column", "i[:, None]", "i[None, :]"),
        ("product", "half of a mask", "(k[:, None] < K) & (j[None, :] < N)", "k[:, None] < K"),
        ("clears_then_adds", "load and store for atomic_add", "tl.atomic_add(out, ", "tl.store(out, tl.load(out) + "),
    ],
)
def test_mistakes_that_people_make_are_made(kernel, mistake, before, after):
    made = [one for one in texts(kernel) if one.mistake == mistake]
    assert any(one.before.startswith(before) and one.after.startswith(after) for one in made), list(map(str, made))


@pytest.mark.parametrize("name", ["add", "copy", "product", "softmax_of_rows", "last_one_adds"])
def test_each_mutant_is_one_change_in_the_line_that_it_names(name):
    source = python_inspect.getsource(getattr(kernels, name).fn)
    right = ast.unparse(ast.parse(source)).split("\n")
    made = texts(name)
    assert len({one.text for one in made}) == len(made) >= 10
    for one in made:
        lines = one.text.split("\n")
        changed = [number for number, (a, b) in enumerate(zip(lines, right, strict=True), 1) if a != b]
        assert len(changed) == 1, str(one)
        assert one.mistake in MISTAKES


def test_what_is_not_one_function_is_refused():
    with pytest.raises(InvalidValue, match="is not one function: pass the text of a kernel"):
        mutants("x = 1")


def test_every_wrong_mutant_of_a_kernel_is_found():
    launch = Launch((3,), (torch.rand(10), torch.rand(10), torch.full((10,), float("nan")), 10, 4), {})
    found = outcome(kernels.add, [launch])
    assert found.missed == []
    assert found.made == found.equivalent + found.differing + sum(found.hidden.values()) >= 10
    assert found.hidden["out of bounds"] == 4  # two loads, without a mask or with <=
    assert found.differing == found.by_inspect + found.by_comparison


def test_the_page_has_every_kernel_that_the_labs_launch_and_no_mutant_is_missed():
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in PAGE.read_text().splitlines()]
    rows = [row for row in rows if len(row) == 10 and row[2].isdigit() and row[0]]
    solutions = {
        (name, kernel)
        for name in find_labs(ROOT)
        for cell in Lab.load(ROOT / "labs" / name / "lab.py").cells
        if cell.kind == "code"
        for kernel in re.findall(r"^@triton\.jit\ndef (\w+_kernel)\(", cell.source, re.M)
        if kernel
        not in {
            "reference_kernel",
            "tested_kernel",
            *WRONG_ON_PURPOSE,
            *WHOLE_TOKEN,
        }  # run by a race on a GPU, or for a student's tests
    }
    assert {(row[0], row[1]) for row in rows} == solutions
    for row in rows:
        made, equivalent, wrong, by_inspect, by_comparison, missed, _, hazard = map(int, row[2:])
        assert made >= 10
        assert made == equivalent + wrong + hazard
        assert wrong == by_inspect + by_comparison
        assert missed == 0, row
