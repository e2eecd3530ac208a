"""The page that a student gets back: verdicts, points, what they mean, what was repaired; no hidden test.

The page loads nothing from anywhere, and everything of the student's is escaped or cleaned. It is made in the helper
process, and decides nothing: a text that cannot be set, or not in time, is shown unchanged.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape

import jinja2
from markupsafe import Markup
from nbformat import NotebookNode

from mlsys.classroom.gradebook.quote_answers import is_students, written, written_as
from mlsys.classroom.intake.normalize import ADDED, grade_id, is_answer
from mlsys.classroom.processes.limited import limited
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.students.late import Late, how_late
from mlsys.classroom.templates import page_file, page_templates
from mlsys.course.starter import without_hidden_tests
from mlsys.grading.error_map import ErrorMap

_log = logging.getLogger(__name__)

MAX_PAGE_S = 5.0
"""Longest time to make one page, all of its parts together, in seconds; it takes a tenth of one."""

_CODE_SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class QuestionResult:
    """One question on the page: how it came out, and HTML of the answers, the visible tests and a person's comment."""

    record: QuestionRecord
    picture: ErrorMap | None = None
    answers: Sequence[str] = ()
    tests: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Page:
    """All that a feedback page says; `plain` says that texts are shown as they were written."""

    title: str
    student: str
    questions: Sequence[QuestionResult] = ()
    repairs: Sequence[str] = ()
    refused: str = ""
    penalty: float = 0.0
    late: Late | None = None
    added: Sequence[str] = field(default_factory=tuple)
    sandboxed: bool = True
    plain: bool = False

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


def feedback_page(notebook: NotebookNode, record: Record, comments: Mapping[str, str]) -> str:
    """Return the page for an autograded notebook.

    If it cannot be made in time, it shows the student's texts without markup or colors; if even that fails, verdicts
    and points alone.

    Args:
        notebook: the autograded notebook.
        record: how it was graded, with the points that a person gave.
        comments: what a person wrote beside the answers, by grade_id.
    """
    for plain in (False, True):
        try:
            return limited(_page, notebook, record, comments, plain, time_s=MAX_PAGE_S)
        except Exception as error:  # a score never depends on its page
            _log.warning("the feedback page of %s is simpler than usual: %s", record.student, type(error).__name__)
    return _bare(title_of(notebook, record.lab), record.student, record.questions, record.penalty)


def shown_answers(notebook: NotebookNode, record: Record) -> Page:
    """Return what a page shows of an autograded notebook, for somebody who marks it; texts as HTML that is safe.

    If it cannot be made in time, texts are plain; if even that fails, there are verdicts and points alone.
    """
    for plain in (False, True):
        try:
            return limited(_shown_answers, notebook, record, plain, time_s=MAX_PAGE_S)
        except Exception as error:
            _log.warning("the answers of %s are shown more simply: %s", record.student, type(error).__name__)
    return Page(record.lab, record.student, [QuestionResult(question) for question in record.questions], plain=True)


def _shown_answers(notebook: NotebookNode, record: Record, plain: bool) -> Page:
    return page_of(notebook, record, {}, plain=plain)


def refusal_page(title: str, student: str, reason: str) -> str:
    """Return the page of a submission that was not graded."""
    try:
        return limited(render, Page(title, student, refused=reason), time_s=MAX_PAGE_S)
    except Exception as error:
        _log.warning("the feedback page of %s is simpler than usual: %s", student, type(error).__name__)
        return _bare(title, student, (), refused=reason)


def title_of(notebook: NotebookNode, name: str) -> str:
    """Return the lab's title: the first heading of the course's own cells, or else the lab's name."""
    headings = (
        cell.source.splitlines()[0].removeprefix("# ")
        for cell in notebook.cells
        if cell.cell_type == "markdown" and cell.source.startswith("# ") and not is_students(cell)
    )
    return next(headings, name)


def _page(notebook: NotebookNode, record: Record, comments: Mapping[str, str], plain: bool) -> str:
    return render(page_of(notebook, record, comments, plain=plain))


