"""A headless Chromium for the tests that look at pages."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first of these that is installed shows the pages; the headless shell needs half the time of the others."""
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)


PATIENCE_MS = 120_000


def patient(make: Callable[..., Any]) -> Callable[..., Any]:
    """Give what a browser opens more than Playwright's 30 s, which a page of the book can take on a busy machine."""

    def opened(**how: Any) -> Any:
        it = make(**how)
        it.set_default_timeout(PATIENCE_MS)
        return it

    return opened


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
        chromium.new_page, chromium.new_context = patient(chromium.new_page), patient(chromium.new_context)
        yield chromium
        chromium.close()
