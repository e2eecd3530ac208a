"""Numbers in running text: what is counted, and what is not."""

import sys
from pathlib import Path

import pytest
from helpers import small_book

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_density = pytest.importorskip("course_density", reason="sphinx is not installed: mlsys[book] brings it")

START = '```{code-cell} ipython3\nchapter = start_chapter("page")\n```\n'


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("It moves {glue:text}`moved` in 3 steps.", (2, 6)),
        ("An A100 in FP16 runs one 2D product.", (0, 8)),
        ("With $n = 5$ and 1,024 rows, 12% and -3.5.", (4, 9)),
        ("| 1 | 2 |\n|---|---|\n| 3 | 4 |\n", (0, 0)),
        ("```{quiz} x\nquestion: 1 or 2?\n```\n", (0, 0)),
        (":::{dropdown} Solution\n1, 2, 3.\n:::\n", (0, 0)),
        ("## 3 things\n\n% given: 3 GB: printed\n", (0, 0)),
        ("As {cite:p}`someone2020` and [this](page-2.md) say.", (0, 4)),
    ],
)
def test_numbers_and_words_are_counted_as_a_reader_would(text: str, counted: tuple[int, int]) -> None:
    assert course_density.density(text) == counted


def test_a_chapter_with_too_many_numbers_fails_the_build(tmp_path: Path) -> None:
    crowded = "It went from 1 to 2 to 3 to 4 to 5 in all.\n"
    pages = {"page": f"# Page\n\n{START}\n{crowded}", "other": f"# Other\n\n{crowded}"}
    done = small_book.build(tmp_path, pages, ["course_density"])
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "page.md: ERROR: the text has 5 numbers in 14 words, 35.7 in 100, and 8 are allowed" in said
    assert "other.md: ERROR" not in said
