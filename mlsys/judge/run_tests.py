"""Run a question's test cells in the judge, where they can be trusted; the student's code runs in a sandbox.

A test cell is ordinary Python. Names that the lab's setup defines are trusted; names that only answers can define are
values from the student's process, or functions whose calls run there, inside a sandbox. The results are data, copied
and checked, so a student's code cannot read a test, skip it, patch an assertion or the clock, or decide its verdict.
"""

import builtins
import contextlib
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from mlsys.core.cells import free_names, run_cell
from mlsys.grading.checks import assertions
from mlsys.grading.checks.tolerances import is_close
from mlsys.grading.device import JUDGE_VARIABLE
from mlsys.grading.draws import SEED_VARIABLE, torch_seed
from mlsys.grading.kernels.backend import use_backend
from mlsys.grading.verdicts import GradingError, NotAKernel, Suspicious, Verdict, WrongAnswer
from mlsys.judge.backend import SessionBackend, StudentFunction
from mlsys.judge.gpu_lock import GpuLock
from mlsys.judge.sandbox.host.sandbox import Sandbox
from mlsys.judge.sandbox.protocol.places import SandboxError
from mlsys.judge.sandbox.protocol.shared_buffer import Tampered
from mlsys.judge.session import FUNCTION, GuardedCall, QuestionCells, Session, StudentFailed
from mlsys.judge.shared.messages import Cell
from mlsys.judge.shared.run_cells import DISK_FULL, describe_failure
from mlsys.judge.shared.untrusted_text import exception_kind, own_lines, printable, without_inputs, without_texts

MAX_ITEMS_OF_TENSOR = 100_000
"""Most elements of a tensor of which a test may make a list: each takes 600 bytes and 3 us, and its text 50 us."""

_MARKER = re.compile(r"^[ \t]*### (BEGIN|END) HIDDEN TESTS[ \t]*$", re.MULTILINE)


def judge(
    sandbox: Sandbox,
    cells: QuestionCells,
    tests: str,
    label: str,
    *,
    device: str,
    seed: int,
    gpu_lock: GpuLock | None = None,
) -> Verdict:
    """Run the tests of a question against a student's code.

    Args:
        sandbox: where the student's code runs.
        cells: the cells of the question.
        tests: the test cell: visible and hidden tests with their markers.
        label: name of the test cell in messages.
        device: "cpu" or "cuda", where kernels run in the sandbox.
        seed: seed of the random inputs of hidden tests.
        gpu_lock: on "cuda", the lock that this question shares with others; a timing holds it exclusively.

    Raises:
        SandboxError: the sandbox cannot be started again.
    """
    session = Session(sandbox, cells, device, gpu_lock)
    hidden = secret = False  # in a hidden test; after the first of them, for a student's process remembers its inputs
    try:
        with _trusted_names(cells.setup, seed) as names, use_backend(SessionBackend(session)), _short_lists():
            session.run()
            for name in _names_of_answers(tests, names):
                value = session.value(name)
                names[name] = StudentFunction(name, session) if value is FUNCTION else value
            value = None
            for hidden, text in segments(tests):
                session.keeps_words = secret = secret or hidden
                with assertions.hidden_values() if hidden else contextlib.nullcontext():
                    value = run_cell(text, label, names, whole=tests)
            _check_that_kernels_did_it(session)
            return _verdict_of(value)
    except SandboxError:
        raise  # no student's fault
    except Exception as error:
        if isinstance(error, OSError) and error.errno in DISK_FULL:  # of this process, so no student's fault either
            raise SandboxError(
                f"The disk of this machine is full ({error}). Free some space and grade again."
            ) from error
        if isinstance(error, Tampered):
            error = Suspicious(f"{_DISHONEST}: {error}.")
        verdict, lines = describe_failure(error, {label})
        said = list(error.lines) if isinstance(error, StudentFailed) else []
        message, private = verdict.message, ""
        if secret:
            private = printable("\n".join([message, *said]))
            message = without_texts(_without_inputs(error, verdict), session.words, verdict.name)
            said = own_lines(said, cells.all)
        message = printable(message) + _place(verdict, lines, hidden)
        lost = isinstance(error, StudentFailed) and error.lost
        return replace(verdict, message=message, detail=printable("\n".join(said)), private=private, lost=lost)
    finally:
        session.close()


