"""The page of the search: what it shows of a page is the page's own text."""

from typing import Any

import pytest

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("words", ["shared memory", "tile", "roofline", "tensor core"])
def test_excerpts_are_taken_from_the_text_of_pages(words: str, browser: Any, address: str) -> None:
    page = browser.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{address}/search.html?q={words.replace(' ', '+')}", wait_until="networkidle")
    results = page.locator("#search-results ul.search > li:not(:has(> span))")  # functions have a line instead
    excerpts = page.locator("#search-results p.context")
    assert results.count() > 2
    assert excerpts.count() == results.count()
    said = [" ".join(text.split()) for text in excerpts.all_inner_texts()]
    page.close()
    assert not [text for text in said if not text]
    first = words.split()[0][:4]
    assert sum(first in text.lower() for text in said) > len(said) / 2
    for text in said:
        assert not text.removeprefix("...").lstrip().startswith("Contents"), text
        for button in ("Report an error", "Open in Colab", "previous", "By The course authors"):
            assert button not in text, text
    assert faults == []
