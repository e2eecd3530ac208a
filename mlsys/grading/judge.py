"""Grade one question of one submission: test cells run here, where they can be trusted, the student's code over there.

A test cell is ordinary Python. Names that the lab's setup defines are the judge's own; names that only answers can
define are values fetched from the student's process, or proxies whose calls run there, inside a sandbox. What comes
back is data, copied and checked, so a student's code cannot read a test, skip it, patch an assertion or the clock, or
say how it came out.
"""

import builtins
import contextlib
import io
import os
import re
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from mlsys.grading import checks
from mlsys.grading.device import JUDGE_VARIABLE
from mlsys.grading.draws import SEED_VARIABLE
from mlsys.grading.gpu_turns import GpuTurns
from mlsys.grading.program import describe_failure, run_cell
from mlsys.grading.proxy import Proxy
from mlsys.grading.session import FUNCTION, Program, Session, StudentFailed
from mlsys.grading.slot.arena import Tampered
from mlsys.grading.slot.sandbox import SandboxError
from mlsys.grading.slot.slot import Slot
from mlsys.grading.student_code import used_names
from mlsys.grading.student_words import own_lines, printable, without_inputs
from mlsys.grading.verdicts import NotAKernel, Suspicious, Verdict

_MARKER = re.compile(r"^[ \t]*### (BEGIN|END) HIDDEN TESTS[ \t]*$", re.MULTILINE)


def judge(
    slot: Slot,
    program: Program,
    tests: str,
    label: str,
    *,
    device: str,
    seed: int,
    turns: GpuTurns | None = None,
) -> Verdict:
    """Run the tests of a question against a student's code.

    Args:
        slot: where the student's code runs.
        program: the cells of the question.
        tests: the test cell, visible and hidden tests with their markers.
        label: what to call it in messages.
        device: "cpu" or "cuda", where kernels run in the slot.
        seed: what hidden tests draw their inputs from.
        turns: on "cuda", the lock whose turn this question holds; a timing asks it for the whole GPU.

    Raises:
        SandboxError: the slot cannot be started again.
    """
    session = Session(slot, program, device, turns)
    hidden = False
    try:
        with _trusted_names(program.setup, seed) as names:
            session.run()
            for name in _names_of_answers(tests, names):
                value = session.value(name)
                names[name] = Proxy(name, session.call, session) if value is FUNCTION else value
            value = None
            for hidden, text in segments(tests):
                with checks.hidden_values() if hidden else contextlib.nullcontext():
                    value = run_cell(text, label, names)
            _check_that_kernels_did_it(session)
            return _verdict_of(value)
    except Tampered as error:
        return Verdict.of(Suspicious(f"The process answered as no honest one does: {error}."))
    except SandboxError:
        raise  # no student's fault
    except Exception as error:
        verdict, lines = describe_failure(error, {label})
        message, said = verdict.message, list(error.lines) if isinstance(error, StudentFailed) else []
        if hidden and isinstance(error, StudentFailed) and error.own_words:
            message, said = without_inputs(message, verdict.name), own_lines(said, program.cells)
        message = printable(message) + _place(verdict, lines, hidden)
        lost = isinstance(error, StudentFailed) and error.lost
        return replace(verdict, message=message, detail=printable("\n".join(said)), lost=lost)
    finally:
        session.close()


_SAID_BY_ITSELF = ("needs gpu", "needs review", "not implemented", "not a kernel", "suspicious", "slow")


def _place(verdict: Verdict, lines: Sequence[str], hidden: bool) -> str:
    """Which test it was, as far as a student may know."""
    if verdict.name in _SAID_BY_ITSELF or not lines:
        return ""
    return "\nIn a hidden test." if hidden else f"\nIn the test `{lines[-1].split(': ', 1)[1]}`."


def _verdict_of(value: object) -> Verdict:
    """The verdict of a test cell that ran to its end: its last value says it, or it passed."""
    verdict = getattr(value, "verdict", None)
    return verdict if isinstance(verdict, Verdict) else Verdict.passed()


@contextlib.contextmanager
def _trusted_names(setup: Sequence[Any], seed: int) -> Iterator[dict[str, Any]]:
    """The names that the lab's setup defines, run afresh, with the seed of this run and what it prints thrown away."""
    import torch

    torch.manual_seed(seed)  # for a test that draws without `Draws`
    settings = {SEED_VARIABLE: str(seed), JUDGE_VARIABLE: "1"}
    before = {name: os.environ.get(name) for name in settings}
    os.environ |= settings
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for cell in setup:
                run_cell(cell["source"], cell["label"], names)
            yield names
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _names_of_answers(tests: str, trusted: dict[str, Any]) -> list[str]:
    r"""Names that the tests read and that neither the setup, nor Python, nor the tests themselves define.

    >>> _names_of_answers("for x in range(3):\n    check(double(x), SIZE)", {"check": None})
    ['SIZE', 'double']
    """
    own = {symbol.get_name() for symbol in symtable.symtable(tests, "tests", "exec").get_symbols() if _is_bound(symbol)}
    return sorted(used_names(tests) - own - set(trusted) - set(dir(builtins)))


def _is_bound(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def segments(source: str) -> list[tuple[bool, str]]:
    r"""The visible and the hidden parts of a test cell in order; line numbers stay as they are in the whole.

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
    """Replay guarded calls with kernels that do nothing: a result that is the same was not made by a kernel.

    This is evidence against mistakes and plain shortcuts and no proof, for it runs in the student's process. Proof is
    a test that launches the kernel itself, `grading.check_kernel`.

    Raises:
        NotAKernel: the result is the same.
        StudentFailed: the replay was lost with its slot.
    """
    import torch

    for name, (args, kwargs, result) in session.guarded_calls.items():
        if not isinstance(result, torch.Tensor) or result.numel() == 0:
            continue
        try:
            again = session.call_without_kernels(name, args, kwargs)
        except StudentFailed as error:
            if error.lost:
                raise  # nothing is known yet
            continue  # it cannot even run without them
        if isinstance(again, torch.Tensor) and again.shape == result.shape and torch.equal(again, result):
            raise NotAKernel(f"{name} gives the same result when kernels do nothing, so no kernel makes it.")