_DISHONEST = "The process answered in a way that an honest one does not"


def _without_inputs(error: Exception, verdict: Verdict) -> str:
    """Return what a student may read of a failure after hidden tests have begun: nothing that student code can shape.

    Allowed are the messages of a test's own comparison and of the judge, but for the values that they quote, which
    the caller replaces. A Python exception may quote what the student's function returned.
    """
    if isinstance(error, StudentFailed):
        return without_inputs(verdict.message, verdict.name) if error.own_words else verdict.message
    if isinstance(error, GradingError):
        return f"{_DISHONEST}." if verdict.message.startswith(_DISHONEST) else verdict.message
    return verdict.message if isinstance(error, AssertionError) else without_inputs(verdict.message, verdict.name)


_SAID_BY_ITSELF = (
    "needs gpu",
    "needs review",
    "not implemented",
    "not a kernel",
    "suspicious",
    "slow",
    "mutants survive",
)


def _place(verdict: Verdict, lines: Sequence[str], hidden: bool) -> str:
    """Say which test failed, as far as a student may know."""
    if verdict.name in _SAID_BY_ITSELF or not lines:
        return ""
    # The first line is the one in the cell itself, such as `check_add(50, 16, "a ragged end")`.
    return "\nIn a hidden test." if hidden else f"\nIn the test `{lines[0].split(': ', 1)[1]}`."


def _verdict_of(value: object) -> Verdict:
    """Return the verdict of a test cell that ran to its end: that of its last value, or passed."""
    verdict = getattr(value, "verdict", None)
    return verdict if isinstance(verdict, Verdict) else Verdict.passed()


@contextlib.contextmanager
def _trusted_names(setup: Sequence[Cell], seed: int) -> Iterator[dict[str, Any]]:
    """Run the lab's setup with the seed of this run, without its output, and yield the names that it defines."""
    import torch

    torch.manual_seed(torch_seed(seed))  # for a test that draws without `Draws`
    settings = {SEED_VARIABLE: str(seed), JUDGE_VARIABLE: "1"}
    before = {name: os.environ.get(name) for name in settings}
    os.environ |= settings
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = torch._tensor_str.PRINT_OPTS  # torch offers no other way to ask
    # A test may put into words what an answer returned: torch writes out every element of some tensors.
    torch.set_printoptions(threshold=0, edgeitems=1)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for cell in setup:
                run_cell(cell.source, cell.label, names)
            yield names
    finally:
        torch.set_printoptions(threshold=printed.threshold, edgeitems=printed.edgeitems)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _short_lists() -> Iterator[None]:
    """Let a test make no list of a large tensor, which an answer may return where a test asks for a list."""
    import torch

    def refuse(count: int) -> None:
        if count > MAX_ITEMS_OF_TENSOR:
            raise WrongAnswer(
                f"a test makes a list of what was returned, and that is a tensor of {count:,} elements; the limit is "
                f"{MAX_ITEMS_OF_TENSOR:,}"
            )

    def items(tensor: torch.Tensor) -> Any:
        refuse(tensor.shape[0] if tensor.dim() else 0)
        return of_items(tensor)

    def listed(tensor: torch.Tensor) -> Any:
        refuse(tensor.numel())
        return of_lists(tensor)

    of_items: Any = torch.Tensor.__iter__
    of_lists = torch.Tensor.tolist
    torch.Tensor.__iter__, torch.Tensor.tolist = items, listed  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        torch.Tensor.__iter__, torch.Tensor.tolist = of_items, of_lists  # type: ignore[method-assign]


