"""Score tests that a student has written: they must accept a right function, and find wrong ones, its mutants.

A judge runs the tests in a sandbox, each time in a new process, on a function whose work is done in another process.
Its order is drawn, and the right function is among the others several times. So nothing but what a function returns
tells tests which one they have.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mlsys.errors import InvalidValue
from mlsys.grading.checks.assertions import expected_values_are_shown
from mlsys.grading.draws import Draws
from mlsys.grading.kernels.backend import current_backend
from mlsys.grading.kernels.source import kernel_source
from mlsys.grading.subjects import Subject
from mlsys.grading.verdicts import Verdict, WrongAnswer

RIGHT_COPIES = 6
"""How often the right kernel is among the mutants: tests that refuse at random meet it too."""
TIMES = 2
"""How often a mutant must be refused to count as found, each time in a new process."""


@dataclass(frozen=True)
class MutationScore:
    """How many mutants tests find.

    Attributes:
        found: what each mutant does that they find, in words.
        survivors: the same of those that they accept.
    """

    found: tuple[str, ...]
    survivors: tuple[str, ...]

    @property
    def fraction(self) -> float:
        """Share of the points."""
        return len(self.found) / (len(self.found) + len(self.survivors))

    @property
    def verdict(self) -> Verdict:
        """Verdict: passed if every mutant is found, a share of the points for some of them, none for none."""
        if not self.found:
            return Verdict("wrong answer", message=str(self))
        return Verdict("mutants survive" if self.survivors else "passed", self.fraction, str(self))

    def __str__(self) -> str:
        count = len(self.found) + len(self.survivors)
        head = f"The tests accept the right function and find {len(self.found)} of {count} wrong ones."
        return "\n".join([head, *(f"Not found: one that {one}." for one in self.survivors)])

    __repr__ = __str__


def score_tests(
    tests: Callable[..., Any],
    *,
    right: Any,
    wrong: Mapping[str, Any],
    call: Callable[..., Any] | None = None,
) -> MutationScore:
    """Run a student's tests on a right function and on wrong ones, and say which of these they find.

    Args:
        tests: the student's function of one argument, the function to test. It refuses a function by an exception, or
            by returning False.
        right: a kernel; or a function of the lab's setup, to show in a notebook what tests are given.
        wrong: what each mutant does, in words that give no mend, such as "is wrong in the last rows"; and how it
            differs from the right kernel: the text that is replaced, which the kernel has once, and the new text.
            Beside a right function, the wrong function itself.
        call: function of the lab's setup that tests are given in place of the kernel: `call(kernel, *arguments)`
            refuses bad arguments with a ValueError, and returns a tensor.

    Raises:
        WrongAnswer: the tests refuse the right function.
        NotImplementedError: the tests are not written yet.
        InvalidValue: the text that a mutant replaces is not in the kernel once.
    """
    if call is None:
        copies, times = 1, 1
        subject, mutants = Subject(right), {said: Subject(function) for said, function in wrong.items()}
    else:
        copies, times = RIGHT_COPIES, TIMES
        text, name = inspect.getsource(right.fn), right.fn.__name__
        subject = Subject(call, kernel_source([text], name))
        mutants = {said: Subject(call, kernel_source([_changed(text, *one)], name)) for said, one in wrong.items()}
    backend, missed = current_backend(), set()
    for said in _drawn_order([""] * copies + [said for said in mutants for _ in range(times)]):
        if said in missed:
            continue
        outcome = backend.try_tests(tests, mutants.get(said, subject), subject)
        if not said and outcome.refused:
            raise WrongAnswer(_refuses_right(outcome.words))
        if said and not (outcome.refused and outcome.could_tell):
            missed.add(said)
    found = tuple(said for said in mutants if said not in missed)
    return MutationScore(found, tuple(said for said in mutants if said in missed))


def _changed(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise InvalidValue(f"{old!r} is {text.count(old)} times in the kernel: a mutant replaces a text that is once")
    return text.replace(old, new)


def _drawn_order(names: list[str]) -> list[str]:
    draw, order = Draws("order of mutants"), []
    while names:
        order.append(names.pop(draw.integer(0, len(names) - 1)))
    return order


def _refuses_right(words: str) -> str:
    """Say that a right function is refused; in a hidden test without the student's own words."""
    said = f" ({words})" if words and expected_values_are_shown() else ""
    return (
        f"The tests refuse a right function{said}, so they give no points. Compare within a tolerance, ask for nothing "
        "that the contract does not promise, and let nothing depend on chance or on earlier runs."
    )
