"""Numbers in the prose: found where they stand bare, and nowhere else."""

import sys
from pathlib import Path

import pytest
from helpers.pages import sources

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_prose = pytest.importorskip("course_prose", reason="sphinx is not installed: mlsys[book] brings it")

PAGES = [*sources(), ROOT / "book" / "_chapter-template.md"]


@pytest.mark.parametrize(
    "text",
    [
        "It moves 137 GB.",
        "A rate of 3.35 TB/s is high.",
        "It takes 1,024 ms.",
        "It is 43% of the peak.",
        "It needs 153 FLOP per byte.",
        "A word costs 640\npJ in all.",
        "A tile of $64$ KiB.",
        "| size | 40 MiB |",
        "```{quiz} x\nquestion: Are 96 KiB enough?\n```\n",
        "```{code-cell}\n---\nmystnb:\n  figure:\n    caption: |\n      It stays below 80 ms.\n---\nx\n```\n",
    ],
)
def test_a_bare_number_with_a_unit_is_found(text: str) -> None:
    assert len(list(course_prose.bare_numbers(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: 3 GB\n---\n",
        "It moves {glue:text}`moved`.",
        "It moves {glue:text}`moved` GB.",
        "Write `sleep(3 s)`.",
        "Tiles of 128, sides of 4,096, four warps.",
        "In FP16, INT8 and 32-bit words.",
        "$$T = 3 s$$ and $t = 5 ms$",
        "% a comment about 3 GB",
        "```python\nx = 1  # 3 GB\n```\n",
        "```{code-cell}\nprint('3 GB')\n```\n",
        "The 1980s, section 3 shows it.",
    ],
)
def test_other_numbers_and_other_places_are_left_alone(text: str) -> None:
    assert list(course_prose.bare_numbers(text)) == []


def test_the_line_of_a_number_is_that_of_the_page() -> None:
    text = "---\na: b\n---\n\n```python\nx\n```\n\nMuch {glue:text}`a`,\nand 3 GB.\n"
    assert list(course_prose.bare_numbers(text)) == [(10, "3 GB")]


def test_an_exception_with_its_reason_lets_a_number_stand() -> None:
    assert list(course_prose.faults("% given: 3 GB: printed in the cited table\n\nIt moves 3 GB.\n")) == []


def test_a_number_without_exception_is_a_fault_that_says_the_cure() -> None:
    [(line, message)] = course_prose.faults("It moves 3 GB.\n")
    assert line == 1
    assert "{glue:text}" in message
    assert "% given: 3 GB: REASON" in message


def test_an_exception_that_nothing_needs_is_a_fault() -> None:
    [(line, message)] = course_prose.faults("It moves {glue:text}`x`.\n\n% given: 3 GB: printed in the cited table\n")
    assert line == 3
    assert "not needed" in message


def test_a_sixth_exception_is_a_fault() -> None:
    numbers = range(3, 9)
    text = "".join(f"% given: {n} GB: printed\n" for n in numbers) + "\n" + " ".join(f"It has {n} GB." for n in numbers)
    [(_, message)] = course_prose.faults(text)
    assert "6 numbers are given" in message


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_numbers_of_a_page_come_from_code_or_say_why_not(page: Path) -> None:
    assert list(course_prose.faults(page.read_text(encoding="utf-8"))) == []
