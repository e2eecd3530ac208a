"""What a student wrote in Markdown, made harmless for whoever marks it.

nbgrader's formgrader shows the autograded notebook as a page of the instructor's own Jupyter server and leaves HTML in
Markdown as it is: a script in a written answer would run with the instructor's rights, and could change grades. So the
autograded notebook holds such cells as preformatted text; the text itself stays in the cell's metadata, for the
feedback page, which cleans it.
"""

from html import escape
from typing import Any

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from mlsys.grading.ingest import ADDED, is_answer


class QuoteWrittenAnswers(NbGraderPreprocessor):  # type: ignore[misc]
    """Quotes the student's Markdown cells, once nbgrader has saved the grades."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Quote the cells of one submission."""
        quote_written(nb)
        return nb, resources


def quote_written(notebook: NotebookNode) -> None:
    """Quote the student's Markdown cells."""
    for cell in notebook.cells:
        about = cell.metadata.get("mlsys", {})
        if cell.cell_type == "markdown" and (is_answer(cell) or about.get("role") == ADDED):
            about["written"], cell.source = cell.source, quoted(cell.source)


def quoted(text: str) -> str:
    r"""Markdown that shows `text` as it stands.

    >>> quoted("a < b")
    '<pre>\na &lt; b\n</pre>'
    """
    return f"<pre>\n{escape(text)}\n</pre>"


def written(cell: Any) -> str:
    """What the student wrote in a cell of an autograded notebook."""
    text: str = cell.metadata["mlsys"].get("written", cell.source)
    return text
