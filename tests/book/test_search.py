"""The page of the search: excerpts are a page's own text, results open at the place, words for one thing are alike."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
GROUPS = tomllib.loads((ROOT / "book" / "synonyms.toml").read_text(encoding="utf-8"))["groups"]


DONE = """() => document.querySelector("#search-results .search-summary")?.textContent
  && [...document.querySelectorAll("#search-results ul.search > li:not(:has(> span))")]
    .every((entry) => entry.querySelector("p.context"))"""
"""The search has shown all results, and each its excerpt; functions have a line instead."""


@pytest.fixture(scope="module")
def search(browser: Any, address: str) -> Iterator[Any]:
    """A tab that shows the results of a search; it is the page of the browser."""
    tab = browser.new_page()

    def show(words: str) -> Any:
        tab.goto(f"{address}/search.html?q={words.replace(' ', '+')}")
        tab.wait_for_function(DONE)
        return tab

    yield show
    tab.close()


def places(tab: Any) -> list[str]:
    """The places that the results lead to."""
    return tab.locator("#search-results ul.search > li > a").evaluate_all(
        "all => all.map((a) => a.getAttribute('href'))"
    )


@pytest.mark.parametrize("words", ["shared memory", "tile", "roofline", "tensor core"])
def test_excerpts_are_taken_from_the_text_of_pages(words: str, search: Any) -> None:
    faults: list[str] = []
    page = search("kernel")
    page.on("pageerror", lambda error: faults.append(str(error)))
    page = search(words)
    results = page.locator("#search-results ul.search > li:not(:has(> span))")  # functions have a line instead
    excerpts = page.locator("#search-results p.context")
    assert results.count() > 2
    assert excerpts.count() == results.count()
    said = [" ".join(text.split()) for text in excerpts.all_inner_texts()]
    assert not [text for text in said if not text]
    first = words.split()[0][:4]
    assert sum(first in text.lower() for text in said) > len(said) / 2
    for text in said:
        assert not text.removeprefix("...").lstrip().startswith("Contents"), text
        for button in ("Report an error", "Open in Colab", "previous", "By the course authors"):
            assert button not in text, text
    assert faults == []


@pytest.mark.parametrize("words", ["bank conflict", "ridge point", "winograd", "double buffering"])
def test_results_open_at_a_place_that_has_the_words(words: str, search: Any, address: str) -> None:
    found = [place for place in places(search(words)) if "/api-" not in place]
    assert len(found) > 2
    assert [place for place in found if "#" not in place] == []
    tab = search(words)
    for place in found[:4]:
        tab.goto(f"{address}/{place}")
        target = tab.locator(f"[id='{place.partition('#')[2]}']").first
        said = target.evaluate("place => (place.closest('section, dl, li, p') ?? place).textContent").lower()
        assert any(word[:5] in said for word in words.split()), place  # the stem: doubling, doubled


@pytest.mark.parametrize("group", GROUPS[:6], ids=lambda group: group[0])
def test_a_word_of_other_makers_finds_what_the_course_calls_it(group: list[str], search: Any) -> None:
    own = {place.partition("#")[0] for place in places(search(group[0]))}
    other = {place.partition("#")[0] for place in places(search(group[-1]))}
    assert len(own) > 2
    assert own <= other


def test_the_page_says_what_else_was_searched_for(search: Any) -> None:
    said = search("LDS bank conflicts").locator("#search-results .search-also").inner_text()
    assert said.startswith("Also searched for: shared memory bank conflicts, scratchpad bank conflicts, ")
    assert search("winograd").locator("#search-results .search-also").count() == 0


def test_each_word_is_in_one_group_and_the_first_is_one_of_the_book() -> None:
    words = [word.lower() for group in GROUPS for word in group]
    assert len(words) == len(set(words))
    text = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "book").glob("*/*.md")).lower()
    assert [group[0] for group in GROUPS if group[0].lower() not in text] == []
    assert [word for word in words if not re.fullmatch(r"[a-z0-9 -]+", word)] == []  # they stand in patterns
