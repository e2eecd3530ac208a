"""What a chapter promises, it checks: each objective has a quiz or an exercise of the same page."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from helpers import pages

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_concepts = pytest.importorskip("course_concepts", reason="sphinx is not installed: mlsys[book] brings it")

FILE = Path(__file__).with_name("objectives.toml")
CHECKED = tomllib.loads(FILE.read_text(encoding="utf-8"))
OBJECTIVES = re.compile(r"^After this chapter, you will be able to\n\n((?:- .*\n(?:  .*\n)*)+)", re.M)


def objectives(text: str) -> list[str]:
    """The objectives of a chapter, each on one line."""
    [found] = OBJECTIVES.findall(text)
    return [" ".join(item.split()) for item in re.split(r"^- ", found, flags=re.M)[1:]]


def test_objectives_are_read_with_their_second_lines() -> None:
    text = "After this chapter, you will be able to\n\n- do this,\n  and that;\n- count.\n\n:::{predict} x\n"
    assert objectives(text) == ["do this, and that;", "count."]


@pytest.mark.parametrize("chapter", course_concepts.chapters(ROOT))
def test_every_objective_has_a_quiz_or_an_exercise(chapter: str) -> None:
    text = pages.source(chapter).read_text(encoding="utf-8")
    promised, checked = objectives(text), CHECKED.get(chapter, {})
    assert len(promised) == len(checked), f"name in {FILE.name} what checks each objective of {chapter}"
    for objective, first_words in zip(promised, checked, strict=True):
        assert objective.startswith(first_words), f"{FILE.name}, [{chapter}]: is this still checked as it was?"
    quizzes = set(re.findall(r"^```\{quiz\} (\S+)$", text, re.M))
    exercises = {int(number) for number in re.findall(r"^\*\*(\d+)\. ", text[text.index("\n## Exercises\n") :], re.M)}
    for first_words, checks in checked.items():
        assert checks, f"{chapter}: nothing checks {first_words!r}"
        assert set(checks) <= quizzes | exercises, f"{chapter}: {first_words!r}"


def test_no_chapter_is_listed_that_is_gone() -> None:
    assert set(CHECKED) <= set(course_concepts.chapters(ROOT))
