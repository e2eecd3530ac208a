"""Pages lie in the folder of their part, under names that no two share, and each is in the table of contents."""

import re
from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="PyYAML is not installed: mlsys[book] brings it")

from helpers.pages import BOOK, ROOT, sources

from mlsys.course.pages.contents import book_pages
from mlsys.course.pages.notebooks import build_chapters
from mlsys.errors import InvalidValue

NEXT = re.compile(r"\[[Tt]he next chapter\]\(([^)]+)\)")

TOC = """format: jb-book
root: book/index
parts:
  - chapters:
      - file: book/performance/tiling
        sections:
          - file: book/performance/overlap
  - chapters:
      - file: {last}
"""


def test_pages_come_in_the_order_of_the_contents_from_all_folders(tmp_path: Path) -> None:
    (tmp_path / "_toc.yml").write_text(TOC.format(last="book/labs/lab-tiling"))
    found = {name: page.relative_to(tmp_path).as_posix() for name, page in book_pages(tmp_path).items()}
    assert list(found) == ["index", "tiling", "overlap", "lab-tiling"]
    assert found["overlap"] == "book/performance/overlap.md"


def test_two_pages_of_one_name_are_refused_by_both_places(tmp_path: Path) -> None:
    (tmp_path / "_toc.yml").write_text(TOC.format(last="book/labs/tiling"))
    with pytest.raises(InvalidValue, match=r"book/performance/tiling\.md and book/labs/tiling\.md have the same name"):
        build_chapters(tmp_path)


def test_every_page_is_in_the_table_of_contents_and_no_name_is_taken_twice() -> None:
    assert sorted(book_pages(ROOT).values(), key=lambda page: page.name) == sources()
    assert len({page.stem for page in sources()}) == len(sources())


def test_a_link_to_the_next_chapter_leads_to_the_next_in_the_contents() -> None:
    # The translation of a chapter is no chapter of its own.
    order = [name for name in book_pages(ROOT) if f"{name.removesuffix('-he')}-he" != name]
    found = {page.stem: NEXT.findall(page.read_text(encoding="utf-8")) for page in sources() if page.stem in order}
    assert any(found.values())
    for name, targets in found.items():
        following = order[order.index(name) + 1] if targets else ""
        # A link to a place says the page's name before the dash.
        assert [target for target in targets if not target.removeprefix("#").startswith(following)] == [], name


def test_only_the_first_page_lies_outside_of_the_folders_of_parts() -> None:
    assert [page.name for page in sources() if page.parent == BOOK] == ["index.md"]
