"""The built pages as a browser shows them: they need nobody else's server, and they fit the screen."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from helpers.pages import built_pages, source

from mlsys.course.pages.languages import language_of, read_language

pytestmark = pytest.mark.browser

PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
PAGES = built_pages()
"""Pages of the last build; without one there is nothing to look at and `site` skips with the reason."""

WIDER_THAN_SCREEN = """() => {
  const scrolls = (element) => {
    for (let box = element.parentElement; box; box = box.parentElement) {
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(box).overflowX) && box !== document.body
          && box !== document.documentElement) return true;
    }
    return false;
  };
  return [...document.querySelectorAll(".bd-article-container *")]
    .filter((element) => {
      const box = element.getBoundingClientRect();
      return box.width > 0 && box.right > window.innerWidth + 1 && !scrolls(element);
    })
    .map((element) => element.outerHTML.slice(0, 120));
}"""


@pytest.fixture(scope="module", params=PAGES or ["(no page is built)"])
def page_path(request: pytest.FixtureRequest, site: Path) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def visit(visits: Any, address: str, page_path: str) -> dict[str, Any]:
    """One look at a page: what it asked the network for, what it complained about, and the page itself."""
    page = visits.new_page()
    page.set_viewport_size(DESKTOP)
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("response", lambda reply: complaints.append(f"{reply.status} {reply.url}") if reply.status >= 400 else None)
    page.goto(f"{address}/{page_path}", wait_until="networkidle")
    yield {"page": page, "requests": requests, "complaints": complaints}
    page.close()


def test_no_request_leaves_the_site(visit: dict[str, Any], address: str) -> None:
    elsewhere = [url for url in visit["requests"] if not url.startswith((address, "data:", "blob:"))]
    assert visit["requests"], "the page was not loaded at all"
    assert not elsewhere


def test_console_is_silent(visit: dict[str, Any]) -> None:
    assert not visit["complaints"]


def test_every_picture_has_alt_text_that_says_something(visit: dict[str, Any]) -> None:
    alts = visit["page"].eval_on_selector_all("main img", "images => images.map(i => i.alt)")
    assert all(len(alt) > 40 and alt != "logo" for alt in alts), alts


def test_formulas_are_typeset(visit: dict[str, Any]) -> None:
    page = visit["page"]
    formulas = page.locator("main .math").count()
    if formulas:
        page.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
        page.evaluate("MathJax.startup.promise")
    assert page.locator("main mjx-container").count() == formulas
    fonts = "Promise.all([...document.fonts].map(f => f.family.startsWith('MJX') ? f.status : 'other'))"
    assert "error" not in page.evaluate(fonts)


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_nothing_is_wider_than_the_screen(visit: dict[str, Any], size: dict[str, int]) -> None:
    page = visit["page"]
    page.set_viewport_size(size)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert page.evaluate(WIDER_THAN_SCREEN) == []


def test_internal_links_lead_somewhere(visit: dict[str, Any], site: Path, address: str) -> None:
    dead = []
    for href in visit["page"].eval_on_selector_all("a[href]", "links => links.map(a => a.href)"):
        if not href.startswith(address):
            continue
        parts = urlsplit(href)
        target = site / unquote(parts.path).lstrip("/")
        named = f'id="{unquote(parts.fragment)}"' if parts.fragment else ""
        if not target.is_file() or named not in target.read_text(encoding="utf-8", errors="replace"):
            dead.append(href)
    assert not dead


def test_notebook_pages_offer_colab_and_a_download(visit: dict[str, Any], page_path: str, site: Path) -> None:
    links = visit["page"].eval_on_selector_all(".course-notebook a", "links => links.map(a => [a.textContent, a.href])")
    if not links:
        assert "tiling" not in page_path
        return
    (colab, colab_url), (download, download_url) = links
    words = read_language(language_of(source(Path(page_path).stem)))["page"]
    assert (colab, download) == (words["colab"], words["download"])
    path = urlsplit(download_url).path.lstrip("/")
    assert (site / path).is_file()
    assert colab_url.startswith("https://colab.research.google.com/github/")
    assert colab_url.endswith(path), "Colab opens the file that the site offers"
