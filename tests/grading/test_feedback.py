"""The page that students get: questions are called as the lab calls them, code looks like code, nothing of it runs."""

import html
import re

import pytest

from mlsys.grading.feedback import Page, QuestionResult, render
from mlsys.grading.records import QuestionRecord


def page_with(message: str = "", question: str = "a", title: str = "Count the bytes", **more: object) -> str:
    record = QuestionRecord(question, title, "x", "error", 0, 1, message)
    return render(Page("A lab", "ann", [QuestionResult(record)], **more))  # type: ignore[arg-type]


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
