"""The Chromium that prints and typesets, without a window and without a network."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mlsys.errors import UserError

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Names of the browser; the first that is installed is used."""


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the system's Chromium, which can reach no other host.

    Raises:
        UserError: no Chromium is installed.
    """
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise UserError(
            "no Chromium is installed, and it makes the PDF and sets the formulas: apt-get install chromium"
        )
    # No name of a host is resolved: what is not on this disk is an error, never a request. Chromium refuses its own
    # sandbox to root; the pages are ours.
    flags = ["--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files"]
    flags += ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=flags)
        try:
            yield browser
        finally:
            browser.close()
