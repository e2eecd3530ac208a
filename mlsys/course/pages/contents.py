"""Pages of the book by name, as the table of contents lists them.

A page lies in the folder of its part, such as `book/performance/tiling.md`. Its name, "tiling", is also the name of its
notebook and of its entry in the concept map, so no two pages may share one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from mlsys.errors import InvalidValue

CONTENTS = "_toc.yml"


def book_pages(root: Path) -> dict[str, Path]:
    """Return the file of each page by the page's name, in the order of the table of contents.

    Args:
        root: the repository.

    Raises:
        InvalidValue: two pages have the same name.
    """
    pages: dict[str, Path] = {}
    for docname in _listed(yaml.safe_load((root / CONTENTS).read_text(encoding="utf-8"))):
        page = root / f"{docname}.md"
        if page.stem in pages:
            raise InvalidValue(
                f"{pages[page.stem].relative_to(root)} and {page.relative_to(root)} have the same name, and so would "
                "their notebooks: rename one"
            )
        pages[page.stem] = page
    return pages


def _listed(entry: Any) -> Iterator[str]:
    """Yield the pages of an entry of the table of contents: its own, then those of the entries in it."""
    if isinstance(entry, list):
        for inner in entry:
            yield from _listed(inner)
    elif isinstance(entry, dict):
        yield from (entry[key] for key in ("root", "file") if key in entry)
        for key in ("parts", "chapters", "sections"):
            yield from _listed(entry.get(key))
