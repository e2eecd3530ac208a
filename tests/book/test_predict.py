"""Predictions: what the build refuses, what stands in a notebook, and what a reader keeps by click and by keyboard."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import small_book

from mlsys.course.pages.languages import read_language
from mlsys.course.pages.plain_markdown import PlainMarkdown
from mlsys.course.pages.prediction import PredictionError, read_prediction
from mlsys.errors import UserError

CHOICES = "Which is larger?\n\n- (a) one, $x^2$\n- (b) two\n- (c) three,\n  or four\n"
PAGE = f"""# Page

:::{{predict}} larger
:right: b
:settled: larger-settled

{CHOICES}
:::

## One section

Text. {"Some words. " * 300}

(larger-settled)=
## The section that settles it

:::{{settled}} larger
Two is larger than one.
:::

:::{{admonition}} The rule to carry away
:class: course-rule

Two is larger than one.
:::
"""
HEBREW = PAGE.replace("larger", "larger-he").replace("(b)", "(ב)").replace(":right: b", ":right: ב")
OTHER = PAGE.replace("larger", "other")


# What is read


def test_letters_are_those_of_the_list() -> None:
    found = read_prediction(CHOICES, right="b", settled="larger-settled")
    assert (found.letters, found.right, found.settled) == (("a", "b", "c"), "b", "larger-settled")


@pytest.mark.parametrize(
    ("body", "options", "complaint"),
    [
        (CHOICES, {"right": "d"}, "`:right: d` names none of its choices: write `:right:` with one of a, b, c"),
        (CHOICES, {"right": ""}, "does not say which choice is right"),
        (CHOICES, {"settled": ""}, "does not say where it is settled: write `:settled:`"),
        (CHOICES.replace("(b) ", ""), {}, "the choice 'two' has no letter"),
        (CHOICES.replace("(c)", "(a)"), {}, "two of its choices have the letter (a)"),
        ("Which is larger?\n\n- (a) one\n", {}, "fewer than two choices"),
        ("Which is larger?\n", {}, "fewer than two choices"),
    ],
)
def test_a_faulty_prediction_is_refused_with_the_cure(body: str, options: dict[str, str], complaint: str) -> None:
    with pytest.raises(PredictionError, match=re.escape(complaint)):
        read_prediction(body, **{"right": "b", "settled": "larger-settled", **options})


# In a notebook


def test_a_notebook_shows_both_as_text() -> None:
    plain = PlainMarkdown("page.md", numbers={}, sections={"larger-settled": "The section that settles it"})
    shown = [line for line in plain.convert(PAGE).splitlines() if line and not line.startswith(("Text", "#"))]
    assert shown == [
        "**Predict before you read**",
        "Which is larger?",
        "- (a) one, $x^2$",
        "- (b) two",
        "- (c) three,",
        "  or four",
        "You will find the answer under *The section that settles it*.",
        "---",
        "**The answer is (b).**",
        "Two is larger than one.",
        "---",
        "**The rule to carry away**",
        "Two is larger than one.",
        "---",
    ]


def test_a_notebook_speaks_the_language_of_its_page() -> None:
    plain = PlainMarkdown("page.md", numbers={}, sections={"larger-he-settled": "סעיף"}, language=read_language("he"))
    assert "התשובה היא (ב)." in plain.convert(HEBREW)


def test_a_notebook_refuses_an_answer_without_its_question() -> None:
    with pytest.raises(UserError, match="'larger' is settled without a prediction before it"):
        PlainMarkdown("page.md", numbers={}).convert(":::{settled} larger\nTwo.\n:::")
    with pytest.raises(UserError, match="settled in 'larger-settled', which is no section of the page"):
        PlainMarkdown("page.md", numbers={}).convert(PAGE)


# In the book


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("predict")
    done = small_book.build(root, {"page": PAGE, "he/other-he": HEBREW}, ["course_predict"])
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "_build/html/book/page.html"


def test_what_is_wrong_with_a_page_is_said_with_its_line_and_the_cure(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")
    settled = ":::{settled} larger\nTwo is larger than one.\n:::\n"
    pages = {
        "right": PAGE,
        "wrong-letter": OTHER.replace(":right: b", ":right: d"),
        "taken": PAGE.replace("(larger-settled)=", "(third-settled)=").replace(settled, ""),
        "nowhere": PAGE.replace("larger", "nowhere").replace(settled.replace("larger", "nowhere"), ""),
        "no-label": PAGE.replace("larger", "label").replace("(label-settled)=\n", ""),
        "elsewhere": PAGE.replace("larger", "place")
        .replace("## One section\n", "## One section\n\n")
        .replace(settled.replace("larger", "place"), "")
        .replace("Text. ", settled.replace("larger", "place") + "\nText. "),
        "no-question": "# Page\n\n" + settled.replace("larger", "nobody"),
    }
    done = small_book.build(tmp_path, pages, ["course_predict"])
    said = done.stdout + done.stderr
    assert done.returncode != 0
    for complaint in (
        r"wrong-letter\.md:3: .*prediction 'other': `:right: d` names none of its choices",
        r"taken\.md:3: .*prediction id 'larger' is taken by page book/right",
        r"nowhere\.md:3: .*prediction 'nowhere' is settled nowhere: write `:::\{settled\} nowhere`",
        r"no-label\.md:3: .*settled in section 'label-settled', which this page does not have",
        r"elsewhere\.md:\d+: .*prediction 'place' is settled outside section 'place-settled'",
        r"no-question\.md:3: .*settled 'nobody': no prediction of this id comes before it",
    ):
        assert re.search(complaint, said), complaint


def test_the_prediction_does_not_give_its_answer_away(built: Path) -> None:
    text = built.read_text(encoding="utf-8")
    box = text[text.index('id="predict-larger"') : text.index('<section id="one-section"')]
    items = re.findall(r"<li([^>]*)>", box)
    assert [re.sub(r'data-(letter|spoken)="[^"]*"', "", item).strip() for item in items] == ["", "", ""]
    assert "right" not in re.sub(r'data-kept="[^"]*"', "", box).lower()


@pytest.fixture
def page(browser: Any, built: Path) -> Iterator[Any]:
    context = browser.new_context()
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(built.as_uri())
    yield page
    context.close()
    assert complaints == []


@pytest.mark.browser
def test_a_choice_is_kept_and_shown_where_it_is_settled(page: Any) -> None:
    yours = page.locator("#settled-larger .course-settled-yours")
    assert yours.inner_text() == "You made no prediction."
    box = page.get_by_role("group", name="Your prediction")
    box.get_by_label("(a) one").check()
    assert "Your prediction is (a)" in box.get_by_role("status").inner_text()
    assert re.fullmatch(r"You predicted \(a\) on \w+ \d+, \d{4}\.", yours.inner_text())
    page.reload()
    assert page.get_by_label("(a) one").is_checked()
    page.get_by_label("(b) two").check()
    page.reload()
    assert yours.inner_text().endswith("and you were right.")
    assert page.locator(".admonition-title", has_text="The answer is (b).").is_visible()


@pytest.mark.browser
def test_a_choice_is_made_by_keyboard_alone(page: Any) -> None:
    page.get_by_role("radio").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert "(c)" in page.locator(".course-predict [role=status]").inner_text()
    assert "(c)" in page.locator("#settled-larger .course-settled-yours").inner_text()


@pytest.mark.browser
def test_a_formula_in_a_choice_has_a_name_that_can_be_spoken(page: Any) -> None:
    assert page.get_by_role("radio").first.get_attribute("aria-label") == "(a) one, x^2"


@pytest.mark.browser
def test_a_page_in_hebrew_says_it_in_hebrew(browser: Any, built: Path) -> None:
    page = browser.new_page()
    page.goto((built.parent / "he" / "other-he.html").as_uri())
    page.get_by_label("(ב)").check()
    assert page.locator(".course-predict-where").inner_text().startswith("התשובה נמצאת בסעיף ")
    assert "חזיתם (ב)" in page.locator(".course-settled-yours").inner_text()
    page.close()


@pytest.mark.browser
def test_without_javascript_both_boxes_are_text(browser: Any, built: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(built.as_uri())
    try:
        box = page.locator("#predict-larger")
        assert [item.inner_text()[:3] for item in box.locator("li").all()] == ["(a)", "(b)", "(c)"]
        last = box.locator("p").last
        assert last.inner_text() == "You will find the answer under The section that settles it."
        last.locator("a").click()
        assert page.url.endswith("#larger-settled")
        assert page.locator("#settled-larger").inner_text().split("\n")[0] == "The answer is (b)."
        assert not page.locator(".course-settled-yours").is_visible()
    finally:
        context.close()
