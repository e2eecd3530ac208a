"""Pages stay light: what a reader loads for one page, over what the whole site shares."""

import gzip
import re
from functools import cache
from pathlib import Path

import pytest
from helpers.pages import built_pages

PAGES = built_pages()
PAGE_LIMIT = 300_000
BLOCKING_LIMIT = 150_000
"""Compressed bytes that a page waits for before it shows anything: less than a second on slow 4G."""
IMAGE_LIMIT = 150_000
SHARED = ("mathjax", "scripts/", "documentation_options", "doctools", "sphinx_highlight", "searchtools", "design-tabs")
"""Scripts of the theme and of MathJax, which every page uses and the browser keeps."""


@pytest.mark.parametrize("name", PAGES or ["(no page is built)"])
def test_page_with_its_own_scripts_is_below_its_limit(name: str, site: Path) -> None:
    page = site / name
    text = page.read_text(encoding="utf-8")
    sources = re.findall(r'<script[^>]* src="([^"?]+)', text)
    own = {(page.parent / source).resolve() for source in sources if not any(part in source for part in SHARED)}
    assert all(path.is_file() for path in own), own
    assert sum(map(compressed_bytes, (page, *own))) < PAGE_LIMIT


@cache
def compressed_bytes(path: Path) -> int:
    """Many pages wait for the same files, each of which is compressed once."""
    return len(gzip.compress(path.read_bytes()))


def sent_bytes(path: Path) -> int:
    return compressed_bytes(path) if path.suffix == ".svg" else path.stat().st_size


def test_no_image_is_heavy(site: Path) -> None:
    """As they cross the network: drawings are text, which every web server compresses."""
    heavy = [path.name for path in (site / "_images").iterdir() if sent_bytes(path) > IMAGE_LIMIT]
    assert heavy == []


@pytest.mark.parametrize("name", PAGES or ["(no page is built)"])
def test_little_must_arrive_before_a_page_shows(name: str, site: Path) -> None:
    page = site / name
    text = page.read_text(encoding="utf-8")
    scripts = re.findall(r'<script(?![^>]*\b(?:defer|async)\b)[^>]* src="([^"?]+)', text)
    styles = re.findall(r'<link(?=[^>]*rel="stylesheet")[^>]* href="([^"?]+)', text)
    waited_for = {(page.parent / source).resolve() for source in (*scripts, *styles)}
    assert len(waited_for) > 5, "the page was not read at all"
    assert sum(map(compressed_bytes, (page, *waited_for))) < BLOCKING_LIMIT
