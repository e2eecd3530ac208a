"""The parts of a chapter: the build names the one that is missing, twice there or out of place."""

import re
import sys
from pathlib import Path

import pytest
from helpers import small_book

from mlsys.course.pages.languages import Language, read_language

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_template = pytest.importorskip("course_template", reason="sphinx is not installed: mlsys[book] brings it")

TEMPLATE = (ROOT / "book" / "_chapter-template.md").read_text(encoding="utf-8")
RULE = TEMPLATE[TEMPLATE.index(":::{admonition} The rule") : TEMPLATE.index("## Measured")]
PARTS = {
    "the question": ("course-question", "course-other"),
    "the prediction": (":::{predict} ", ":::{tip} "),
    "the settled prediction": (":::{settled} ", ":::{tip} "),
    "the rule to carry away": ("course-rule", "course-other"),
    **{f"the section '{title}'": (f"\n## {title}\n", f"\n## Other {title}\n") for title in course_template.HEADINGS},
}


def faults(text: str, language: Language | None = None) -> list[str]:
    return [message for _, message in course_template.missing_parts(text, language)]


def test_the_template_has_all_parts() -> None:
    assert faults(TEMPLATE) == []


@pytest.mark.parametrize("part", PARTS)
def test_a_missing_part_is_named_with_the_cure(part: str) -> None:
    [message] = faults(TEMPLATE.replace(*PARTS[part]))
    assert message.startswith(f"the chapter lacks {part}: write `")


def test_parts_in_another_order_are_named_with_both_lines() -> None:
    text = TEMPLATE.replace("## Pitfalls", "## X").replace("## Measured", "## Pitfalls").replace("## X", "## Measured")
    [(line, message)] = course_template.missing_parts(text)
    first, second = (text[: text.index(f"## {title}")].count("\n") + 1 for title in ("Pitfalls", "Measured"))
    assert line == second
    assert message == f"Measured comes after Pitfalls (line {first}): move it before"


def test_the_rule_comes_before_the_pitfalls_and_once() -> None:
    [message] = faults(TEMPLATE.replace(RULE, "").replace("## Check yourself", f"{RULE}\n## Check yourself"))
    assert message.startswith("the rule to carry away comes after Pitfalls")
    assert faults(TEMPLATE.replace(RULE, RULE + RULE)) == ["the chapter has the rule to carry away 2 times: keep one"]


def test_a_number_written_by_hand_is_refused() -> None:
    [message] = faults(TEMPLATE.replace("## A heading that", "## 1. A heading that"))
    assert message.startswith("the section '1. A heading that says what is found' has a number of its own")


def test_headings_in_code_and_comments_do_not_count() -> None:
    assert faults(TEMPLATE + "\n```python\n## Measured\n```\n") == []


def test_a_page_in_hebrew_has_the_same_parts() -> None:
    hebrew = read_language("he")
    text = TEMPLATE
    for english, title in hebrew["headings"].items():
        text = text.replace(f"\n## {english}\n", f"\n## {title}\n")
    assert faults(text, hebrew) == []
    assert faults(text.replace("## מלכודות\n", ""), hebrew) == [
        "the chapter lacks the section 'מלכודות': write `## מלכודות`"
    ]


def test_the_build_refuses_a_chapter_and_leaves_other_pages_alone(tmp_path: Path) -> None:
    start = '```{code-cell} ipython3\nchapter = start_chapter("page")\n```\n'
    done = small_book.build(tmp_path, {"page": f"# Page\n\n{start}", "other": "# Other\n"}, ["course_template"])
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert re.search(
        r"page\.md:\d+: ERROR: the chapter lacks the question: write `:::\{admonition\} The question`", said
    )
    assert not re.search(r"other\.md:\d+: ERROR", said)
