"""How tests look at a page of our own in a browser: axe-core, overflow, and what it asks of other hosts."""

from pathlib import Path
from typing import Any

import pytest

LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
"""Widths of a desktop and of a phone, in light and dark."""
_RUN = """() => axe.run({resultTypes: ["violations"]}).then(({violations}) => violations
  .filter(({impact}) => ["serious", "critical"].includes(impact))
  .map(({id, help, nodes}) => `${id}: ${help}: ${nodes.length} times, first ${nodes[0].html.slice(0, 200)} `
    + nodes[0].failureSummary))"""
_WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def check_look(browser: Any, address: str) -> None:
    """Open a page in every look: nothing serious for axe-core, no scrolling sideways, no word from another host."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="axe-core is not installed: mlsys[dev] has it")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    for width, theme in LOOKS:
        # The page's policy stops scripts but its own; axe-core needs an exception, which only the test makes.
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True, reduced_motion="reduce"
        )
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(address, wait_until="load")
        page.add_style_tag(content="pre { background-image: none !important }")  # no contrast over a gradient
        page.evaluate(script)
        assert page.evaluate(_RUN) == [], (width, theme)
        assert page.evaluate(_WIDER) <= 0, (width, theme)
        own = address.partition("://")[2].partition("/")[0]
        assert [url for url in asked if not url.startswith(("data:", "file:", f"http://{own}"))] == []
        context.close()
