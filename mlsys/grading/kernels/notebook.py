"""Check the kernels of a notebook as a judge does: they use only Triton's language."""

import inspect
import linecache
import sys
from collections.abc import Sequence
from typing import Any

from mlsys.grading.kernels.source import kernel_source


def check_source(kernel: Any) -> None:
    """Make sure that a kernel in a notebook uses only Triton's language, as a judge does.

    The judge reads the cells of the submitted notebook. This function reads the cells that were run, or, without a
    notebook, the file that defines the kernel.

    Raises:
        NotAKernel: it uses more; the message is the same as the judge's.
    """
    function = _python_function(kernel)
    if function is not None:
        kernel_source(_cells_of(function), _name_of(kernel, function))


def _name_of(kernel: Any, function: Any) -> str:
    """Return the name that the notebook gives to a kernel; with `kernel = triton.jit(f)` it is not the function's."""
    names = [name for name, value in function.__globals__.items() if value is kernel]
    own: str = function.__name__
    return own if own in names or not names else names[-1]


def _python_function(kernel: Any) -> Any:
    """Return the Python function inside a kernel, under its decorators."""
    for _ in range(10):
        if inspect.isfunction(kernel):
            return kernel
        kernel = getattr(kernel, "fn", None)
    return None


def _cells_of(function: Any) -> Sequence[str]:
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    if shell is not None:
        return [str(cell) for cell in shell.user_ns.get("In", ())]
    return ["".join(linecache.getlines(function.__code__.co_filename))]
