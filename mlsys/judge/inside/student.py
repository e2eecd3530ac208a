"""Sandboxed process that runs a student's cells, then calls what they define.

Entry point of a process in a sandbox. Nothing that this process says is trusted, because a student's code runs in it.
"""

import sys
from contextlib import suppress
from types import ModuleType
from typing import Any, assert_never, get_args

from mlsys.core.cells import run_cell
from mlsys.core.magics import notebook_names
from mlsys.grading.kernels.guard import call_guarded
from mlsys.grading.subjects import Called
from mlsys.judge.sandbox.protocol.channel import Channel
from mlsys.judge.sandbox.protocol.shared_buffer import Tensor
from mlsys.judge.shared.messages import (
    Answer,
    CallFunction,
    CallSubject,
    Cell,
    Done,
    Failure,
    GetValue,
    IsFunction,
    Message,
    RunCells,
    RunTests,
    StudentRequest,
    Value,
    header_of,
    read_header,
)
from mlsys.judge.shared.run_cells import MAX_LINES, describe_failure, run_added
from mlsys.judge.shared.untrusted_text import MAX_MESSAGE
from mlsys.judge.shared.values import decode, encode


def serve(channel: Channel) -> None:
    """Answer requests until the judge closes the process."""
    student = StudentCode(channel)
    with suppress(EOFError):
        while True:
            header, arrays = channel.receive()
            results: list[Tensor] = []
            reply: Message
            try:
                reply = student.answer(read_header(header, *get_args(StudentRequest)), arrays, results)
            except BaseException as error:  # a student's code may raise SystemExit or KeyboardInterrupt as well
                reply, results = student.failure(error), []
            try:
                channel.reply(header_of(reply), results)
            except ValueError as error:  # beyond the limits of a message
                channel.reply(header_of(student.failure(error)))


class StudentCode:
    """State of a student's process: the names that the cells define."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.module = ModuleType("__main__")
        self.module.__dict__.update(notebook_names())
        self.own: set[str] = set()
        self.notes: list[str] = []
        self.device = "cpu"

    def answer(self, request: StudentRequest, arrays: list[Tensor], results: list[Tensor]) -> Message:
        """Carry out one request; tensors of the reply go into `results`."""
        match request:
            case RunCells():
                self.run(request.cells, request.device)
                if request.without_kernels:
                    disarm_kernels()
                return Done()
            case GetValue():
                value = self.bound(request.name)
                # A triton.jit function is not callable in the interpreter.
                return IsFunction() if callable(value) or hasattr(value, "fn") else Value(encode(value, results))
            case CallFunction():
                function = self.bound(request.name)
                args = decode(request.args, arrays, self.device)
                kwargs = decode(request.kwargs, arrays, self.device)
                result = call_guarded(function, args, kwargs) if request.guarded else function(*args, **kwargs)
                return Value(encode(result, results))
            case RunTests():
                return Value(encode(self.bound(request.name)(self.function_under_test), results))
            case Answer():
                raise RuntimeError("an answer to nothing")
            case _:
                assert_never(request)

    def function_under_test(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function under test: its work is done in another process, and the judge is in between.

        Raises:
            ValueError: the lab's own function refuses the arguments.
            RuntimeError: the kernel fails.
        """
        arrays: list[Tensor] = []
        question = CallSubject(encode(args, arrays), encode(kwargs, arrays))
        self.channel.reply(header_of(question), arrays)
        header, arrays = self.channel.receive()
        answer = read_header(header, Answer)
        return Called(decode(answer.value, arrays, self.device), answer.error, answer.is_bad_input).given()

    def bound(self, name: str) -> Any:
        """Return what the cells bind to a name."""
        if name not in self.module.__dict__:
            raise NameError(f"your cells no longer define {name}")
        return self.module.__dict__[name]

    def failure(self, error: BaseException) -> Failure:
        """Describe for the judge what went wrong."""
        try:
            verdict, lines = describe_failure(error, self.own)
        except BaseException:  # an exception of the student's own may fail when it is asked for its text
            return Failure("error", f"{type(error).__name__}, whose text cannot be read", [])
        lines = [line[:300] for line in (lines + self.notes)[:MAX_LINES]]
        return Failure(verdict.name, verdict.message[:MAX_MESSAGE], lines)

    def run(self, cells: list[Cell], device: str) -> None:
        """Run the cells in order.

        A student's own checks in a cell pass only with kernels, so the cells themselves always have them.
        """
        sys.modules["__main__"] = self.module
        asked = ModuleType("IPython.core.getipython")  # where `from IPython import get_ipython` has it from
        asked.__dict__.update(notebook_names())
        sys.modules[asked.__name__] = asked
        self.device = device
        self.own = {cell.label for cell in cells if cell.kind in ("answer", "added")}
        for cell in cells:
            if cell.kind == "added":
                self.notes += run_added(cell, self.module.__dict__)
            else:
                run_cell(cell.source, cell.label, self.module.__dict__)


def disarm_kernels() -> None:
    """Make every kernel launch do nothing, to see the result without it."""
    import triton
    from triton.runtime.interpreter import GridExecutor

    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    GridExecutor.__call__ = nothing
    triton.runtime.JITFunction.run = nothing
