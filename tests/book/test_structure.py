"""What every chapter has, what stands where, and how long it is, read from the pages and from the built site."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from helpers import pages

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
sys.path.insert(0, str(ROOT / "book"))
course_prose = pytest.importorskip("course_prose", reason="sphinx is not installed: mlsys[book] brings it")

import course_template  # noqa: E402
from _interactive import FIGURES  # noqa: E402
from course_concepts import chapters  # noqa: E402

from mlsys.course.pages.languages import ENGLISH, language_of  # noqa: E402

CHAPTERS = chapters(ROOT)
WORDS = (1200, 2500)
LONGER = {
    "attention": 2600,  # derives, counts, decodes, and climbs six rungs
    "compilers": 3000,  # takes one network through six stages, with an exercise for each
    "convolution": 3400,  # counts and measures four routes, two layouts and a network
    "first-kernels": 4100,  # teaches a language, and reads its compiler
    "gpu": 3200,  # maps a launch, its memories and its waits
    "kernel": 3500,  # explains the words
    "layouts": 3250,  # covers device memory and shared memory
    "memory-wall": 2700,  # covers bandwidth, energy and latency
    "multi-chip": 3200,  # covers five ways to share a step and four ways beyond a chip
    "numerics": 3000,  # covers formats, energy, sums, training and quantization
    "roofline": 3700,  # carries the model that all others use
    "roofline-practice": 3650,  # whole networks, taken apart, two phases, and a profile line by line
    "soc": 3150,  # covers blocks, schedules, clocks, heat and cars
    "systolic": 3200,  # walks three dataflows cycle by cycle
    "tiling": 3650,  # follows one prediction down to a profiler's counters
}
"""Chapters that may be longer, in words."""
TABLE_LIST_OR_LABEL = re.compile(r"^(?:\||#|\([\w-]+\)=|:{3,}).*$", re.M)
PAGE_OF = {
    "accumulate": "numerics",
    "amdahl": "limits",
    "divergence": "execution-units",
    "fit": "memory-pressure",
    "journey": "hierarchy",
    "limit": "index",
    "occupancy": "gpu",
    "overlap": "host-link",
    "packing": "sparsity",
    "parallelism": "multi-chip",
    "serving": "roofline-practice",
    "stages": "first-kernels",
    "timeline": "specialization",
    "triage": "summary",
}
"""Pages of the interactive figures that are not named for their chapter."""
PAGES = pages.built_pages()


def source(chapter: str) -> str:
    return pages.source(chapter).read_text(encoding="utf-8")


def running_words(text: str) -> int:
    """Words of the paragraphs: no code, quizzes, captions, tables and headings; a number from code is one word."""
    text = course_prose.FENCE.sub("", course_prose.FRONT_MATTER.sub("", text))
    text = TABLE_LIST_OR_LABEL.sub("", re.sub(r"^%.*$", "", text, flags=re.M))
    text = re.sub(r"\{cite:[tp]\}`[^`]*`", "", text)
    text = re.sub(r"\{glue:text\}`[^`]*`", "0", text)
    text = re.sub(r"\{[\w:-]+\}`([^`<]*)[^`]*`", r"\1", text)
    return len(re.findall(r"\w[\w'’.,-]*", text))


def test_words_are_counted_as_a_reader_would() -> None:
    text = (
        "---\na: b\n---\n# A heading\n\nOne {term}`two <tile>` {glue:text}`three-gb`, four {cite:p}`someone2020`.\n"
        "\n| a | table |\n\n```python\ncode = 1\n```\n% comment\n"
    )
    assert running_words(text) == 4


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_can_be_read_in_one_sitting(chapter: str) -> None:
    least, most = WORDS
    assert least <= running_words(source(chapter)) <= LONGER.get(chapter, most)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_all_its_parts(chapter: str) -> None:
    text = source(chapter)
    assert list(course_template.missing_parts(text)) == []
    assert len(re.findall(r"^ +caption: \|", text, re.M)) >= 2
    assert len(re.findall(r"^:::\{dropdown\} Solution$", text, re.M)) >= 3
    last = text[text.index("\n## You can now do\n") :]
    assert len(re.findall(r"\(#lab-[\w-]+\)|\(\.\./labs/lab-[\w-]+\.md\)", last)) >= 2


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_measurement_names_device_and_versions(chapter: str) -> None:
    text = source(chapter)
    measured = text[text.index("\n## Measured\n") : text.index("\n## Pitfalls\n")]
    loaded = re.findall(r"(\w+) = records\.load|(\w+), \w+ = records\.load", text)
    if loaded:
        assert "record.label" in text
    else:  # what was measured elsewhere is cited, with device and software
        assert "{cite:p}" in measured
        assert "software of" in measured


@pytest.mark.parametrize("name", FIGURES)
def test_an_interactive_figure_stands_on_one_page(name: str, site: Path) -> None:
    having = [page for page in pages.sources() if f"{{interactive}} {name}\n" in page.read_text("utf-8")]
    having = [page for page in having if language_of(page) == ENGLISH]  # a translation shows those of its English page
    page = PAGE_OF.get(name, name)
    assert [found.stem for found in having] == [page]
    built = pages.built(site, page).read_text(encoding="utf-8")
    assert built.count(f'id="interactive-{name}"') == 1
    assert f"interactive/{name}.js" in built


@pytest.mark.parametrize("page", PAGES or ["(no page is built)"])
def test_ids_are_unique_on_a_page(page: str, site: Path) -> None:
    text = (site / page).read_text(encoding="utf-8")
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.S)
    twice = [name for name, count in Counter(re.findall(r'<[^<>]*? id="([^"]*)"', text)).items() if count > 1]
    assert twice == []
