"""What a student wrote, made harmless for the person who marks it.

nbgrader's formgrader shows the autograded notebook as a page of the instructor's own Jupyter server and leaves HTML in
Markdown as it is: a script in a written answer would run with the instructor's rights, and could change grades. So the
autograded notebook holds all that is not the course's own as preformatted text, with pictures below it; the text itself
stays in the cell's metadata, for the feedback page, which cleans it. Only code stays code, unless it would take
formgrader too long to color.
"""

import logging
from html import escape
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from mlsys.classroom.intake.normalize import ADDED, is_answer
from mlsys.classroom.processes.limited import imported_first, limited
from mlsys.course.notebook import read_notebook

imported_first("mlsys.classroom.gradebook.markup")

_log = logging.getLogger(__name__)

MAX_COLORING_S = 5.0
"""Longest time for coloring the code of one submission may take, all of it together; it takes a tenth of one."""


def quote_written(notebook: NotebookNode) -> None:
    """Quote the student's cells of a canonical notebook."""
    cells = [cell for cell in notebook.cells if is_students(cell)]
    code = [cell for cell in cells if cell.cell_type == "code"]
    slow = not _colors_in_time([cell.source for cell in code])
    for cell in cells:
        if cell.cell_type != "code" or slow:
            _quote(cell)


def read_unquoted(path: Path) -> NotebookNode:
    """Return an autograded notebook as it was before: what is quoted is what the student wrote again.

    What is quoted a second time would otherwise be shown to the student with the marks of the first.
    """
    notebook = read_notebook(path)
    for cell in notebook.cells:
        if is_students(cell):
            cell.source, cell.cell_type = written(cell), written_as(cell)
            for note in ("written", "written_as"):
                cell.metadata["mlsys"].pop(note, None)
    return notebook


def is_students(cell: NotebookNode) -> bool:
    """Return whether a cell of a canonical notebook is the student's: an answer, or one that was added."""
    return is_answer(cell) or cell.metadata.get("mlsys", {}).get("role") == ADDED


def quoted(text: str) -> str:
    r"""Return Markdown that shows `text` unchanged.

    >>> quoted("a < b")
    '<pre>\na &lt; b\n</pre>'
    """
    return f"<pre>\n{escape(text)}\n</pre>"


def written(cell: Any) -> str:
    """Return what the student wrote in a cell of an autograded notebook."""
    text: str = cell.metadata["mlsys"].get("written", cell.source)
    return text


def written_as(cell: Any) -> str:
    """Return the type of the cell in which the student wrote it; "raw" for code that takes too long to color."""
    kind: str = cell.metadata["mlsys"].get("written_as", cell.cell_type)
    return kind


def _quote(cell: NotebookNode) -> None:
    about = cell.metadata["mlsys"]
    about["written"], about["written_as"] = cell.source, "markdown" if cell.cell_type == "markdown" else "raw"
    # Names of pictures are ours: see `mlsys.classroom.intake.pictures`.
    pictures = [f"\n\n![{name}](attachment:{name})" for name in cell.get("attachments", ())]
    cell.source = quoted(cell.source) + "".join(pictures)
    cell.cell_type = "markdown"
    for part in ("outputs", "execution_count"):
        cell.pop(part, None)


def _colors_in_time(sources: list[str]) -> bool:
    try:
        limited(_color_all, sources, time_s=MAX_COLORING_S)
    except Exception as error:  # formgrader would meet the same
        _log.info("the code of a submission is shown without colors: %s", type(error).__name__)
        return False
    return True


def _color_all(sources: list[str]) -> None:
    from mlsys.classroom.gradebook.markup import color_all  # in the helper process, which has it loaded

    color_all(sources)
