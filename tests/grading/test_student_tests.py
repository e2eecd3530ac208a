"""Tests that a student writes, scored in a notebook: in this process, without a judge."""

import re

import pytest
import torch
import triton
import triton.language as tl

from mlsys.errors import InvalidValue
from mlsys.grading.student_tests import RIGHT_COPIES, TIMES, MutationScore, score_tests
from mlsys.grading.subjects import STOPPED, is_refusal
from mlsys.grading.verdicts import WrongAnswer


@triton.jit
def double_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < size
    x = tl.load(x_ptr + index, mask=inside, other=0.0)
    y = 2 * x
    tl.store(y_ptr + index, y, mask=inside)


def call_double(kernel, x):
    if x.dtype != torch.float32:
        raise ValueError(f"x is {x.dtype}: give float32")
    y = torch.full_like(x, float("nan"))
    kernel[(triton.cdiv(x.numel(), 4),)](x, y, x.numel(), BLOCK=4)
    return y


WRONG = {
    "is wrong at a ragged end": ("index < size", "index < size // BLOCK * BLOCK"),
    "writes past the end": ("index < size", "index < size + 1"),
    "is wrong for negative numbers": ("y = 2 * x", "y = 2 * tl.abs(x)"),
}


def scored(tests):
    return score_tests(tests, call=call_double, right=double_kernel, wrong=WRONG)


def compares(sizes, numbers=torch.arange):
    """Tests that compare with PyTorch for some sizes."""

    def tests(double):
        for size in sizes:
            x = numbers(size).float()
            assert torch.equal(double(x), 2 * x)

    return tests


@pytest.mark.parametrize(
    ("tests", "found"),
    [
        (compares([8]), []),
        (compares([8], lambda size: -torch.arange(size)), ["is wrong for negative numbers"]),
        (compares([7]), ["is wrong at a ragged end", "writes past the end"]),
        (compares([7, 8], lambda size: 3 - torch.arange(size)), list(WRONG)),
    ],
)
def test_the_mutants_are_found_whose_fault_shows_in_a_call(tests, found):
    score = scored(tests)
    assert list(score.found) == found
    assert set(score.survivors) == set(WRONG) - set(found)
    assert score.fraction == len(found) / 3
    assert score.verdict.name == {0: "wrong answer", 3: "passed"}.get(len(found), "mutants survive")
    assert score.verdict.fraction == score.fraction


def test_survivors_are_told_by_what_they_do_and_not_by_their_text():
    told = str(scored(compares([8])).verdict.message)
    assert "find 0 of 3 wrong ones.\nNot found: one that is wrong at a ragged end." in told
    assert not re.search(r"index|mask|BLOCK|size", told)


def test_a_refusal_of_the_right_kernel_gives_nothing():
    def strict(double):
        return double(torch.ones(4)).sum().item() == 9

    with pytest.raises(WrongAnswer, match=r"refuse a right function \(they returned False\), so they give no points"):
        scored(strict)


def test_tests_that_are_not_written_are_no_refusal():
    def starter(double):
        raise NotImplementedError("test_double")

    with pytest.raises(NotImplementedError, match="test_double"):
        scored(starter)


def test_a_refusal_without_a_call_that_could_tell_finds_nothing():
    """Refuse the one or the other of two runs, of which one is with the right function."""
    wrong = {"never differs": lambda x: x + x}
    outcomes = []
    for refused in (1, 2):
        runs = []

        def tests(double, runs=runs, refused=refused):
            runs.append(double(torch.arange(4.0)))
            return len(runs) != refused

        try:
            outcomes.append(score_tests(tests, right=lambda x: 2 * x, wrong=wrong).found)
        except WrongAnswer:
            outcomes.append("the right one was refused")
    assert sorted(outcomes, key=str) == [(), "the right one was refused"]


def test_each_mutant_and_the_right_kernel_come_several_times():
    runs = []

    def tests(double):
        runs.append(None)
        compares([7], lambda size: 3 - torch.arange(size))(double)

    scored(tests)
    assert len(runs) == RIGHT_COPIES + TIMES * len(WRONG)
    assert RIGHT_COPIES >= 6
    assert TIMES >= 2


def test_bad_input_and_a_stopped_kernel_are_told_apart_and_show_no_text():
    told = []

    def tests(double):
        for x in (torch.ones(3, dtype=torch.float64), torch.ones(5)):
            try:
                double(x)
            except Exception as error:
                told.append((type(error), str(error)))
        return True

    scored(tests)
    assert set(told) == {(ValueError, "x is torch.float64: give float32"), (RuntimeError, STOPPED)}


def test_a_mutant_whose_text_is_not_in_the_kernel_once_is_an_error_of_the_lab():
    for old in ("index", "no such text"):
        with pytest.raises(InvalidValue, match="is [02-9] times in the kernel"):
            score_tests(compares([7]), call=call_double, right=double_kernel, wrong={"x": (old, "y")})


@pytest.mark.parametrize(
    ("returned", "refused"),
    [
        *((value, True) for value in (False, torch.tensor(False), torch.tensor([False]))),
        *((value, False) for value in (True, None, 0, "", torch.tensor(0), torch.zeros(2, dtype=torch.bool))),
    ],
)
def test_false_refuses_and_nothing_else_that_is_returned(returned, refused):
    assert is_refusal(returned) == refused


def test_a_score_in_words():
    assert str(MutationScore(("does a",), ())) == "The tests accept the right function and find 1 of 1 wrong ones."
