"""Renew the pictures of the README from what `make course` built: `make screenshots`."""

import contextlib
import functools
import http.server
import io
import threading
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console

from mlsys.grading.records import Record
from mlsys.grading.report import table

ROOT = Path(__file__).parents[1]
PICTURES = {
    "chapter": ("html/book/tiling.html", "#fig-tiling-ladder", (1180, 760)),
    "lab": ("html/book/lab-tiling.html", None, (1000, 820)),
    "feedback": ("course/feedback/wrong-mask/tiling/tiling.html", "#question-c .verdict, #question-c p", (1000, 820)),
    "verdicts": ("screenshots/verdicts.html", None, (1400, 550)),
}
"""Name of the picture -> page under `_build`, element to scroll to, width and height."""


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
    records = [Record.read(path) for path in sorted((ROOT / "_build/course/records/tiling").glob("*.json"))]
    console = Console(record=True, width=140, file=io.StringIO())
    console.print(table("Tiling: verdicts and points", [record for record in records if record]))
    page = ROOT / "_build" / "screenshots" / "verdicts.html"
    page.parent.mkdir(exist_ok=True)
    page.write_text(console.export_html(inline_styles=True), encoding="utf-8")


def main() -> None:
    """Take every picture."""
    write_verdicts()
    with served(ROOT / "_build") as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, (page_path, element, (width, height)) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            page.goto(f"{address}/{page_path}", wait_until="networkidle")
            if element:
                page.locator(element).first.evaluate("element => element.scrollIntoView({block: 'center'})")
            page.screenshot(path=ROOT / "docs" / f"{name}.png")
            print(f"docs/{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
