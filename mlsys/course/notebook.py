"""Notebook files and their parts, with types: nbformat's own functions have none."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from mlsys.core.files import write_atomically


def read_notebook(path: Path) -> NotebookNode:
    """Return a notebook of the course's own; for what strangers hand in see `mlsys.classroom.intake.reader`."""
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def write_notebook(notebook: NotebookNode, path: Path) -> None:
    """Write `notebook` as JSON with a stable order of keys."""
    text: str = nbformat.writes(notebook)
    write_atomically(path, f"{text}\n".encode())


def new_cell(
    kind: str,
    source: str,
    identifier: str,
    metadata: Mapping[str, Any] | None = None,
    attachments: Mapping[str, Any] | None = None,
) -> NotebookNode:
    """Return a cell of `kind` "code" or "markdown"; any other kind makes a raw cell. Writing the notebook checks it."""
    cell = {"id": identifier, "metadata": metadata or {}, "source": source}
    if kind == "code":
        return as_node(cell | {"cell_type": "code", "execution_count": None, "outputs": []})
    if attachments:
        cell["attachments"] = attachments
    return as_node(cell | {"cell_type": "markdown" if kind == "markdown" else "raw"})


def new_output(kind: str, **parts: Any) -> NotebookNode:
    """Return an output of a code cell: "stream", "display_data", "execute_result" or "error"."""
    output: NotebookNode = nbformat.v4.new_output(kind, **parts)
    return output


def as_node(content: Mapping[str, Any]) -> NotebookNode:
    """Return a mapping as nbformat keeps it."""
    node: NotebookNode = nbformat.from_dict(dict(content))
    return node
