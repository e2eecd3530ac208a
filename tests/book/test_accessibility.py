"""axe-core on every page: nothing serious or critical, in light and dark, at the width of a phone and of a desktop."""

from pathlib import Path
from typing import Any

import pytest
from helpers.pages import built_pages

pytestmark = [pytest.mark.proof, pytest.mark.browser]
axe = pytest.importorskip("axe_playwright_python.base", reason="axe-core is not installed: mlsys[dev] has it")

PAGES = built_pages()
WIDTHS = {"phone": 390, "desktop": 1280}
BOTH = [("desktop", "light"), ("phone", "dark")]
"""Pages from docstrings are long and alike: two of the four ways to look at them show all colors and both layouts."""
SETTLED_MS = 400
"""The theme gives scrolling boxes their tab stops some time after a change of width."""
FLAT = ".pst-scrollable-table-container, pre { background-image: none !important }"
"""Without the shadows at the edges of what scrolls: axe-core measures no contrast over a gradient."""

ONCE = """() => {
  axe.configure({rules: [{id: "color-contrast", selector: "[data-once]"}]});
  const chains = new Map(), seen = new Set();
  const chain = (element) => {
    if (!element) return "";
    if (!chains.has(element)) {
      const look = getComputedStyle(element), before = chain(element.parentElement);
      const covers = element instanceof SVGElement || look.position !== "static" || look.transform !== "none"
        || [look.marginTop, look.marginLeft].some((margin) => parseFloat(margin) < 0);
      chains.set(element, [before, element.localName, element.className, look.backgroundColor, look.backgroundImage,
        look.opacity, look.filter, covers ? chains.size : ""].join("|"));
    }
    return chains.get(element);
  };
  for (const element of document.querySelectorAll("body *")) {
    element.removeAttribute("data-once");
    if (!element.checkVisibility({visibilityProperty: true})) continue;
    const text = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const look = getComputedStyle(element);
    const key = [chain(element), text, look.color, look.fontSize, look.fontWeight, look.textShadow].join("|");
    if (seen.has(key)) continue;
    seen.add(key);
    element.setAttribute("data-once", "");
  }
}"""
"""Contrast, most of the work, is measured once for what looks alike: the same tags, classes and backgrounds from the
page down to the text, the same font. What is positioned, moved or drawn may lie over something else, so it and what is
in it count as a look of their own."""

RUN = """() => axe.run({resultTypes: ["violations"]}).then(({violations}) => violations
  .filter(({impact}) => ["serious", "critical"].includes(impact))
  .map(({id, help, nodes}) => `${id}: ${help}: ${nodes.length} times, first ${nodes[0].html.slice(0, 200)} `
    + nodes[0].failureSummary))"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every page in light and dark at both widths, page by page."""
    looks = [
        (page, width, theme)
        for page in PAGES or ["(no page is built)"]
        for width in WIDTHS
        for theme in ("light", "dark")
        if "/api-" not in page or (width, theme) in BOTH
    ]
    metafunc.parametrize(("page", "width", "theme"), looks, indirect=["page"], scope="module")


@pytest.fixture(scope="module")
def page(request: pytest.FixtureRequest, visits: Any, address: str) -> Any:
    """A page with axe-core in it, without transitions that would be caught half-way."""
    opened = visits.new_page()
    opened.goto(f"{address}/{request.param}", wait_until="load")
    opened.add_style_tag(content="*, ::before, ::after { transition: none !important; animation: none !important }")
    opened.add_style_tag(content=FLAT)
    opened.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    yield opened
    opened.close()


def test_nothing_keeps_a_reader_out(page: Any, width: str, theme: str) -> None:
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    if page.viewport_size != (size := {"width": WIDTHS[width], "height": 900}):
        page.set_viewport_size(size)
        page.wait_for_timeout(SETTLED_MS)
    page.evaluate(ONCE)
    assert page.evaluate(RUN) == []
