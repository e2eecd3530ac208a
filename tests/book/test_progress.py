"""Progress: what a page marks as read and answered, where it is shown, and how it is erased."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import small_book

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")

QUIZ = """```{quiz} QUIZ
question: Which is larger?
choices:
  - text: one
    right: false
    feedback: It is smaller.
  - text: two
    right: true
    feedback: It is larger.
```
"""
CHAPTER = (
    "# Chapter\n\n:::{admonition} The question\n:class: course-question\n\nWhich?\n:::\n\n"
    + QUIZ.replace("QUIZ", "one")
    + "\n"
    + QUIZ.replace("QUIZ", "two")
    + "\nText.\n" * 200
)
LIST = """# Map

```{raw} html
<ul class="course-map">
<li><p><a class="reference internal" href="chapter.html">Chapter</a>: what it gives.</p></li>
</ul>
```

```{progress}
```
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("progress")
    done = small_book.build(root, {"map": LIST, "chapter": CHAPTER}, ["course_progress", "course_quiz"])
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "_build/html/book"


@pytest.fixture
def page(browser: Any, built: Path) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert complaints == []


def mark(page: Any) -> str:
    """The mark of the chapter in the contents at the left."""
    marks = page.locator("nav.bd-links .course-read-mark")
    return marks.first.text_content() if marks.count() else ""


@pytest.mark.browser
def test_reading_to_the_end_and_answering_are_marked(page: Any, built: Path) -> None:
    page.goto((built / "chapter.html").as_uri())
    assert mark(page) == ""
    page.locator("#quiz-one").get_by_label("two").check()
    page.locator("#quiz-one").get_by_role("button").click()
    assert mark(page) == "1/2 (1 of 2 self-checks answered)"
    page.keyboard.press("End")
    page.wait_for_function("document.querySelector('.course-read-mark').textContent.startsWith('✓ 1/2')")
    page.goto((built / "map.html").as_uri())
    assert "read to the end, 1 of 2 self-checks answered" in mark(page)
    assert page.locator(".course-map li").inner_text().endswith("You: read to the end, 1 of 2 self-checks answered.")
    assert "read 1 of 1 chapters" in page.locator(".course-progress").inner_text()
    page.goto((built / "chapter.html").as_uri())
    assert (
        page.locator(".course-quiz-score").inner_text().startswith("On this page: 1 of 2 questions answered, 1 right")
    )


@pytest.mark.browser
def test_erasing_asks_first_and_then_forgets_everything(page: Any, built: Path) -> None:
    page.goto((built / "map.html").as_uri())
    assert not page.get_by_role("button", name="Erase my progress").is_visible()
    page.goto((built / "chapter.html").as_uri())
    page.keyboard.press("End")
    page.wait_for_function("document.querySelector('.course-read-mark')")
    page.goto((built / "map.html").as_uri())
    asked: list[str] = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.get_by_role("button", name="Erase my progress").click()
    assert "cannot be brought back" in asked[0]
    assert mark(page)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Erase my progress").focus()
    page.keyboard.press("Enter")
    assert mark(page) == ""
    assert page.locator(".course-map-mark").count() == 0
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('ai-hardware'))") == []


@pytest.mark.browser
def test_a_browser_that_keeps_nothing_still_works(browser: Any, built: Path) -> None:
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('forbidden') }})")
    page = context.new_page()
    page.goto((built / "chapter.html").as_uri())
    page.locator("#quiz-one").get_by_label("two").check()
    page.locator("#quiz-one").get_by_role("button").click()
    assert "1 of 2 questions answered" in page.locator(".course-quiz-score").inner_text()
    context.close()


@pytest.mark.browser
def test_without_javascript_nothing_is_promised(browser: Any, built: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((built / "map.html").as_uri())
    assert not page.locator(".course-progress").is_visible()
    context.close()
