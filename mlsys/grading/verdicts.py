"""The verdicts a question can get, what each means to the student, and the exceptions that lead to them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlsys.errors import InvalidValue, UnknownName
from mlsys.grading.timed import Timed

if TYPE_CHECKING:
    from mlsys.grading.error_map import ErrorMap

VERDICTS = {
    "passed": "All tests pass, including the hidden ones. There is nothing left to do here.",
    "wrong answer": "The code runs, but its result is wrong, or right by chance only: work out by hand what it should "
    "be. If the message names an element, which program should have written it? Compare its indices and masks.",
    "out of bounds": "The kernel reached outside a tensor or changed an input: mask every load and store in every "
    "dimension, and check the strides in the address.",
    "not implemented": "There is no answer yet, or a line still raises NotImplementedError: write it and delete that "
    "line, or go on with the other questions.",
    "error": "Python or Triton stopped with an exception: the last line says what happened, and the first line of "
    "your own code says where.",
    "crashed": "The process died, usually because of a wild address: mask every load and store, and check the strides "
    "and the grid.",
    "timed out": "The code did not finish in time: look for a loop whose counter does not change or never reaches its "
    "bound, and for a grid that is far too large.",
    "out of memory": "The code asked for more memory than there is: allocate the result and nothing else of that size.",
    "not a kernel": "The work is not done in a Triton kernel: a library routine or Python code does it instead.",
    "slow": "The result is right, but too slow for full points: change one tile size at a time and measure.",
    "mutants survive": "The tests accept the right function and find some of the wrong ones: for each one that is "
    "not found, think of a case in which it goes wrong, and add that case.",
    "suspicious": "The result was right or fast in a way that we do not expect from honest work; a person will look at "
    "it.",
    "needs review": "A person reads and marks this answer.",
    "needs gpu": "This question is measured on a GPU and waits until it is graded on one; you lose no points.",
}
"""What each verdict means and what to do next, in one sentence or two."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of one question of one submission.

    Attributes:
        name: one of `VERDICTS`.
        fraction: part of the points, 0 to 1. "passed" is always 1; only "slow" and "mutants survive" are between.
        message: what happened, for the student.
        detail: more for a closer look, such as a traceback or timings.
        picture: where the errors of a wrong result are.
        lost: the process was killed from outside or lost with its sandbox, as far as we can tell; try it again.
        timed: the times of a race, shape by shape.
        private: what an exception in a hidden test said, for whoever marks; it may quote the test's inputs.
    """

    name: str
    fraction: float = 0.0
    message: str = ""
    detail: str = ""
    picture: "ErrorMap | None" = None
    lost: bool = False
    timed: tuple[Timed, ...] = ()
    private: str = ""

    def __post_init__(self) -> None:
        if self.name not in VERDICTS:
            raise UnknownName.of("verdict", self.name, VERDICTS)
        share = self.name in ("slow", "mutants survive") and 0 <= self.fraction < 1
        if not share and self.fraction != (self.name == "passed"):
            raise InvalidValue(f"verdict {self.name!r} cannot give {self.fraction} of the points")

    @classmethod
    def passed(cls, message: str = "") -> "Verdict":
        """Return the verdict of a question whose tests all passed."""
        return cls("passed", 1.0, message)

    @classmethod
    def of(cls, error: BaseException) -> "Verdict":
        """Return the verdict for an exception that ended a question's solution or tests.

        >>> Verdict.of(NotImplementedError("write schedule")).name
        'not implemented'
        >>> Verdict.of(AssertionError("3 is not 4")).name
        'wrong answer'
        """
        picture = next((cause.picture for cause in _chain(error) if isinstance(cause, WrongAnswer)), None)
        return cls(_name_of(error), message=_message_of(error), picture=picture)


class GradingError(Exception):
    """An exception that says its verdict; a notebook shows only its message, without a traceback."""

    verdict = "error"

    def _render_traceback_(self) -> list[str]:
        return [f"{self.verdict.upper()}: {self}"]


class WrongAnswer(GradingError, AssertionError):
    """A result that is not what was asked for, or is so by chance only; `picture` shows where."""

    verdict = "wrong answer"

    def __init__(self, message: str = "", picture: "ErrorMap | None" = None) -> None:
        super().__init__(message)
        self.picture = picture


class OutOfBounds(GradingError, AssertionError):
    """An access outside a tensor, or a write into an input."""

    verdict = "out of bounds"


class NotImplementedYet(GradingError, NotImplementedError):
    """An answer that is still to be written."""

    verdict = "not implemented"


class NotAKernel(GradingError):
    """Work that is not done in a Triton kernel."""

    verdict = "not a kernel"


class StillRunning(GradingError):
    """A kernel that does not come to its end."""

    verdict = "timed out"


class Suspicious(GradingError):
    """A result that honest work does not give."""

    verdict = "suspicious"


class NeedsReview(GradingError):
    """An answer that a person marks."""

    verdict = "needs review"


class NeedsGpu(GradingError):
    """A question that this machine cannot measure."""

    verdict = "needs gpu"


def _name_of(error: BaseException) -> str:
    for cause in _chain(error):
        if isinstance(cause, GradingError):
            return cause.verdict
        if isinstance(cause, MemoryError) or type(cause).__name__ == "OutOfMemoryError":  # torch's has no builtin base
            return "out of memory"
        if "CUDA error: out of memory" in str(cause):
            return "out of memory"
        if "illegal memory access" in str(cause):  # how CUDA words a wild address; the process can do no more GPU work
            return "crashed"
        if isinstance(cause, NotImplementedError):
            return "not implemented"
        if isinstance(cause, TimeoutError):
            return "timed out"
    return "wrong answer" if isinstance(error, AssertionError) else "error"


def _chain(error: BaseException) -> list[BaseException]:
    """Return the exception and those that it was raised from: Triton's interpreter wraps the student's own."""
    chain = [error]
    while chain[-1].__cause__ is not None and chain[-1].__cause__ not in chain:
        chain.append(chain[-1].__cause__)
    return chain


def _message_of(error: BaseException) -> str:
    cause = _chain(error)[-1]
    text = str(cause)
    return text if isinstance(cause, GradingError) else f"{type(cause).__name__}: {text}".rstrip(": ")
