"""Self-checks: what the build refuses, and what the page does by click, by keyboard and without JavaScript."""

import re
from pathlib import Path
from typing import Any

import pytest
from helpers import pages

from mlsys.course.pages.plain_markdown import PlainMarkdown
from mlsys.course.pages.quiz import QuizError, read_quiz

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: mlsys[book] brings it")

GOOD = """question: Which is larger?
choices:
  - text: one
    right: false
    feedback: It is smaller.
  - text: two
    right: true
    feedback: It is larger.
"""


def test_texts_and_key_are_read() -> None:
    quiz = read_quiz(GOOD)
    assert quiz.question == "Which is larger?"
    assert [(choice.text, choice.right, choice.feedback) for choice in quiz.choices] == [
        ("one", False, "It is smaller."),
        ("two", True, "It is larger."),
    ]


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (("right: true", "right: false"), "no choice is marked right"),
        (("right: false", "right: true"), "choices 1, 2 are marked right"),
        (("right: false", "right: maybe"), "choice 1 has `right: maybe`"),
        (("    feedback: It is larger.\n", ""), "choice 2 has no feedback"),
        (("    feedback: It is larger.", "    feedback:"), "choice 2 has no feedback"),
        (("feedback: It is larger.", "feedback: It is larger.\n    hint: no"), "choice 2 has unknown keys hint"),
        (("question: Which is larger?\n", ""), "the quiz has no question"),
        ((GOOD[GOOD.index("  - text: two") :], ""), "fewer than two choices"),
        (("text: one", "text: yes"), "the text of choice 1 is read as True"),
        (("It is larger.", "It is larger: two."), "its YAML cannot be read in its line 8"),
        (("text: one", "text: {glue:text}`one`"), "its YAML cannot be read in its line 3"),
        (("It is larger.", "It is larger, see #2."), None),
        (("It is larger.", "It is larger, as # says."), "the # in its line 8 begins a comment"),
        ((GOOD, ""), "it is empty"),
    ],
)
def test_faulty_quiz_is_refused_with_the_place(edit: tuple[str, str], complaint: str | None) -> None:
    body = GOOD.replace(*edit, 1)
    if complaint is None or complaint.startswith("the # in"):
        expected = pytest.raises(QuizError, match="begins a comment and cuts the text: put the text into quotes")
    else:
        expected = pytest.raises(QuizError, match=re.escape(complaint))
    with expected:
        read_quiz(body)


def test_hash_inside_quotes_is_text() -> None:
    assert read_quiz(GOOD.replace("It is larger.", '"It is # 2."')).choices[1].feedback == "It is # 2."


def test_notebook_gets_choices_and_folded_answers() -> None:
    plain = PlainMarkdown("page.md", numbers={"n": "2"})
    text = f"Before.\n\n```{{quiz}} some-id\n{GOOD.replace('one', '{n} or one')}```\n\nAfter."
    text = text.replace("{n}", "'{glue:text}`n`").replace("or one", "or one'")
    lines = [line for line in plain.convert(text).splitlines() if line]
    assert lines == [
        "Before.",
        "**Which is larger?**",
        "- 2 or one",
        "- two",
        "<details><summary>Answers</summary>",
        "- *2 or one*: It is smaller.",
        "- *two*: **right.** It is larger.",
        "</details>",
        "After.",
    ]


def quizzes(page: Path) -> dict[str, Any]:
    """Ids and bodies of a page's quizzes, read apart from the code under test."""
    found = re.findall(r"^```\{quiz\} ([\w-]+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    return {name: yaml.safe_load(body) for name, body in found}


QUIZ_PAGES = [page for page in pages.sources() if "```{quiz}" in page.read_text(encoding="utf-8")]


def test_ids_are_unique_over_the_book() -> None:
    names = [name for page in QUIZ_PAGES for name in quizzes(page)]
    assert names
    assert len(names) == len(set(names))


@pytest.mark.parametrize("page", QUIZ_PAGES, ids=lambda page: page.stem)
def test_a_chapter_has_three_quizzes_or_more(page: Path) -> None:
    assert len(quizzes(page)) >= 3


@pytest.fixture(scope="module", params=QUIZ_PAGES, ids=lambda page: page.stem)
def source(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def url(source: Path, address: str, site: Path) -> str:
    if not list((site / "book").rglob(f"{source.stem}.html")):
        pytest.skip(f"{source.name} is newer than the built book: run `make book`")
    return f"{address}/{pages.address_of(site, source.stem)}"


@pytest.fixture
def open_page(visits: Any, url: str) -> Any:
    page = visits.new_page()
    page.goto(url, wait_until="load")
    yield page
    page.close()


@pytest.mark.browser
def test_every_choice_answers_rightly_by_click(source: Path, open_page: Any) -> None:
    first_right = 0
    bodies = quizzes(source)
    for name, body in bodies.items():
        box = open_page.locator(f"#quiz-{name}")
        reply = box.locator("[role=status]")
        box.get_by_role("button").click()
        assert reply.inner_text().strip(), "without a choice the page asks for one"
        for place, choice in enumerate(body["choices"]):
            box.get_by_role("radio").nth(place).check()
            box.get_by_role("button").click()
            assert ("is-right" in (reply.get_attribute("class") or "")) == choice["right"]
            assert len(reply.inner_text()) > 20, "the feedback of this choice is shown"
        first_right += body["choices"][0]["right"]
    score = open_page.locator(".course-quiz-score").inner_text()
    numbers = sorted(map(int, re.findall(r"\d+", score)))
    assert numbers == sorted([len(bodies), len(bodies), first_right]), "only the first answer to each counts"


@pytest.mark.browser
def test_a_quiz_is_operated_by_keyboard_alone(source: Path, open_page: Any) -> None:
    name, body = next(iter(quizzes(source).items()))
    box = open_page.locator(f"#quiz-{name}")
    box.get_by_role("radio").first.focus()
    open_page.keyboard.press("Space")
    key = next(place for place, choice in enumerate(body["choices"]) if choice["right"])
    for _ in range(key):
        open_page.keyboard.press("ArrowDown")
    open_page.keyboard.press("Enter")
    assert "is-right" in box.locator("[role=status]").get_attribute("class")
    open_page.keyboard.press("Tab")
    assert open_page.evaluate("document.activeElement.tagName") == "BUTTON"


@pytest.mark.browser
def test_answers_can_be_read_without_javascript(source: Path, browser: Any, url: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url, wait_until="load")
    try:
        for name, body in quizzes(source).items():
            folds = page.locator(f"#quiz-{name} details")
            assert folds.count() == len(body["choices"])
            folds.first.locator("summary").click()
            assert folds.first.locator("p").is_visible()
    finally:
        context.close()
