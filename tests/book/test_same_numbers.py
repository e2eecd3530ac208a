"""No two pages give one quantity two values: a name that pages share for a number stands for one number."""

import json
import re
from pathlib import Path

import pytest
from helpers.pages import ROOT, sources

from mlsys.course.pages.translation import changes, original_of

GLUED = ROOT / "_build" / "jupyter_execute" / "book"
TRANSLATED = [page for page in sources() if original_of(page)]
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def read_glued(folder: Path) -> dict[str, dict[str, str]]:
    """By name of a number: what each page of the last build says for it."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(folder.rglob("*.glue.json")):
        for name, output in json.loads(path.read_text(encoding="utf-8")).items():
            text = str(output["data"]["text/plain"]).strip("'\"")
            found.setdefault(name, {})[path.name.removesuffix(".glue.json")] = text
    return found


def value(text: str) -> tuple[float, ...] | str:
    """The numbers of a text, so that `4.50` is `4.5`; a text without a number is itself."""
    return tuple(float(number.replace(",", "")) for number in NUMBER.findall(text)) or text


def disagreements(found: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    return {name: pages for name, pages in found.items() if len({value(text) for text in pages.values()}) > 1}


def test_a_disagreement_is_found_and_a_way_of_writing_is_none() -> None:
    assert disagreements({"peak": {"one": "2,250 TFLOP/s", "two": "2250"}, "x": {"one": "4.50", "two": "4.5"}}) == {}
    assert list(disagreements({"peak": {"one": "312 TFLOP/s", "two": "624 TFLOP/s"}})) == ["peak"]


def test_pages_that_share_a_name_say_the_same_number(site: Path) -> None:
    found = read_glued(GLUED)
    assert sum(len(pages) > 1 for pages in found.values()) > 10, "pages share names at all"
    assert disagreements(found) == {}, "correct one of them, or give the other quantity a name of its own"


@pytest.mark.parametrize("page", TRANSLATED, ids=lambda page: page.stem)
def test_a_translation_has_the_numbers_of_its_page(page: Path, site: Path) -> None:
    found, original = read_glued(GLUED), original_of(page)
    assert original
    ours, theirs = ({name for name, pages in found.items() if of in pages} for of in (original.stem, page.stem))
    assert ours
    assert ours == theirs


@pytest.mark.parametrize("page", TRANSLATED, ids=lambda page: page.stem)
def test_a_translation_that_is_up_to_date_shows_all_of_them(page: Path) -> None:
    original = original_of(page)
    assert original
    ours, theirs = (
        {*re.findall(r"\{glue:text\}`([\w-]+)`", text.read_text(encoding="utf-8"))} for text in (original, page)
    )
    assert changes(page) or ours == theirs
