"""The pages on which people mark: the questions of a lab, the answers to one, one answer, and a rubric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from mlsys.classroom.gradebook.feedback import QuestionResult, code_spans, heading, styles
from mlsys.classroom.marking.answers import CHANGED, MARKED, OPEN, TESTED, WAITING, Answer, Former
from mlsys.classroom.marking.rubric import Item, split, start
from mlsys.classroom.templates import page_file, page_templates

_PACKAGE = "mlsys.classroom.marking"
STATES = {WAITING: "to mark", CHANGED: "changed since it was marked", MARKED: "marked", TESTED: "graded by tests"}
"""States of an answer, in words."""
SHOWN = {"open": "to mark", "changed": "changed since they were marked", "marked": "marked", "all": "all"}
"""Which answers a list holds, in words."""


def chosen(answers: Sequence[Answer], show: str) -> list[Answer]:
    """Return the answers that a list of `SHOWN` holds."""
    states = {"open": OPEN, "changed": (CHANGED,), "marked": (MARKED,)}.get(show, tuple(STATES))
    return [answer for answer in answers if answer.state in states]


@dataclass(frozen=True)
class Typed:
    """What stands in the form of an answer: what was given before, or what a person has just typed."""

    points: str
    comment: str
    items: tuple[str, ...]

    @classmethod
    def given(cls, answer: Answer, rubric: Sequence[Item]) -> "Typed":
        """Return the mark that an answer has."""
        items, rest = split(answer.comment, rubric)
        return cls("" if answer.points is None else f"{answer.points:g}", rest, tuple(item.text for item in items))


@dataclass(frozen=True)
class AnswerPage:
    """All that the page of one answer says."""

    answer: Answer
    result: QuestionResult
    rubric: Sequence[Item]
    typed: Typed
    show: str
    place: int
    count: int
    before: Answer | None
    after: Answer | None
    former: Former | None = None
    name: str = ""
    fault: str = ""
    takes_comment: bool = True

    @property
    def start(self) -> float:
        """Points from which the rubric counts."""
        return start(self.rubric, self.answer.question.max_points)


def questions_page(base: str, title: str, questions: Mapping[str, Sequence[Answer]], names: bool) -> str:
    """Return the first page: how many answers of each question are to be marked."""
    return _render("questions", base=base, title=title, questions=questions, names=names, states=STATES)


def answers_page(base: str, title: str, answers: Sequence[Answer], show: str, names: Mapping[str, str]) -> str:
    """Return the list of the answers to one question."""
    return _render(
        "answers", base=base, title=title, answers=answers, listed=chosen(answers, show), show=show, names=names
    )


def answer_page(base: str, title: str, page: AnswerPage) -> str:
    """Return the page of one answer, with the form of its mark."""
    return _render("answer", base=base, title=title, page=page, answer=page.answer, typed=page.typed)


def rubric_page(base: str, title: str, question: str, items: Sequence[Item], seen: str, fault: str = "") -> str:
    """Return the page on which a rubric is edited."""
    return _render("rubric", base=base, title=title, question=question, items=items, seen=seen, fault=fault)


def fault_page(base: str, fault: str) -> str:
    """Return a page that only says what is wrong."""
    return _render("fault", base=base, title="This did not work", fault=fault)


def _render(name: str, **values: object) -> str:
    return _templates().get_template(f"{name}.html.j2").render(shown=SHOWN, state_words=STATES, **values) + "\n"


@cache
def _templates() -> jinja2.Environment:
    return page_templates(_PACKAGE, code_spans=code_spans, heading=heading, quoted=_quoted)


def style() -> str:
    """Return the style sheet: that of the feedback pages, and what the forms add."""
    own = page_file(_PACKAGE, "marking.css")
    return styles() + own


def script() -> str:
    """Return the script: sums of the rubric, keys, and the settings of MathJax."""
    return page_file(_PACKAGE, "marking.js")


def _quoted(text: str) -> Markup:
    return Markup(quote(text, safe=""))
