"""Sandboxed process that runs a student's cells, then calls what they define.

Entry point of a sandbox's question. Nothing that this process says is trusted, for a student's code shares it.
"""

import sys
from contextlib import suppress
from types import ModuleType
from typing import Any

from mlsys.core.cells import run_cell
from mlsys.core.magics import notebook_names
from mlsys.grading.kernels.guard import call_guarded
from mlsys.judge.sandbox.protocol.channel import Channel
from mlsys.judge.sandbox.protocol.shared_buffer import Tensor
from mlsys.judge.shared.run_cells import MAX_LINES, describe_failure, run_added
from mlsys.judge.shared.untrusted_text import MAX_MESSAGE
from mlsys.judge.shared.values import decode, encode


def serve(channel: Channel) -> None:
    """Answer requests until the judge closes the question."""
    student = StudentCode()
    with suppress(EOFError):
        while True:
            header, arrays = channel.receive()
            results: list[Tensor] = []
            try:
                reply = student.answer(header, arrays, results)
            except BaseException as error:  # a student's code may raise SystemExit or KeyboardInterrupt as well
                reply, results = {"error": student.failure(error)}, []
            try:
                channel.reply(reply, results)
            except ValueError as error:  # beyond the limits of a message
                channel.reply({"error": student.failure(error)})


class StudentCode:
    """State of a student's process: the names that the cells define."""

    def __init__(self) -> None:
        self.module = ModuleType("__main__")
        self.module.__dict__.update(notebook_names())
        self.own: set[str] = set()
        self.notes: list[str] = []
        self.device = "cpu"

    def answer(self, header: dict[str, Any], arrays: list[Tensor], results: list[Tensor]) -> dict[str, Any]:
        """Carry out one request: "run" cells, "get" a value, or "call" a function."""
        if "run" in header:
            return self.run(header)
        names = self.module.__dict__
        name = header["get"] if "get" in header else header["call"]
        if name not in names:
            raise NameError(f"your cells no longer define {name}")
        if "get" in header:
            is_kernel = hasattr(names[name], "fn")  # a triton.jit function is not callable in the interpreter
            if callable(names[name]) or is_kernel:
                return {"kind": "function"}
            return {"value": encode(names[name], results)}
        args = decode(header["args"], arrays, self.device)
        kwargs = decode(header["kwargs"], arrays, self.device)
        function = names[name]
        result = call_guarded(function, args, kwargs) if header["guarded"] else function(*args, **kwargs)
        return {"value": encode(result, results)}

    def failure(self, error: BaseException) -> dict[str, Any]:
        """Describe for the judge what went wrong."""
        try:
            verdict, lines = describe_failure(error, self.own)
        except BaseException:  # an exception of the student's own may fail when it is asked for its text
            return {"verdict": "error", "message": f"{type(error).__name__}, whose text cannot be had", "lines": []}
        lines = [line[:300] for line in (lines + self.notes)[:MAX_LINES]]
        return {"verdict": verdict.name, "message": verdict.message[:MAX_MESSAGE], "lines": lines}

    def run(self, header: dict[str, Any]) -> dict[str, Any]:
        """Run the cells in order; with "noop", kernels that are launched after them do nothing.

        What a student checks in a cell holds with kernels only, so the cells themselves have them.
        """
        sys.modules["__main__"] = self.module
        asked = ModuleType("IPython.core.getipython")  # where `from IPython import get_ipython` has it from
        asked.__dict__.update(notebook_names())
        sys.modules[asked.__name__] = asked
        self.device = header["device"]
        self.own = {cell["label"] for cell in header["run"] if cell["kind"] in ("answer", "added")}
        for cell in header["run"]:
            if cell["kind"] == "added":
                self.notes += run_added(cell, self.module.__dict__)
            else:
                run_cell(cell["source"], cell["label"], self.module.__dict__)
        if header["noop"]:
            disarm_kernels()
        return {}


def disarm_kernels() -> None:
    """Make every kernel launch do nothing, to see what a result is without it."""
    import triton
    from triton.runtime.interpreter import GridExecutor

    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    GridExecutor.__call__ = nothing
    triton.runtime.JITFunction.run = nothing
