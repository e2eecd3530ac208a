"""Read a submitted file that may be anything, and hand on a plain notebook or the reason why it cannot be graded.

Only what grading uses is taken over: kind, source, id, the course's own metadata of each cell, and the pictures in
Markdown. Outputs, other attachments and other metadata stay behind, so nothing later in the chain meets them.
"""

import json
import stat
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from mlsys.classroom.intake.pictures import Pictures
from mlsys.course.notebook import new_cell
from mlsys.receipt import MAX_NOTEBOOK_BYTES

MAX_BYTES = MAX_NOTEBOOK_BYTES
"""Largest submitted file, in bytes."""
MAX_CELLS = 1000
"""Most cells of a notebook."""
MAX_SOURCE = 500_000
"""Most characters of all cells without outputs; a lab with its prose and answers has about 60,000."""
MAX_DEPTH = 40
"""Deepest nesting of the JSON; a notebook with outputs of the usual kinds nests about ten deep."""


class Refused(Exception):
    """A submission that cannot be graded; the message is the reason, for the student."""


class OfAnotherLab(Refused):
    """A submission that is a notebook of another lab."""


def read_submission(path: Path) -> NotebookNode:
    """Return the notebook in `path`, cleaned.

    Args:
        path: the submitted file.

    Raises:
        Refused: the file is missing, too big, empty, damaged, or not a notebook.
    """
    return notebook_from(submitted_bytes(path))


def submitted_bytes(path: Path) -> bytes:
    """Return the content of a submitted file.

    Raises:
        Refused: the file is missing, too big, or no regular file.
    """
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{path.name} is not a regular file")
        if status.st_size > MAX_BYTES:
            size, limit = (f"{count / 1e6:.0f} MB" for count in (status.st_size, MAX_BYTES))
            raise Refused(
                f"the file is {size}, and the limit is {limit}: clear its outputs, make its pictures smaller, and "
                "hand it in again"
            )
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Refused(f"no file {path.name} was handed in") from error
    except OSError as error:
        raise Refused(f"the file could not be read ({error.strerror})") from error


def notebook_from(data: bytes) -> NotebookNode:
    """Return the notebook in the content of a submitted file, cleaned.

    Raises:
        Refused: the content is empty, damaged, or not a notebook.
    """
    notebook = clean(_parse(data))
    written = sum(len(cell.source) for cell in notebook.cells)
    if written > MAX_SOURCE:
        raise Refused(
            f"its cells hold {written:,} characters, and the limit is {MAX_SOURCE:,}: remove pasted data from them"
        )
    return notebook


def _parse(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused("the file is not a notebook: it is not text in UTF-8") from error
    if not text.strip():
        raise Refused("the file is empty: save the notebook and hand it in again")
    if not text.lstrip().startswith("{"):
        raise Refused("the file is not a notebook: a notebook is a JSON file that begins with {")
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise Refused("the file is nested too deeply for a notebook") from error
    except ValueError as error:
        place = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "a number of too many digits"
        raise Refused(f"the file is damaged or cut off (its JSON breaks at {place}): download it again") from error
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise Refused("the file is not a notebook of format 4: it has no list of cells; save it with a current Jupyter")
    if len(content["cells"]) > MAX_CELLS:
        raise Refused(
            f"the notebook has {len(content['cells'])} cells, and the limit is {MAX_CELLS}: "
            "delete those that you do not need"
        )
    if _deeper_than(content, MAX_DEPTH):
        raise Refused("the file is nested too deeply for a notebook")
    return content


def _deeper_than(content: object, limit: int) -> bool:
    level: list[object] = [content]
    for _ in range(limit):
        level = [
            item
            for node in level
            for item in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
            if isinstance(item, dict | list)
        ]
    return bool(level)


def clean(content: dict[str, Any]) -> NotebookNode:
    """Return a valid notebook with the known parts of `content`; whatever has the wrong type is left out."""
    notebook: NotebookNode = nbformat.v4.new_notebook()
    about = _mapping(_mapping(content.get("metadata")).get("mlsys"))
    notebook.metadata["mlsys"] = {key: _text(about.get(key)) for key in ("lab", "version", "term") if key in about}
    pictures = Pictures()
    for position, raw in enumerate(content["cells"]):
        cell = _mapping(raw)
        source = cell.get("source", "")
        lines = source if isinstance(source, list) else [source]
        text = "".join(_text(line) for line in lines).replace("\r\n", "\n").replace("\r", "\n")
        kind = _text(cell.get("cell_type"))
        attachments: dict[str, Any] = {}
        if kind == "markdown":
            text, attachments = pictures.take(text, _mapping(cell.get("attachments")))
        metadata = _mapping(cell.get("metadata"))
        kept: dict[str, Any] = {"nbgrader": _flags(_mapping(metadata["nbgrader"]))} if "nbgrader" in metadata else {}
        # nbformat allows only short plain ids; the student's own serves only to recognize the cell.
        kept["student_id"] = _text(cell.get("id"))
        notebook.cells.append(new_cell(kind, text, f"s-{position}", kept, attachments))
    if pictures.left_out:
        notebook.metadata["mlsys"]["left_out"] = pictures.left_out
    return notebook


def _flags(nbgrader: dict[str, Any]) -> dict[str, Any]:
    flags: dict[str, Any] = {key: nbgrader[key] is True for key in ("grade", "solution", "locked") if key in nbgrader}
    if isinstance(nbgrader.get("grade_id"), str):
        flags["grade_id"] = _text(nbgrader["grade_id"])
    if isinstance(nbgrader.get("points"), int | float):
        flags["points"] = nbgrader["points"]
    return flags


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    # Lone surrogates are legal in JSON and cannot be written to a file.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
