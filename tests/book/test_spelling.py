"""Words of all English pages, against a dictionary that lies on the disk and the project's own list of terms."""

import re
import sys
from pathlib import Path

import pytest
from helpers.pages import BOOK, sources

from mlsys.course.pages.languages import ENGLISH, language_of

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_prose = pytest.importorskip("course_prose", reason="sphinx is not installed: mlsys[book] brings it")
spellchecker = pytest.importorskip("spellchecker", reason="pyspellchecker is not installed: mlsys[dev] has it")

TERMS = Path(__file__).parent / "terms.txt"
PAGES = [
    *(page for page in sources() if language_of(page) == ENGLISH),
    BOOK / "_chapter-template.md",
    *sorted(ROOT.glob("*.md")),
]
NO_WORDS = re.compile(r"```.*?```|https?://\S+|`[^`]*`|<[^>]*>|\S+@\S+", re.S)
WORD = re.compile(r"(?<![\w-])[A-Za-z][a-z]{2,}(?:['’][a-z]+)?(?![\w])")
"""Abbreviations in capitals and names with capitals inside are left alone."""


def words_of(page: Path) -> set[str]:
    text = page.read_text(encoding="utf-8")
    text = course_prose.prose(text) if page.is_relative_to(BOOK) else text
    return {word.replace("’", "'").removesuffix("'s").lower() for word in WORD.findall(NO_WORDS.sub(" ", text))}


@pytest.fixture(scope="module")
def known() -> "spellchecker.SpellChecker":
    checker = spellchecker.SpellChecker(language="en")
    checker.word_frequency.load_words(TERMS.read_text(encoding="utf-8").split())
    return checker


def test_a_misspelt_word_is_found(known: "spellchecker.SpellChecker") -> None:
    words = ["accelerator", "bandwidth", "roofline", "neighbour"]
    assert known.unknown(words) == set()
    misspelt = {word.replace("cc", "c").replace("dw", "w").replace("oo", "o").replace("gh", "g") for word in words}
    assert known.unknown(misspelt) == misspelt


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_every_word_of_a_page_is_known(page: Path, known: "spellchecker.SpellChecker") -> None:
    unknown = known.unknown(words_of(page))
    assert unknown == set(), f"correct them in {page.name}, or add a right one to {TERMS.relative_to(ROOT)}"
