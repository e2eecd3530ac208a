"""The built site behind a local web server, and a headless Chromium to look at it.

What opens the built site or a browser belongs to `make proof`: a cold build and these checks grow with each chapter.
"""

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing: pytest shows what matters."""


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m` does not select
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder that opens the built site, its notebooks, or a browser as proof."""
    here = [item for item in items if item.path.parent == Path(__file__).parent]
    for item in here:
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


@pytest.fixture(scope="module")
def visits(browser: Any) -> Iterator[Any]:
    """Visits of pages one after another: what is shared is fetched once, and no page finds what another one stored."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script("try { localStorage.clear(); } catch { /* a page without storage has nothing to clear */ }")
    yield context
    context.close()
