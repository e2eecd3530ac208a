"""Pages of the book and of the built site, found by their names in whichever folder they lie."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
SITE = ROOT / "_build" / "html"


def moved() -> set[str]:
    """Addresses that pages had, which only lead on."""
    return {f"{old}.html" for old in tomllib.loads((BOOK / "moved.toml").read_text(encoding="utf-8"))}


def sources() -> list[Path]:
    """The text of every page; files and folders that begin with `_` are no pages."""
    pages = [path for path in BOOK.rglob("*.md") if not any(p.startswith("_") for p in path.relative_to(BOOK).parts)]
    return sorted(pages, key=lambda page: page.name)


def source(name: str) -> Path:
    """The text of one page."""
    [found] = [page for page in sources() if page.stem == name]
    return found


def built_pages() -> list[str]:
    """Addresses of all pages of the last build, below the site's."""
    found = sorted(path.relative_to(SITE).as_posix() for path in SITE.glob("book/**/*.html"))
    return [address for address in found if address not in moved()]


def built(site: Path, name: str) -> Path:
    """The file of one page of the built site."""
    found = [path for path in (site / "book").rglob(f"{name}.html") if path.relative_to(site).as_posix() not in moved()]
    [page] = found
    return page


def address_of(site: Path, name: str) -> str:
    """The address of one page, below the site's."""
    return built(site, name).relative_to(site).as_posix()