def page_of(notebook: NotebookNode, record: Record, comments: Mapping[str, str], *, plain: bool = False) -> Page:
    """Return what the page says, its texts as HTML, or as plain text if `plain`; called in the helper process only."""
    questions = {question.grade_id: question for question in record.questions}
    return Page(
        title=title_of(notebook, record.lab),
        student=record.student,
        questions=[
            _result(cell, questions[grade_id(cell)], notebook.cells, comments, plain)
            for cell in notebook.cells
            if _is_graded(cell)
        ],
        repairs=record.repairs,
        penalty=record.penalty,
        late=record.handed_in.late,
        sandboxed=record.sandboxed,
        added=[_shown(cell, plain) for cell in notebook.cells if cell.metadata.get("mlsys", {}).get("role") == ADDED],
        plain=plain,
    )


def _is_graded(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def _result(
    graded: NotebookNode, record: QuestionRecord, cells: list[NotebookNode], comments: Mapping[str, str], plain: bool
) -> QuestionResult:
    from mlsys.classroom.gradebook import markup

    question = graded.metadata["mlsys"]["question"]
    members = [cell for cell in cells if cell.metadata.get("mlsys", {}).get("question") == question]
    answers = [cell for cell in members if is_answer(cell)]
    prose, code = (markup.plain, markup.plain) if plain else (markup.prose, markup.code)
    return QuestionResult(
        record=record,
        picture=ErrorMap.read(record.picture) if record.picture else None,
        answers=[_shown(cell, plain) for cell in answers],
        tests=code(without_hidden_tests(graded.source)) if graded.cell_type == "code" else "",
        comment="".join(prose(comment) for cell in answers if (comment := comments.get(grade_id(cell)))),
    )


def _shown(cell: NotebookNode, plain: bool) -> str:
    """Return a cell of the student's as HTML."""
    from mlsys.classroom.gradebook import markup

    text, kind = written(cell), "raw" if plain else written_as(cell)
    if kind == "code":
        return markup.code(text)
    return (markup.prose if kind == "markdown" else markup.plain)(text, cell.get("attachments"))


def _bare(title: str, student: str, records: Sequence[QuestionRecord], penalty: float = 0.0, refused: str = "") -> str:
    """Return a page that can always be written: verdicts and points, without any text that a student wrote."""
    points = max(0.0, sum(record.points for record in records) - penalty)
    lines = (
        [f"Not graded: {refused}."] if refused else [f"{points:g} of {sum(r.max_points for r in records):g} points."]
    )
    lines += [f"{one.title or one.question}: {one.verdict}, {one.points:g} / {one.max_points:g}" for one in records]
    body = "\n".join(f"<p>{escape(line)}</p>" for line in lines)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f"<title>{escape(title)}: {escape(student)}</title></head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n<p>Feedback for {escape(student)}</p>\n{body}\n</body>\n</html>\n"
    )


def render(page: Page) -> str:
    """Return the page as HTML."""
    template, style = _template_and_style()
    return template.render(page=page, style=style) + "\n"


def styles() -> str:
    """Return the style sheet of the page."""
    return _template_and_style()[1]


@cache
def _template_and_style() -> tuple[jinja2.Template, str]:
    package = "mlsys.classroom.gradebook"
    templates = page_templates(package, code_spans=code_spans, heading=heading, how_late=how_late)
    return templates.get_template("feedback.html.j2"), page_file(package, "feedback.css")


def code_spans(text: str) -> Markup:
    """Return plain text as HTML, with code where it is between backticks; everything is escaped."""
    return Markup(_CODE_SPAN.sub(r"<code>\1</code>", escape(text)))


def heading(record: QuestionRecord) -> Markup:
    """Return the letter and title of a question, as in "a. Count the bytes"; other names only repeat the title."""
    if not record.title:
        return code_spans(record.question)
    letter = record.question.partition("-")[0]
    return code_spans(f"{letter}. {record.title}" if len(letter) == 1 else record.title)
