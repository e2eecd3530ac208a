"""Functions that a student's tests are given: a kernel behind a function of the lab, right or with one mistake.

Tests are a student's function of one argument, the function to test. They refuse it by raising an exception or by
returning False. A kernel under test is always interpreted and inspected, on every device, so that it can do no harm and
the same tests come out the same everywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mlsys.grading.hazards.inspection import Inspected, on_host

if TYPE_CHECKING:
    from mlsys.grading.kernels.source import KernelSource

STOPPED = "the kernel was stopped: it reaches outside a tensor, races, or cannot run with these arguments"
"""What a test is told of a kernel that fails: nothing from which its text could be guessed."""


@dataclass(frozen=True)
class Subject:
    """What is behind a function that tests are given.

    Attributes:
        call: function of the lab's setup that does the work; a kernel is its first argument.
        kernel: the kernel's source; None if `call` needs none.
    """

    call: Callable[..., Any]
    kernel: "KernelSource | None" = None


@dataclass(frozen=True)
class Outcome:
    """What tests say of a function.

    Attributes:
        refused: they raised an exception or returned False.
        could_tell: a call gave them something that the right function does not give for the same arguments. Without
            that, nothing that the function does can be the reason for a refusal.
        words: what they said when they refused it.
    """

    refused: bool
    could_tell: bool
    words: str = ""


@dataclass(frozen=True)
class Called:
    """What a call of a function under test gives: a value, or the words of an error.

    Attributes:
        value: the result; None where there is an error.
        error: what the test is told of the error.
        is_bad_input: the lab's own function refuses the arguments.
        differs: the right function gives something else for the same arguments.
    """

    value: Any = None
    error: str = ""
    is_bad_input: bool = False
    differs: bool = False

    def given(self) -> Any:
        """Return the value, or raise the error, as the function under test does.

        Raises:
            ValueError: the arguments are refused.
            RuntimeError: the kernel fails.
        """
        if self.error:
            raise ValueError(self.error) if self.is_bad_input else RuntimeError(self.error)
        return self.value


Making = Callable[["KernelSource"], Any]
"""Makes a kernel that Triton can run from its source."""


def called(subject: Subject, args: tuple[Any, ...], kwargs: Mapping[str, Any], make: Making) -> Called:
    """Call a function, and return its result or what went wrong.

    Args:
        subject: what is behind the function.
        args: arguments, with tensors in host memory.
        kwargs: arguments by name.
        make: makes a kernel of its source.

    Raises:
        MemoryError: the arguments are too large to work with.
    """
    kernel = () if subject.kernel is None else (Inspected(make(subject.kernel)),)
    try:
        return Called(subject.call(*kernel, *args, **kwargs))
    except MemoryError:
        raise
    except (ValueError, TypeError) as error:
        return Called(error=f"{error}", is_bad_input=True)
    except Exception as error:
        return Called(error=f"the function failed: {type(error).__name__}" if subject.kernel is None else STOPPED)


def compared(found: Called, expected: Called) -> Called:
    """Return what a function gave, with whether the right function gave something else for the same arguments."""
    same = found.error == expected.error and _is_same(found.value, expected.value)
    return replace(found, differs=not same)


def _is_same(one: object, other: object) -> bool:
    """Return whether two results are the same, bit for bit; all NaNs count as one."""
    import torch

    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return type(one) is type(other) and one == other
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | ((one != one) & (other != other))).all())


def is_refusal(returned: object) -> bool:
    """Return whether tests refuse a function by what they return: False, also as a tensor of one element.

    >>> is_refusal(False), is_refusal(None), is_refusal(0)
    (True, False, False)
    """
    import torch

    if isinstance(returned, torch.Tensor):
        return returned.dtype == torch.bool and returned.numel() == 1 and not bool(returned)
    return returned is False


def try_here(tests: Callable[..., Any], subject: Subject, right: Subject, make: Making) -> Outcome:
    """Run tests on a function in this process, as a notebook does.

    Raises:
        NotImplementedError: the tests are not written yet.
    """
    import torch

    told = []

    def function(*args: Any, **kwargs: Any) -> Any:
        devices = [one.device for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
        host = dict(zip(kwargs, on_host(list(kwargs.values())), strict=True))
        expected, found = (called(one, tuple(on_host(args)), host, make) for one in (right, subject))
        result = compared(found, expected)
        told.append(result.differs)
        value = result.given()
        return value.to(devices[0]) if isinstance(value, torch.Tensor) and devices else value

    try:
        refused, words = is_refusal(tests(function)), "they returned False"
    except NotImplementedError:
        raise
    except Exception as error:
        refused, words = True, f"{type(error).__name__}: {error}".rstrip(": ")
    return Outcome(refused, any(told), words if refused else "")
