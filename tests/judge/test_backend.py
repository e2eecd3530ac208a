"""Who decides where a test's calls and launches run: the judge, and nothing that a student has made."""

import pytest
import torch
from helpers.judging import COPY

from mlsys.grading.kernels.backend import LocalBackend, current_backend, use_backend

GUARDED = "x = torch.arange(20.)\ngrading.assert_close(grading.guarded(copy)(x), x)"
CHECK = "x = torch.arange(20.)\ngrading.check_kernel(copy_kernel, {'TILE': 16}, [x], x, launch=launch_copy)"
SPEED = """
grading.speed(copy_kernel, lambda shape, dtype: {"TILE": 16}, shapes=[(64,)], expected=torch.clone, launch=launch_copy,
              inputs=lambda draws, shape, dtype: (torch.ones(shape),))
"""
UNMASKED = COPY.replace("mask=i < size)\n", ")\n")
OTHER_BACKEND = """
from mlsys.grading.kernels import backend, guard
class Blind:
    def call(self, function, args, kwargs): return function(*args, **kwargs)
    def launch(self, kernel, constants, inputs, like, launch): return like
    def race(self, kernel, setup): raise SystemExit
backend._current.set(Blind())
backend.current_backend = lambda: Blind()
"""


def test_a_notebook_has_a_backend_of_its_own():
    assert isinstance(current_backend(), LocalBackend)


def test_another_backend_is_in_place_only_meanwhile():
    other = LocalBackend()

    def fails():
        assert current_backend() is other
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), use_backend(other):
        fails()
    assert current_backend() is not other


@pytest.mark.parametrize("tests", [GUARDED, CHECK])
def test_a_backend_that_a_student_puts_in_place_decides_nothing(verdict, tests):
    assert verdict(OTHER_BACKEND + COPY, tests).name == "passed"
    assert verdict(OTHER_BACKEND + UNMASKED, tests).name == "out of bounds"
    assert isinstance(current_backend(), LocalBackend)


@pytest.mark.parametrize("value", ["5", "'copy'", "None", "[1]", "torch.ones(3)"])
def test_a_plain_value_in_place_of_a_function_or_a_kernel_never_runs_in_the_judge(verdict, value):
    found = verdict(f"copy = {value}", GUARDED)
    assert (found.name, "not callable" in found.message) == ("error", True)
    for tests in (CHECK, SPEED):
        found = verdict(f"copy_kernel = {value}", tests)
        assert (found.name, "@triton.jit" in found.message) == ("not a kernel", True)


def test_a_race_refuses_what_is_no_kernel_before_it_asks_for_a_gpu(verdict):
    assert verdict(COPY, SPEED).name == "needs gpu"
    assert verdict("copy_kernel = torch.clone", SPEED).name == "not a kernel"


def test_a_test_cannot_launch_a_students_kernel_itself(verdict):
    found = verdict(COPY, "copy_kernel[(1,)](torch.ones(3), torch.ones(3), 3, TILE=16)")
    assert "a test cannot launch copy_kernel" in found.message


def test_guards_are_those_of_the_students_process(verdict):
    """A function of the judge's own is no student's, and tests have no reason to guard it."""
    assert verdict(COPY, "grading.guarded(torch.clone)(torch.ones(3))").name == "error"
    assert torch.equal(LocalBackend().call(torch.clone, (torch.ones(3),), {}), torch.ones(3))
