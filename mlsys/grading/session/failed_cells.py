"""Cells of a notebook whose last run ended with an exception, told by the names that they define.

A notebook goes on after such a cell: what stood above the line that failed is defined, and a right kernel with a
forgotten `raise` below it passes its tests. A judge runs the answer's cell whole, and gives nothing.
"""

import re
from functools import cache
from typing import Any

from mlsys.grading.session.answers import defined_names
from mlsys.grading.session.notebook import find_shell, has_tests
from mlsys.grading.verdicts import GradingError

_NAME = re.compile(r"\b[A-Za-z_]\w*")


class FailedCells:
    """The names defined by cells that failed, each with what the exception of its cell's last run said.

    The exception itself is not kept: it would hold the tensors of all frames that it went through.
    """

    def __init__(self) -> None:
        self.errors: dict[str, str] = {}
        self.running = ""

    def watch(self, shell: Any) -> None:
        """Note from now on how each cell of a notebook ends."""
        shell.events.register("pre_run_cell", self.begin)
        shell.events.register("post_run_cell", self.end)

    def begin(self, info: Any) -> None:
        """Note the text of the cell that runs."""
        self.running = str(getattr(info, "raw_cell", ""))

    def end(self, result: Any) -> None:
        """Note how it ended; a cell of tests defines no answer."""
        source, self.running = self.running, ""
        if has_tests(source):
            return
        error = result.error_before_exec or result.error_in_exec
        for name in defined_names(source):
            self.errors.pop(name, None)
            if error is not None:
                self.errors[name] = f"{type(error).__name__}: {error}".rstrip(": ")

    def check(self) -> None:
        """Raise if the cell that runs names what a failed cell defines.

        Raises:
            GradingError: it does; the message has the name and the exception.
        """
        own = set(defined_names(self.running))
        for name in _NAME.findall(self.running):
            if name in self.errors and name not in own:
                raise GradingError(
                    f"the visible tests pass, but the cell that defines {name} ended with {self.errors[name]}. An "
                    "answer counts only if its cell runs to its end: mend or delete the line that raises, and run both "
                    "cells again."
                )


def watch_cells() -> FailedCells:
    """Return the failed cells of this notebook, which are noted from the first call on; in a judge there are none."""
    shell = find_shell()
    return FailedCells() if shell is None else _of(shell)


@cache
def _of(shell: Any) -> FailedCells:
    failed = FailedCells()
    failed.watch(shell)
    return failed
