"""Run the cells of a notebook, and describe their failures."""

import ast
import errno
import linecache
import traceback
from typing import Any

from mlsys.core.cells import run_code
from mlsys.grading.hazards.finding import line_in_cell
from mlsys.grading.verdicts import Verdict
from mlsys.judge.shared.messages import Cell

MAX_LINES = 12
_CANNOT_ALLOCATE = "can't allocate memory"
"""Text by which torch's CPU allocator reports that memory is full."""
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_ROOM_FOR_FILES = (
    "The files of your answer, with those that the compiler writes for it, filled the folder that they may use. A "
    "kernel that the compiler unrolls very often is the usual reason."
)


def run_added(cell: Cell, names: dict[str, Any]) -> list[str]:
    """Run the kept statements one by one; one that fails leaves its names undefined and a note."""
    source, label = cell.source, cell.label
    linecache.cache[label] = (len(source), None, source.splitlines(keepends=True), label)
    body = ast.parse(source, label).body
    notes = []
    for index in cell.keep:
        try:
            run_code(ast.Module([body[index]], []), label, names)
        except (Exception, SystemExit) as error:
            notes.append(f"{label}, line {body[index].lineno} failed: {type(error).__name__}: {error}")
    return notes


def describe_failure(error: BaseException, own: set[str]) -> tuple[Verdict, list[str]]:
    """Return the verdict of an exception, and the lines of its traceback that are in the cells labelled `own`."""
    if isinstance(error, RuntimeError) and _CANNOT_ALLOCATE in str(error):
        error = MemoryError(str(error)).with_traceback(error.__traceback__)
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        error = MemoryError(_NO_ROOM_FOR_FILES).with_traceback(error.__traceback__)
    frames: list[traceback.FrameSummary] = []
    if isinstance(error, SyntaxError) and error.filename:
        frames.append(traceback.FrameSummary(error.filename, error.lineno, "<cell>", line=(error.text or "").strip()))
    cause: BaseException | None = error
    while cause is not None:
        frames += traceback.extract_tb(cause.__traceback__)
        cause = cause.__cause__
    lines = [
        f"{frame.filename}, line {line_in_cell(frame.filename, frame.lineno or 0)}: {_text(frame)}"
        for frame in frames
        if frame.filename in own
    ]
    return Verdict.of(error), list(dict.fromkeys(lines))[-MAX_LINES:]


def _text(frame: traceback.FrameSummary) -> str:
    """Return the text of a frame's line, in one line with those that follow if its expression goes on there."""
    first = frame.lineno or 0
    last = min(frame.end_lineno or first, first + MAX_LINES)
    following = (linecache.getline(frame.filename, line).strip() for line in range(first + 1, last + 1))
    return " ".join([frame.line or "", *following]).strip()
