"""`check_kernel` as a student's notebook runs it, and as a judge does."""

import importlib.util
import os

import pytest
import torch
from helpers.judging import COPY, LAUNCH, SETUP

from mlsys.grading import NotAKernel, OutOfBounds, WrongAnswer, check_kernel, written_kernel
from mlsys.grading.checks.assertions import hidden_values
from mlsys.grading.kernels.check import MAX_WRITTEN

CHECK = """
x = torch.arange(37.0)
grading.check_kernel(copy_kernel, {"TILE": 16}, [x], x, launch=launch_copy, what="a copy")
"""
WRONG = {
    "mask=i < size)\n": (")\n", "out of bounds"),
    "tl.load(x_ptr + i, mask=i < size)": ("2.0", "wrong answer"),
    "out_ptr + i": ("out_ptr + i * 0", "wrong answer"),
    "(x_ptr, out_ptr, size,": ("(x_ptr, size, out_ptr,", "error"),
}


@pytest.fixture
def names(tmp_path, monkeypatch):
    """Run cells in this process, in Triton's interpreter."""
    monkeypatch.setitem(os.environ, "TRITON_INTERPRET", "1")

    def run(answer):
        path = tmp_path / "cells.py"
        path.write_text("\n".join([SETUP, LAUNCH, answer]))
        spec = importlib.util.spec_from_file_location("cells", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return vars(module)

    return run


def test_in_a_notebook_the_kernel_itself_is_launched(names):
    found, x = names(COPY), torch.arange(37.0)
    check_kernel(found["copy_kernel"], {"TILE": 16}, [x], x, launch=found["launch_copy"])
    with pytest.raises(WrongAnswer, match="first result: "):
        check_kernel(found["copy_kernel"], {"TILE": 16}, [x], x + 1, launch=found["launch_copy"], what="first result")


def test_in_a_notebook_an_unmasked_store_is_found(names):
    found, x = names(COPY.replace("mask=i < size)\n", ")\n")), torch.arange(37.0)
    with pytest.raises(OutOfBounds):
        check_kernel(found["copy_kernel"], {"TILE": 16}, [x], x, launch=found["launch_copy"])


def test_a_result_that_changes_from_launch_to_launch_is_called_a_race(names):
    found, x, launches = names(COPY), torch.arange(37.0), []

    def launch(kernel, constants, out, x):
        launches.append(None)
        out.copy_(x * len(launches))

    with pytest.raises(WrongAnswer, match="race"):
        check_kernel(found["copy_kernel"], {"TILE": 16}, [x], x + 1, launch=launch)
    assert len(launches) == 2


def test_the_same_wrong_result_twice_is_no_race(names):
    found, x = names(COPY), torch.arange(37.0)
    with pytest.raises(WrongAnswer) as caught:
        check_kernel(found["copy_kernel"], {"TILE": 16}, [x], x + 1, launch=found["launch_copy"])
    assert "race" not in str(caught.value)


def test_a_judge_passes_a_right_kernel(verdict):
    assert verdict(COPY, CHECK).name == "passed"


@pytest.mark.parametrize("part", WRONG)
def test_a_judge_finds_what_is_wrong_with_a_kernel(verdict, part):
    other, name = WRONG[part]
    assert part in COPY
    assert verdict(COPY.replace(part, other), CHECK).name == name


def test_a_judge_takes_the_kernel_that_is_bound_last(verdict):
    later = COPY + "\n@triton.jit\ndef copy_kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):\n    pass\n"
    assert verdict(later, CHECK).name == "wrong answer"
    assert verdict(later.replace("copy_kernel", "first", 1) + "\ncopy_kernel = first\n", CHECK).name == "passed"


def test_a_kernel_cannot_take_the_name_of_something_of_pythons_own(verdict):
    answer = COPY.replace("copy_kernel", "__builtins__") + "\ncopy_kernel = __builtins__"
    assert verdict(answer, CHECK).name == "not a kernel"


TEXT = COPY.partition("def copy(")[0]
WRITER = f"def write(change=()):\n    text = {TEXT!r}\n    return text.replace(*change) if change else text\n"
CHECK_WRITTEN = CHECK.replace("copy_kernel,", "grading.written_kernel(write({change}), 'copy_kernel'),")


def test_a_text_is_launched_in_a_notebook_and_by_a_judge(names, verdict):
    found, x = names(WRITER), torch.arange(37.0)
    kernel = written_kernel(found["write"](), "copy_kernel")
    check_kernel(kernel, {"TILE": 16}, [x], x, launch=found["launch_copy"])
    with pytest.raises(WrongAnswer):
        check_kernel(kernel, {"TILE": 16}, [x], x + 1, launch=found["launch_copy"])
    assert verdict(WRITER, CHECK_WRITTEN.replace("{change}", "")).name == "passed"


@pytest.mark.parametrize("part", ["mask=i < size)\n", "tl.load(x_ptr + i, mask=i < size)", "(x_ptr, out_ptr, size,"])
def test_a_judge_finds_what_is_wrong_with_a_text(verdict, part):
    other, name = WRONG[part]
    tests = CHECK_WRITTEN.replace("{change}", repr((part, other)))
    assert verdict(WRITER, tests).name == name


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("tl.program_id(0)", "open('x')"), "uses open"),
        (("@triton.jit", ""), "must have @triton.jit"),
        (
            ("    tl.store", "    y = open(tl)\n    tl.store"),
            r"line \d of copy_kernel .*(?s:.*)of the text: y = open\(tl\)",
        ),
        (("copy_kernel", "other"), "the text defines no function copy_kernel; it defines other"),
        (("tl.program_id(0)", "tl.program_id(0"), r"the text is not Python \(.*\), line \d+: i = tl.program_id\(0"),
        (("@triton.jit", "```python\n@triton.jit"), r"the text is not Python \(invalid syntax\), line \d: ```python"),
        (("import", "import"), ""),
    ],
)
def test_a_text_meets_the_rules_of_every_kernel(names, change, said):
    text = names(WRITER)["write"](change)
    if not said:
        assert written_kernel("import os\nos.abort()\n" + text, "copy_kernel").text.count("os.abort") == 0
        return
    with pytest.raises(NotAKernel, match=said):
        written_kernel(text, "copy_kernel", what="the text")
    with hidden_values(), pytest.raises(NotAKernel) as caught:
        written_kernel(text, "copy_kernel", what="the text")
    assert str(caught.value) == "the text: it is not a kernel that may run; try graphs of your own"


@pytest.mark.parametrize("text", [None, 7, b"def copy_kernel(): pass", ["def"], " " * (MAX_WRITTEN + 1)])
def test_what_is_no_short_text_is_refused(text):
    with pytest.raises(WrongAnswer):
        written_kernel(text, "copy_kernel")


def test_a_judge_gives_the_words_of_no_text_in_a_hidden_test(verdict):
    tests = "### BEGIN HIDDEN TESTS\n" + CHECK_WRITTEN.replace("{change}", repr(("i = tl", "i = seen_12345 + tl")))
    found = verdict(WRITER, tests + "### END HIDDEN TESTS\n")
    assert found.name == "not a kernel"
    assert "12345" not in found.message + found.detail
