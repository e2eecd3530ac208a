"""The page of the package that shows `grading.inspect`: its examples print what it says."""

import contextlib
import io
import linecache
import re
from pathlib import Path

import pytest

from mlsys.grading.hazards.finding import KINDS

PAGE = (Path(__file__).parents[3] / "book" / "package" / "api-grading.md").read_text(encoding="utf-8")
FIRST, *SECTIONS = PAGE.split("\n### ")


def blocks(language, text):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


@pytest.mark.parametrize("section", SECTIONS, ids=[section.split("\n", 1)[0] for section in SECTIONS])
def test_an_example_prints_what_the_page_says(section):
    heading = section.split("\n", 1)[0].lower()
    names, printed = {}, io.StringIO()
    cells = [*blocks("python", FIRST)[1:], *blocks("python", section)]
    with contextlib.redirect_stdout(printed):
        for number, cell in enumerate(cells):
            label = f"<{heading} {number}>"
            linecache.cache[label] = (len(cell), None, cell.splitlines(True), label)
            exec(compile(cell, label, "exec"), names)
    said = " ".join("".join(blocks("text", section)).split())
    assert " ".join(printed.getvalue().split()) == said
    assert said.startswith(f"{heading}:" if heading in KINDS else "")


def test_each_kind_has_a_section():
    assert [section.split("\n", 1)[0].lower() for section in SECTIONS][: len(KINDS)] == list(KINDS)
