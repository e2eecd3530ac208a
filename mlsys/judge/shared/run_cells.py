"""Running cells: the judge runs test cells so, and a question's process the student's."""

import ast
import inspect
import linecache
import traceback
from types import CodeType
from typing import Any

from mlsys.grading.verdicts import Verdict

MAX_LINES = 12
_CANNOT_ALLOCATE = "can't allocate memory"
"""How torch's CPU allocator words a MemoryError."""


def run_cell(source: str, label: str, names: dict[str, Any]) -> object:
    """Run one cell in `names` and return the value of its last expression; `label` names it in tracebacks."""
    # triton.jit reads a kernel's source, which inspect finds here.
    linecache.cache[label] = (len(source), None, source.splitlines(keepends=True), label)
    body = ast.parse(source, label)
    last = body.body[-1] if body.body else None
    if not isinstance(last, ast.Expr):
        _run(body, label, names)
        return None
    _run(ast.Module(body.body[:-1], body.type_ignores), label, names)
    return _run(ast.Expression(last.value), label, names)


def run_added(cell: dict[str, Any], names: dict[str, Any]) -> list[str]:
    """Run the kept statements one by one; one that fails leaves its names undefined and a note."""
    source, label = cell["source"], cell["label"]
    linecache.cache[label] = (len(source), None, source.splitlines(keepends=True), label)
    body = ast.parse(source, label).body
    notes = []
    for index in cell["keep"]:
        try:
            _run(ast.Module([body[index]], []), label, names)
        except (Exception, SystemExit) as error:
            notes.append(f"{label}, line {body[index].lineno} failed: {type(error).__name__}: {error}")
    return notes


def _run(tree: ast.Module | ast.Expression, label: str, names: dict[str, Any]) -> object:
    """Run statements or an expression; as in a notebook, they may await something."""
    mode = "eval" if isinstance(tree, ast.Expression) else "exec"
    code: CodeType = compile(tree, label, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value: object = eval(code, names)
    if code.co_flags & inspect.CO_COROUTINE:
        return _awaited(value)
    return value


def _awaited(coroutine: Any) -> object:
    import asyncio

    class Loop(asyncio.SelectorEventLoop):
        """A loop without the pair of sockets by which threads wake one: a sandbox has none."""

        def _make_self_pipe(self) -> None:
            self._ssock = self._csock = None

        def _close_self_pipe(self) -> None:
            pass

    with asyncio.Runner(loop_factory=Loop) as runner:
        value: object = runner.run(coroutine)
    return value


def describe_failure(error: BaseException, own: set[str]) -> tuple[Verdict, list[str]]:
    """The verdict of an exception, and the lines on its way that stand in the cells labelled `own`."""
    if isinstance(error, RuntimeError) and _CANNOT_ALLOCATE in str(error):
        error = MemoryError(str(error)).with_traceback(error.__traceback__)
    frames: list[traceback.FrameSummary] = []
    if isinstance(error, SyntaxError) and error.filename:
        frames.append(traceback.FrameSummary(error.filename, error.lineno, "<cell>", line=(error.text or "").strip()))
    cause: BaseException | None = error
    while cause is not None:
        frames += traceback.extract_tb(cause.__traceback__)
        cause = cause.__cause__
    lines = [f"{frame.filename}, line {frame.lineno}: {frame.line}" for frame in frames if frame.filename in own]
    return Verdict.of(error), list(dict.fromkeys(lines))[-MAX_LINES:]
