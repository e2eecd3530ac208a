"""The page that students get: questions are called as the lab calls them, code looks like code, nothing of it runs."""

import html
import re
import time
from dataclasses import replace
from typing import Any

import pytest
from nbformat import NotebookNode

from mlsys.classroom.gradebook import feedback, markup
from mlsys.classroom.gradebook.feedback import Page, QuestionResult, feedback_page, refusal_page, render
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.course.notebook import as_node, new_cell


def page_with(message: str = "", question: str = "a", title: str = "Count the bytes", **more: object) -> str:
    record = QuestionRecord(question, title, "x", "error", 0, 1, message)
    return render(Page("A lab", "ann", [QuestionResult(record)], **more))  # type: ignore[arg-type]


def test_parts_of_points_are_shown_with_two_digits() -> None:
    record = QuestionRecord("k", "Test a kernel", "k-test", "mutants survive", 0.8333, 5)
    page = render(Page("A lab", "ann", [QuestionResult(record)]))
    assert "<strong>0.83</strong> of 5 points" in page
    assert "0.83 / 5" in page
    assert "0.8333" not in page


def inner(page: str, tag: str) -> str:
    """What stands in the first element that opens so."""
    name = tag.split()[0]
    found = re.search(f"<{tag}>(.*?)</{name}>", page, re.S)
    assert found
    return found[1]


@pytest.mark.parametrize(
    ("question", "title", "heading"),
    [
        ("a", "Count the bytes", "a. Count the bytes"),
        ("d-why", "Say why", "d. Say why"),
        ("challenge", "Challenge: tensor cores", "Challenge: tensor cores"),
        ("gap", "", "gap"),
        ("d", "The body of `tl.dot`", "d. The body of <code>tl.dot</code>"),
    ],
)
def test_a_question_is_called_once_by_its_letter_and_title(question: str, title: str, heading: str) -> None:
    page = page_with(question=question, title=title)
    assert inner(page, "h2") == heading
    assert inner(page, f'a href="#question-{question}"') == heading


def test_what_is_for_the_marker_alone_is_not_on_the_page() -> None:
    record = QuestionRecord("k", "A kernel", "k-test", "error", 0, 1, "it failed", "line 2", private="input 271828")
    page = render(Page("A lab", "ann", [QuestionResult(record)]))
    assert "line 2" in page
    assert "271828" not in page


def test_code_in_messages_is_set_as_code() -> None:
    page = page_with("It is wrong.\nIn the test `f(x) < 3`.", repairs=["The cell `a-test` was missing."])
    message = inner(page, 'p class="message"')
    assert "In the test <code>f(x) &lt; 3</code>." in message
    assert "The cell <code>a-test</code> was missing." in inner(page, "li")


def test_the_reason_of_a_refusal_is_set_with_code() -> None:
    refused = inner(render(Page("A lab", "ann", refused="no `tiling.ipynb` in it")), 'p class="refused"')
    assert "no <code>tiling.ipynb</code> in it" in refused


@pytest.mark.parametrize(
    "hostile",
    [
        "`<script>alert(1)</script>`",
        "`<b onclick=alert(1)>` and `</code><img src=x>`",
        "<script>`alert(1)`</script>",
        "`</code></p><style>*{display:none}</style>`",
        "`one\n<script>alert(1)</script>\ntwo`",
    ],
)
def test_what_stands_between_backticks_is_escaped_too(hostile: str) -> None:
    page = page_with(hostile, title=hostile, repairs=[hostile])
    body = page.partition("<main>")[2]
    assert not re.search(r"<(script|style|img|b)\b", body)
    assert body.count("<code>") == body.count("</code>")
    for place in ('a href="#question-a"', 'p class="message"', "li"):
        text = html.unescape(re.sub(r"</?(code|strong)>", "", inner(page, place)))
        assert hostile.replace("`", "") in text.replace("`", "")


def test_a_backtick_alone_stays_as_it_is() -> None:
    assert "it's 3`5 &lt; 4" in html.unescape(page_with("it's 3`5 < 4")).replace("<", "&lt;")
    assert "<code>" not in page_with("one ` only\nand ` in the next line")


RECORD = Record("ann", "adding", "1", "now", questions=(QuestionRecord("a", "Why?", "a-why", "passed", 3.5, 4),))
DOT = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
SLOW = "\t\n" * 10_000
"""The longest text that is colored; pygments takes from four seconds on, depending on the machine."""


