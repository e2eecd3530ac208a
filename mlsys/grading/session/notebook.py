"""The notebook that runs this code: its shell, and its text where the front end or a file gives it."""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from mlsys.grading.device import JUDGE_VARIABLE

MAX_NOTEBOOK_BYTES = 50_000_000
"""Largest saved notebook that is read."""

_TESTS = re.compile(r"\bscorecard\.\w")


def has_tests(source: str) -> bool:
    """Say whether a cell is one of the lab's tests, which tell the scorecard how they came out."""
    return _TESTS.search(source) is not None


def find_shell() -> Any:
    """Return the notebook's shell, or None where there is none and in a judge."""
    module = sys.modules.get("IPython")
    if module is None or os.environ.get(JUDGE_VARIABLE):
        return None
    shell = module.get_ipython()
    return shell if hasattr(shell, "events") else None


def in_colab() -> bool:
    """Say whether this notebook runs in Colab."""
    return "google.colab" in sys.modules


def read_notebook(names: Mapping[str, Any]) -> object:
    """Return the notebook as Colab shows it, or as Jupyter or VS Code saved it last; None where neither says."""
    if not in_colab():
        return read_file(notebook_path(names))
    try:
        return ask_colab(5)
    except Exception:  # not a promised interface: without it, callers go on with what they have
        return None


def ask_colab(timeout_s: int) -> object:
    """Return the notebook as Colab shows it now, or None if it does not say; it offers this and promises nothing."""
    reply = import_module("google.colab._message").blocking_request("get_ipynb", timeout_sec=timeout_s)
    return reply.get("ipynb") if reply else None


def notebook_path(names: Mapping[str, Any]) -> Path:
    """Return where Jupyter or VS Code says that the notebook is; an empty path where they do not.

    Args:
        names: what the notebook has defined; VS Code puts its word among it.
    """
    return Path(str(names.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")))


def read_file(path: Path) -> object:
    """Return the notebook in a file, or None where it is none, too large, or cannot be read."""
    try:
        if path.suffix != ".ipynb" or path.stat().st_size > MAX_NOTEBOOK_BYTES:
            return None
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def cells_of(notebook: object) -> Iterator[dict[str, Any]]:
    """Yield the cells of a notebook; what has another form is left out."""
    cells = notebook.get("cells") if isinstance(notebook, Mapping) else None
    yield from (cell for cell in (cells if isinstance(cells, list) else ()) if isinstance(cell, dict))
