"""Test a kernel by launching it from the lab's own code, apart from what the student wrote around it."""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from mlsys.core.cells import PARSE_ERRORS, parse
from mlsys.grading.checks.assertions import assert_close, expected_values_are_shown, shown
from mlsys.grading.kernels.backend import current_backend
from mlsys.grading.kernels.race import Launch
from mlsys.grading.kernels.source import KernelSource, kernel_source
from mlsys.grading.verdicts import GradingError, NotAKernel, WrongAnswer

if TYPE_CHECKING:
    import torch

Result = TypeVar("Result")

DATA_RACE = (
    "A second launch with the same inputs gave different numbers, so there is a race: several programs write the same "
    "element, or one reads what another writes. Let one program write each element, or add with tl.atomic_add."
)
"""Words for a data race of a kernel's programs."""

MAX_WRITTEN = 10_000
"""Longest kernel that a student's function may write, in characters; ten operations take about 1,000."""
MAX_EXCERPT = 120
"""Longest part of a line of such a kernel in a message, in characters."""


def guarded(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function that is called with guard bands around its tensor arguments and the tensors it allocates.

    Args:
        function: takes tensors (any strides) and other values; it may allocate with torch.empty, zeros, ones, full,
            their `_like` and `new_` forms.

    Returns:
        A function with the same arguments and result. It raises `OutOfBounds` after a call that wrote into a guard
        or changed an argument. A judge makes the call where the student's code runs.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Result:
        result: Result = current_backend().call(function, args, kwargs)
        return result

    return call


def written_kernel(text: object, name: str, *, what: str = "the text") -> KernelSource:
    """Return the kernel of a text that a student's function has written, for `check_kernel`.

    The text is data. Of all that it defines, the function `name` and those that it calls are read, and they must meet
    the rules of every kernel; nothing else of it ever runs.

    Args:
        text: Python source.
        name: the `@triton.jit` function in it.
        what: what to call the text in messages.

    Raises:
        WrongAnswer: it is no string, or is longer than `MAX_WRITTEN`.
        NotAKernel: it has no such function, or one that uses more than Triton's language.
    """
    if type(text) is not str:
        raise WrongAnswer(f"{what}: return the kernel's source as a string, got {shown(text)}")
    if len(text) > MAX_WRITTEN:
        raise WrongAnswer(f"{what}: it has {len(text):,} characters, and a kernel may have {MAX_WRITTEN:,}")
    try:
        return kernel_source([text], name)
    except NotAKernel as error:
        # The function that wrote the text has seen a hidden input, and could tell it in the words of a refusal.
        hidden = "it is not a kernel that may run; try graphs of your own"
        said = _why_no_kernel(text, name, f"{error}") if expected_values_are_shown() else hidden
        raise NotAKernel(f"{what}: {said}") from None


def _why_no_kernel(text: str, name: str, said: str) -> str:
    """Say why a text is refused, with the line of the text, counted from its top.

    Args:
        text: the text.
        name: of the function that is asked for.
        said: what the reader of kernels says, which counts lines from the function's first one.
    """
    lines = text.split("\n")
    try:
        body = parse(text).body
    except SyntaxError as error:
        number = error.lineno or 0
        excerpt = f": {lines[number - 1].strip()[:MAX_EXCERPT]}" if 0 < number <= len(lines) else ""
        return f"the text is not Python ({error.msg}), line {number}{excerpt}"
    except PARSE_ERRORS:
        return said
    functions = {node.name: node.lineno for node in body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        return f"the text defines no function {name}; it defines {', '.join(functions) or 'none'}"
    found = re.match(r"line (\d+) of (\w+) ", said)
    if not found or found[2] not in functions:
        return said
    number = functions[found[2]] + int(found[1]) - 1
    return f"{said}\n  This is line {number} of the text: {lines[number - 1].strip()[:MAX_EXCERPT]}"


def check_kernel(
    kernel: Any,
    constants: Mapping[str, int],
    inputs: "Sequence[torch.Tensor]",
    expected: "torch.Tensor",
    *,
    launch: Launch,
    what: str = "result of the kernel",
    tile: tuple[int, int] | None = None,
) -> None:
    """Launch a kernel with guard bands and compare its output.

    Args:
        kernel: a `@triton.jit` function, or what `written_kernel` returns; a judge launches its checked source where no
            other code of the student's runs.
        constants: the kernel's constants, which `launch` passes on.
        inputs: tensors, of any strides.
        expected: the right output, of the shape and dtype that the output gets.
        launch: `launch(kernel, constants, out, *inputs)`, defined in the lab's setup.
        what: what to call the result in the message.
        tile: rows and columns of one program's tile, for the diagnosis.

    Raises:
        NotAKernel: the kernel uses more than Triton's language; the judge gives the same verdict.
        WrongAnswer: the output is wrong.
        OutOfBounds: the kernel wrote outside its output.
    """
    backend = current_backend()
    out = backend.launch(kernel, constants, inputs, expected, launch)
    try:
        assert_close(out, expected, what=what, tile=tile)
    except WrongAnswer as error:
        if _differs(out, lambda: backend.launch(kernel, constants, inputs, expected, launch)):
            raise WrongAnswer(f"{error}\n  {DATA_RACE}", error.picture) from None
        raise


def _differs(out: object, launched: "Callable[[], object]") -> bool:
    """Return whether a second launch gives other numbers; NaNs, never written or read outside, do not count."""
    import torch

    try:
        again = launched()
    except GradingError:
        return False  # such as its time being up: the first result is what counts
    if not (isinstance(out, torch.Tensor) and isinstance(again, torch.Tensor) and out.shape == again.shape):
        return False
    return not torch.equal(out.nan_to_num(), again.nan_to_num())
