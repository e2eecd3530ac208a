"""The built site behind a local web server, and a headless Chromium to look at it.

What opens the built site or a browser belongs to `make proof`: a cold build and these checks grow with each chapter.
"""

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing: pytest shows what matters."""


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m` does not select
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of the built site, of its notebooks, or in a browser as proof."""
    for item in items:
        if {"site", "notebook_path", "browser"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.proof)


@pytest.fixture
def closed_figures() -> Iterator[None]:
    """Close what a test has drawn."""
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    if not (SITE / "book" / "index.html").is_file():
        pytest.skip("the book is not built: run `make book`")
    return SITE


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address of the site on a free port of this machine."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """A headless Chromium of this machine."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: run `apt-get install chromium`")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: mlsys[dev] has it")
    # Chromium refuses its own sandbox to root; the pages are ours.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield chromium
        chromium.close()
