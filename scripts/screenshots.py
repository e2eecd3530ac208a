"""Renew the pictures of the README from what `make course` built: `make screenshots`.

With `--pages DIR` it takes every page of the site instead, in pieces, at the width of a desktop and of a phone, in
light and dark, to be looked at.
"""

import argparse
import contextlib
import functools
import http.server
import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from rich.console import Console

from mlsys.classroom.report import table
from mlsys.classroom.store.store import FileStore
from mlsys.course.tree import COURSE, CourseTree

ROOT = Path(__file__).parents[1]
PICTURES = {
    "chapter": ("html/book/performance/tiling.html", "#fig-tiling-ladder", (1180, 760)),
    "lab": ("html/book/labs/lab-tiling.html", None, (1000, 820)),
    "feedback": (
        "course/sample-class/feedback/wrong-mask/tiling/tiling.html",
        "#question-c .verdict, #question-c p",
        (1000, 820),
    ),
    "verdicts": ("screenshots/verdicts.html", None, (1400, 550)),
}
"""Name of the picture -> page under `_build`, element to scroll to, width and height."""


WIDTHS = {"desktop": 1280, "phone": 390}
PIECE = 8000
"""Height of one picture of a page: Chromium draws nothing below 16,384."""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves `_build` without a line per request."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve `folder` on a free local port, and yield the address."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def write_verdicts() -> None:
    """Write the table that `mlsys grade` prints as a page."""
    records = FileStore(CourseTree(ROOT / COURSE).sample_course).records("tiling").values()
    console = Console(record=True, width=140, file=io.StringIO())
    console.print(table("Tiling: verdicts and points", [record for record in records if record]))
    page = ROOT / "_build" / "screenshots" / "verdicts.html"
    page.parent.mkdir(exist_ok=True)
    page.write_text(console.export_html(inline_styles=True), encoding="utf-8")


def take_pictures(browser: Any, address: str) -> None:
    """Take the pictures of the README."""
    for name, (page_path, element, (width, height)) in PICTURES.items():
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        page.goto(f"{address}/{page_path}", wait_until="networkidle")
        if element:
            page.locator(element).first.evaluate("element => element.scrollIntoView({block: 'center'})")
        page.screenshot(path=ROOT / "docs" / f"{name}.png")
        print(f"docs/{name}.png")


def take_pages(browser: Any, address: str, folder: Path) -> None:
    """Take every page in both widths and both color themes."""
    folder.mkdir(parents=True, exist_ok=True)
    for width, pixels in WIDTHS.items():
        for theme in ("light", "dark"):
            page = browser.new_page(viewport={"width": pixels, "height": 900}, color_scheme=theme)
            for path in sorted((ROOT / "_build" / "html" / "book").rglob("*.html")):
                page.goto(f"{address}/{path.relative_to(ROOT / '_build')}", wait_until="networkidle")
                page.add_style_tag(content="* { transition: none !important }")  # or the sidebar is caught sliding
                height = page.evaluate("document.documentElement.scrollHeight")
                for number, top in enumerate(range(0, height, PIECE)):
                    clip = {"x": 0, "y": top, "width": pixels, "height": min(PIECE, height - top)}
                    name = f"{path.stem}-{width}-{theme}-{number}.png"
                    page.screenshot(path=folder / name, full_page=True, clip=clip)
            page.close()
    print(folder)


def main() -> None:
    """Take the pictures of the README, or every page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=Path, metavar="DIR", help="take every page of the site into this folder")
    pages = parser.parse_args().pages
    if not pages:
        write_verdicts()
    with served(ROOT / "_build") as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        if pages:
            take_pages(browser, address, pages)
        else:
            take_pictures(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
