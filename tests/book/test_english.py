"""Turns of phrase that the build refuses: each is found where nobody would say it, and nowhere else."""

import sys
from pathlib import Path

import pytest
from helpers import small_book
from helpers.pages import sources

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_english = pytest.importorskip("course_english", reason="sphinx is not installed: mlsys[book] brings it")

LAB = """# %% [markdown]
# # A lab
#
# Faster arithmetic helps nothing.

# %% mlsys={"role": "setup"}
# whoever reads the code
x = "helps nothing"

# %% [markdown]
# What stands here is text.
"""
TEXTS = [*sources(), ROOT / "book" / "_chapter-template.md", ROOT / "README.md", *sorted(ROOT.glob("labs/*/lab.py"))]


@pytest.mark.parametrize("phrase", course_english.PHRASES, ids=lambda phrase: phrase.name)
def test_a_phrase_is_found_in_its_example_and_not_in_a_good_sentence(phrase: course_english.Phrase) -> None:
    assert phrase.pattern.search(phrase.hit)
    assert phrase.pattern.search(phrase.hit.replace(" ", "\n"))
    assert not phrase.pattern.search(phrase.passed)
    assert phrase.reason
    assert phrase.better


@pytest.mark.parametrize(
    "text",
    [
        "```python\nhelps nothing\n```\n",
        "Write `stands under`.",
        "% it helps nothing\n",
    ],
)
def test_code_and_comments_are_left_alone(text: str) -> None:
    assert list(course_english.stilted(text)) == []


def test_quizzes_and_captions_are_read() -> None:
    quiz = "```{quiz} x\nquestion: What helps nothing?\n```\n"
    caption = "```{code-cell}\n---\nmystnb:\n  figure:\n    caption: |\n      The answer stands here.\n---\nx\n```\n"
    assert len(list(course_english.stilted(quiz + caption))) == 2


def test_the_line_of_a_lab_is_that_of_its_file() -> None:
    assert sorted(line for line, _ in course_english.stilted(course_english.lab_prose(LAB))) == [4, 11]


def test_the_build_names_page_and_lab_with_the_line_and_better_words(tmp_path: Path) -> None:
    lab = tmp_path / "labs" / "one" / "lab.py"
    lab.parent.mkdir(parents=True)
    lab.write_text(LAB)
    done = small_book.build(tmp_path, {"page": "# Page\n\nThe answer\nstands under a heading.\n"}, ["course_english"])
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "page.md:4: ERROR: 'stands' (stands)" in said
    assert "better: is, are" in said
    assert "lab.py:4: ERROR: 'helps nothing' (helps-nothing)" in said


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem if path.suffix == ".md" else path.parent.name)
def test_no_page_lab_or_readme_has_such_a_phrase(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = course_english.lab_prose(text)
    assert sorted(course_english.stilted(text)) == []