def _names_of_answers(tests: str, trusted: dict[str, Any]) -> list[str]:
    r"""Return the names that tests read and that neither the setup, nor Python, nor the tests themselves define.

    >>> _names_of_answers("for x in range(3):\n    check(double(x), SIZE)", {"check": None})
    ['SIZE', 'double']
    """
    return sorted(free_names(tests) - set(trusted) - set(dir(builtins)))


def segments(source: str) -> list[tuple[bool, str]]:
    r"""Split a test cell into its visible and hidden parts; line numbers stay as they are in the whole cell.

    >>> segments("a\n### BEGIN HIDDEN TESTS\nb\n### END HIDDEN TESTS\nc")
    [(False, 'a\n'), (True, '\n\nb\n'), (False, '\n\n\n\nc')]
    """
    found, start, hidden = [], 0, False
    for mark in _MARKER.finditer(source):
        found.append((hidden, start, mark.start()))
        hidden, start = mark.group(1) == "BEGIN", mark.end() + 1
    found.append((hidden, start, len(source)))
    return [(hidden, "\n" * source[:a].count("\n") + source[a:b]) for hidden, a, b in found if source[a:b].strip()]


def _check_that_kernels_did_it(session: Session) -> None:
    """Replay guarded calls with kernels that do nothing: if a result is the same, no kernel computed it.

    This is evidence against mistakes and plain shortcuts, but no proof, because it runs in the student's process. The
    proof is a test that launches the kernel alone, `grading.check_kernel`.

    Raises:
        NotAKernel: the result of a call is the same.
        StudentFailed: a call cannot be replayed: "suspicious", or lost with its process or its sandbox.
    """
    calls = [call for call in session.guarded_calls if any(map(_is_evidence, _leaves(call.result)))]
    if not calls:
        return
    replayed = session.call_without_kernels(calls)
    for call in calls:
        try:
            again = next(replayed)
        except StudentFailed as error:
            raise _not_replayed(call, error) from None
        if _is_same(again, call.result):
            raise NotAKernel(f"{call.name} gives the same result when kernels do nothing, so no kernel computes it.")


def _not_replayed(call: GuardedCall, error: StudentFailed) -> StudentFailed:
    """Describe a replay that failed; one that was lost, or took too long, may be tried again."""
    if error.lost:
        return error
    slow = error.verdict == "timed out"
    kind = exception_kind(str(error))
    how = "did not end in time" if slow else f"failed with {kind}" if kind else "failed"
    message = (
        f"{call.name} was called again with kernels that do nothing, to check that a kernel computes its result, and "
        f"{how}. A person will look at it. To avoid this, remove from the function any code that checks the kernel's "
        "result or waits for it."
    )
    return StudentFailed("suspicious", message, error.lines, lost=slow)


def _leaves(value: object) -> Iterator[object]:
    """Yield the tensors and plain values of a result."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _is_evidence(leaf: object) -> bool:
    """Return whether a result can show that a kernel computed it; fresh memory may hold the same number everywhere."""
    import torch

    if isinstance(leaf, torch.Tensor):
        if leaf.numel() == 1:
            leaf = leaf.item()
        else:
            return leaf.numel() > 1 and bool((leaf != leaf.flatten()[0]).any())
    return isinstance(leaf, int | float) and leaf not in (0, 1)


def _is_same(again: object, result: object) -> bool:
    """Return whether all evidence in a result is the same again, up to rounding."""
    before, now = list(_leaves(result)), list(_leaves(again))
    return len(before) == len(now) and all(
        _is_same_leaf(other, one) for one, other in zip(before, now, strict=True) if _is_evidence(one)
    )


def _is_same_leaf(again: object, result: object) -> bool:
    import torch

    if isinstance(result, torch.Tensor):
        if not isinstance(again, torch.Tensor) or again.shape != result.shape or again.dtype != result.dtype:
            return False
        return is_close(again, result)
    return type(again) is type(result) and again == result
