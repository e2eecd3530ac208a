"""Sections of a chapter: numbered in the page, in its contents, in references and in its notebook."""

import re
import shutil
from pathlib import Path

import pytest
from helpers import small_book

from mlsys.course.pages.languages import FOLDER
from mlsys.course.pages.notebooks import chapter_notebook, numbers_sections

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")

FRONT = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
"""
CHAPTER = f"""{FRONT}
# Chapter

```{{code-cell}} ipython3
chapter = start_chapter("chapter")
```

## One

```python
## no heading
```

### Below it

(second)=
## Two

See [](#second).
"""
PAGE = "# Page\n\n## First\n\nSee [](#second) and {ref}`second`.\n"


def test_numbers_are_in_the_page_its_contents_and_references(tmp_path: Path) -> None:
    done = small_book.build(tmp_path, {"page": PAGE, "chapter": CHAPTER}, ["course_sections"])
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "_build/html/book"
    chapter, page = ((site / f"{name}.html").read_text(encoding="utf-8") for name in ("chapter", "page"))
    assert re.findall(r"<h2>(.*?)<a", chapter) == ["1. One", "2. Two"]
    assert re.findall(r"<h3>(.*?)<a", chapter) == ["Below it"]
    contents = chapter[chapter.index("page-toc") :]
    assert re.findall(r'<a class="reference internal nav-link" href="#[^"]*">\s*([^<]*)</a>', contents)[:3] == [
        "1. One",
        "Below it",
        "2. Two",
    ]
    assert page.count(">2. Two<") == 2
    assert "<h2>First<" in page


def test_a_notebook_has_the_same_numbers(tmp_path: Path) -> None:
    source = tmp_path / "chapter.md"
    source.write_text(CHAPTER.replace("See [](#second).", ""), encoding="utf-8")
    shutil.copytree(small_book.ROOT / FOLDER, tmp_path / FOLDER)
    (tmp_path / "_config.yml").write_text("repository:\n  url: https://github.com/a/b\n  branch: main\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
    prose = "\n".join(cell.source for cell in chapter_notebook(tmp_path, source).cells if cell.cell_type == "markdown")
    assert re.findall(r"^#+ .*", prose, re.M) == [
        "# Chapter",
        "## 1. One",
        "## no heading",
        "### Below it",
        "## 2. Two",
    ]


def test_a_page_that_computes_is_not_always_a_chapter(tmp_path: Path) -> None:
    for name, expected in (("chapter", True), ("errata", False)):
        source = tmp_path / f"{name}.md"
        source.write_text(CHAPTER, encoding="utf-8")
        assert numbers_sections(source) is expected