def graded(answer: str, added: str = "x = 1", **attachments: Any) -> NotebookNode:
    """An autograded notebook of one marked question, with an answer, and a cell that was added above all others."""
    marks = {"grade_id": "a-why", "grade": True, "solution": True, "points": 4}
    about = {"question": "a", "role": "written"}
    pictures = {name.replace("_", "."): {"image/gif": data} for name, data in attachments.items()}
    cells = [
        new_cell("code", added, "added-0", {"mlsys": {"role": "added"}}),
        new_cell("markdown", "# The lab\n\nIts text", "title"),
        new_cell("markdown", answer, "answer", {"nbgrader": marks, "mlsys": about}, pictures),
    ]
    metadata = {"mlsys": {"lab": "adding", "repairs": [], "sandboxed": True}}
    return as_node({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def test_a_pasted_picture_is_in_the_answer_with_its_text() -> None:
    page = feedback_page(graded('Look: ![my "plot"](attachment:dot.gif) so.', dot_gif=DOT), RECORD, {})
    assert f'<img src="data:image/gif;base64,{DOT}" alt="my &quot;plot&quot;">' in inner(page, 'div class="answer"')
    assert "img-src data:" in page


@pytest.mark.parametrize(
    "source",
    [
        "![x](attachment:other.gif)",
        "![x](http://elsewhere.example/x.png)",
        "![x](data:image/svg+xml;base64,PHN2Zz4=)",
        "![x](data:text/html,<script>alert(1)</script>)",
        "![x](javascript:alert(1))",
        '<img alt="x" src="//elsewhere.example/x.png" onerror="alert(1)" style="x">',
        '<img alt="x">',
        "![x](ATTACHMENT:dot.gif)",
    ],
)
def test_any_other_picture_leaves_a_note(source: str) -> None:
    answer = inner(feedback_page(graded(f"before {source} after", dot_gif=DOT), RECORD, {}), 'div class="answer"')
    assert "<img" not in answer
    assert "before [picture x is not shown] after" in answer


@pytest.mark.parametrize("fails", ["highlight", "MarkdownWithMath", "Cleaner"])
def test_a_part_that_cannot_be_set_is_shown_as_it_stands(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    def raises(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(markup, fails, raises)
    text = f"**<b>** {fails}"
    shown = markup.code(text) if fails == "highlight" else markup.prose(text, {"a.gif": {"image/gif": DOT}})
    assert f"<pre>{html.escape(text)}</pre>" in shown
    assert (DOT in shown) == (fails != "highlight")


def test_a_page_that_takes_too_long_shows_texts_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback, "MAX_PAGE_S", feedback.MAX_PAGE_S / 3)  # on a fast machine, SLOW is ready in five
    began = time.monotonic()
    page = feedback_page(graded("So it is **bound** ![x](attachment:dot.gif)", SLOW, dot_gif=DOT), RECORD, {})
    assert time.monotonic() - began < 3 * feedback.MAX_PAGE_S
    assert "<pre>So it is **bound** ![x](attachment:dot.gif)</pre>" in page
    assert DOT in page
    assert "<strong>3.5</strong> of 4 points" in page
    assert "plain text, because formatting them took too long" in page


def test_a_page_that_cannot_be_made_at_all_still_says_verdicts_and_points(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object, **__: object) -> None:
        raise RuntimeError("no helper")

    monkeypatch.setattr(feedback, "limited", dies)
    page = feedback_page(graded("<script>alert(1)</script>"), replace(RECORD, student="<ann>", nbgraders_penalty=1), {})
    assert "2.5 of 4 points." in page
    assert "Why?: passed, 3.5 / 4" in page
    assert "&lt;ann&gt;" in page
    assert "<script" not in page
    assert "Not graded: no &lt;file&gt;." in refusal_page("A lab", "ann", "no <file>")


def test_the_title_is_the_labs_whatever_a_student_wrote_above_it() -> None:
    assert inner(feedback_page(graded("# mine", "# I am the title"), RECORD, {}), "h1") == "The lab"


def test_what_a_person_wrote_and_gave_is_on_the_page() -> None:
    marked = RECORD.marked({("ann", "a-why"): 1.25, ("bob", "a-why"): 9})
    page = feedback_page(graded("my answer"), marked, {"a-why": "see *me*", "other": "not here"})
    assert "<strong>1.25</strong> of 4 points" in page
    assert "see <em>me</em>" in page
    assert "not here" not in page
