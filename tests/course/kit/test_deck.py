"""Decks of slides: what a chapter claims is on them, and all of it can be read at the back of a room."""

import re
from pathlib import Path
from typing import Any

import pytest
from helpers import pages
from helpers.site_of_one_chapter import CHAPTER, write_site
from helpers.threads import in_a_thread
from lxml import html

from mlsys.course.kit.deck import SMALLEST_TEXT, write_decks
from mlsys.course.kit.slides import Slide, slides_of
from mlsys.course.whole_book.pages import read_page
from mlsys.errors import UnknownName

ROOT = Path(__file__).parents[3]
SITE = ROOT / "_build" / "html"


def words(slide: Slide) -> str:
    return " ".join(" ".join(part.text_content() for part in slide.body).split())


@pytest.fixture
def slides(tmp_path: Path) -> list[Slide]:
    return slides_of(read_page(write_site(tmp_path), "book/memory/cache", ""))


def test_the_slides_of_a_chapter_come_in_its_order(slides: list[Slide]) -> None:
    assert [(slide.kind, slide.title) for slide in slides] == [
        ("opening", "Caches"),
        ("", "After this chapter, you will be able to"),
        ("ask", "Predict before you read"),
        ("ask", "The answer is (b)."),
        ("", "Settled"),
        ("", "Settled"),
        ("rule", "The rule to carry away"),
        ("", "Pitfalls"),
        ("ask", "Check yourself"),
        ("ask", "Check yourself: the answer"),
        ("", "Summary"),
        ("", "You can now do"),
    ]


def test_no_slide_before_the_answer_gives_it_away(slides: list[Slide]) -> None:
    marked = [place for place, slide in enumerate(slides) for part in slide.body if part.find_class("right")]
    assert [slides[place].title for place in marked] == ["The answer is (b).", "Check yourself: the answer"]
    assert "It is 64." not in " ".join(map(words, slides[:3]))


def test_solutions_and_links_are_on_no_slide(slides: list[Slide]) -> None:
    shown = "".join(html.tostring(part, encoding="unicode") for slide in slides for part in (*slide.body, *slide.notes))
    assert "The secret is" not in shown
    assert "<a" not in shown
    assert ' id="' not in shown


def test_the_text_of_a_section_is_in_its_notes(slides: list[Slide]) -> None:
    notes = " ".join(" ".join(part.text_content() for part in slides[4].notes).split())
    assert notes.startswith(r"Half of \(2T\) is 1991")
    assert "Too large. It spills." in " ".join(part.text_content() for part in slides[7].notes)


def test_an_unknown_chapter_is_named(tmp_path: Path) -> None:
    site = write_site(tmp_path)
    with pytest.raises(UnknownName, match="cash"):
        write_decks(tmp_path, tmp_path / "slides", ["cash"], site)


MEASURE = """() => slides.map((slide, place) => {
  show(place);
  const box = slide.getBoundingClientRect();
  const small = [], out = [];
  const walker = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, around = text.parentElement;
    if (!text.data.trim() || around.closest(".foot, sub, sup, msub, msup, msubsup, mfrac, mover, munder")) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const place = range.getBoundingClientRect();
    if (parseFloat(getComputedStyle(around).fontSize) < 0.85 * SMALLEST) small.push(text.data.trim());
    if (place.right > box.right + 1 || place.bottom > box.bottom + 1 || place.left < box.left - 1) out.push(text.data);
  }
  const pictures = [...slide.querySelectorAll("img")].map((image) => image.getBoundingClientRect().height);
  return {title: slide.querySelector("h2").textContent, small, out, pictures};
})"""
"""Text that is too small (code in a sentence may be a sixth smaller than it), text outside its slide, picture sizes."""


def looked_at(browser: Any, deck: Path) -> list[dict[str, Any]]:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(deck.as_uri())
    found: list[dict[str, Any]] = page.evaluate(MEASURE.replace("SMALLEST", str(SMALLEST_TEXT)))
    page.close()
    return found


@pytest.mark.proof
@pytest.mark.alone  # it starts a browser of its own, and a process has one
def test_a_long_list_goes_to_the_notes(tmp_path: Path, browser: Any) -> None:
    item = f"<li><p>{'many words ' * 60}</p></li>"
    site = write_site(tmp_path, CHAPTER.replace("<li><p>Bytes fall by 2.</p></li>", item * 3))
    (deck,) = in_a_thread(write_decks, tmp_path, tmp_path / "slides", site=site)
    for slide in looked_at(browser, deck):
        assert (slide["small"], slide["out"]) == ([], []), slide["title"]
    assert re.search(r'<aside class="notes"><p><p>many words', deck.read_text(encoding="utf-8"))


@pytest.mark.proof
@pytest.mark.alone  # it starts a browser of its own, and a process has one
def test_the_keys_turn_slides_and_show_notes(tmp_path: Path, browser: Any) -> None:
    (deck,) = in_a_thread(write_decks, tmp_path, tmp_path / "slides", site=write_site(tmp_path))
    page = browser.new_page()
    page.goto(deck.as_uri())
    for key in ("ArrowRight", " ", "PageDown", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.url.endswith("#3")
    assert page.locator(".slide.shown h2").inner_text() == "Predict before you read"
    assert not page.locator(".slide.shown + .notes").is_visible()
    page.keyboard.press("n")
    assert "write down a letter" in page.locator(".slide.shown + .notes").inner_text()
    page.close()


@pytest.mark.proof
@pytest.mark.alone  # it starts a browser of its own, and a process has one
def test_every_slide_of_three_chapters_can_be_read_and_every_figure_is_there(tmp_path: Path, browser: Any) -> None:
    if not (SITE / "book" / "index.html").is_file():
        pytest.skip("the book is not built: run `make book`")
    for deck in in_a_thread(write_decks, ROOT, tmp_path, ["tiling", "kernel-he", "numerics"]):
        found = looked_at(browser, deck)
        for slide in found:
            assert (slide["small"], slide["out"]) == ([], []), (deck.name, slide["title"])
        page = pages.built(SITE, deck.stem).read_text(encoding="utf-8")
        body = page[page.index("<article") : page.index("</article>")]
        outside = re.sub(r"<details.*?</details>", "", body, flags=re.S)
        assert sum(len(slide["pictures"]) for slide in found) == outside.count("<figure")
        assert min(height for slide in found for height in slide["pictures"]) > 200
