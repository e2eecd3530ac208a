"""The page that a student gets back: verdicts, points, what they mean, what was mended; no hidden test.

The page stands on its own: it loads nothing from anywhere, and everything of the student's is escaped or cleaned.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from html import escape
from importlib.resources import files
from typing import Any

import bleach  # type: ignore[import-untyped]
import jinja2
from markupsafe import Markup
from nbconvert.exporters import Exporter
from nbconvert.filters import markdown2html
from nbformat import NotebookNode
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

from mlsys.course.starter import without_hidden_tests
from mlsys.grading.error_picture import ErrorPicture
from mlsys.grading.ingest import ADDED, is_answer
from mlsys.grading.records import QuestionRecord
from mlsys.grading.written_answers import written

_TAGS = {"a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li"}
_TAGS |= {"ol", "p", "pre", "s", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"}
"""What a written answer may hold: no pictures or styles, which could reach other hosts, and no scripts."""

_CODE_SPAN = re.compile(r"`([^`\n]+)`")

MAX_PROSE = 10_000
"""Characters of a written answer up to which it is set: readers of Markdown take time that grows with the square."""

MAX_CODE = 20_000
"""The same for the colours of code."""


@dataclass(frozen=True)
class QuestionResult:
    """One question on the page: how it came out, and HTML of the answers, the visible tests and a person's comment."""

    record: QuestionRecord
    picture: ErrorPicture | None = None
    answers: Sequence[str] = ()
    tests: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Page:
    """All that a feedback page says."""

    title: str
    student: str
    questions: Sequence[QuestionResult] = ()
    repairs: Sequence[str] = ()
    refused: str = ""
    penalty: float = 0.0
    added: Sequence[str] = field(default_factory=tuple)
    sandboxed: bool = True

    @property
    def points(self) -> float:
        """Points so far, after a penalty for handing in late."""
        return max(0.0, sum(question.record.points for question in self.questions) - self.penalty)

    @property
    def max_points(self) -> float:
        """The most points that the lab gives."""
        return sum(question.record.max_points for question in self.questions)

    @property
    def waiting(self) -> float:
        """Points that wait for a GPU or for a person."""
        return sum(question.record.waiting for question in self.questions)


class FeedbackExporter(Exporter):
    """Takes the place of nbconvert's HTMLExporter when feedback is generated."""

    file_extension = ".html"
    output_mimetype = "text/html"

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **kw: Any) -> Any:
        """Convert one graded notebook."""
        nb, resources = super().from_notebook_node(nb, resources, **kw)
        return render(page_of(nb, resources["nbgrader"])), resources


def page_of(notebook: NotebookNode, about: Mapping[str, Any]) -> Page:
    """The page for an autograded notebook with the gradebook's scores; `about` are nbgrader's resources."""
    graded = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    heading = next((cell.source for cell in notebook.cells if cell.source.startswith("# ")), f"# {about['assignment']}")
    return Page(
        title=heading.splitlines()[0].removeprefix("# "),
        student=about["student"],
        questions=[_result(cell, notebook.cells) for cell in graded],
        repairs=notebook.metadata["mlsys"]["repairs"],
        penalty=float(about.get("late_penalty") or 0),
        sandboxed=notebook.metadata["mlsys"].get("sandboxed", True),
        added=[_code(written(cell)) for cell in notebook.cells if cell.metadata.get("mlsys", {}).get("role") == ADDED],
    )


def _result(graded: NotebookNode, cells: list[NotebookNode]) -> QuestionResult:
    about = graded.metadata["mlsys"]
    record = QuestionRecord(**about["record"])
    if about.get("marked"):
        record = record.marked(float(graded.metadata["nbgrader"]["score"]))
    members = [cell for cell in cells if cell.metadata.get("mlsys", {}).get("question") == about["question"]]
    answers = [cell for cell in members if is_answer(cell)]
    return QuestionResult(
        record=record,
        picture=ErrorPicture.read(record.picture) if record.picture else None,
        answers=[_code(cell.source) if cell.cell_type == "code" else _prose(written(cell)) for cell in answers],
        tests=_code(without_hidden_tests(graded.source)) if graded.cell_type == "code" else "",
        comment="".join(_prose(cell.metadata["mlsys"].get("comment", "")) for cell in answers),
    )


def render(page: Page) -> str:
    """The page as HTML."""
    template, style = _template_and_style()
    return template.render(page=page, style=style) + "\n"


@cache
def _template_and_style() -> tuple[jinja2.Template, str]:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["code_spans"] = _code_spans
    environment.filters["heading"] = _heading
    folder = files("mlsys.grading").joinpath("templates")
    template = environment.from_string(folder.joinpath("feedback.html.j2").read_text(encoding="utf-8"))
    return template, folder.joinpath("feedback.css").read_text(encoding="utf-8")


def _code_spans(text: str) -> Markup:
    """Plain text as HTML, with code where it stands between backticks; everything is escaped, whoever wrote it."""
    return Markup(_CODE_SPAN.sub(r"<code>\1</code>", escape(text)))


def _heading(record: QuestionRecord) -> Markup:
    """The letter and title of a question, as in "a. Count the bytes"; other names only repeat the title."""
    if not record.title:
        return _code_spans(record.question)
    letter = record.question.partition("-")[0]
    return _code_spans(f"{letter}. {record.title}" if len(letter) == 1 else record.title)


@lru_cache(maxsize=200)  # a class shares its tests
def _code(source: str) -> str:
    if len(source) > MAX_CODE:
        return f"<pre>{escape(source[:MAX_CODE])}...</pre>"
    html: str = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    return f"<pre><code>{html}</code></pre>"


def _prose(source: str) -> str:
    """Markdown as HTML without scripts, handlers, pictures from elsewhere or other ways out of the page."""
    if len(source) > MAX_PROSE:
        return f"<pre>{escape(source[:MAX_PROSE])}...</pre>"
    html: str = bleach.clean(markdown2html(source), tags=_TAGS, attributes={"a": ["href"]}, strip=True)
    return html
