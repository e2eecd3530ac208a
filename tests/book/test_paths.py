"""The glossary, the paths and the weeks lead through the whole book: nothing is left out, nothing comes too early."""

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from helpers import pages

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_concepts = pytest.importorskip("course_concepts", reason="sphinx is not installed: mlsys[book] brings it")

import course_paths  # noqa: E402

CONCEPTS = course_concepts.read_concepts(ROOT)
PATHS = course_paths.read_paths(ROOT)
LINK = re.compile(r"\(\.\./(?:[\w-]+/)+([\w-]+)\.md\)")


def terms() -> list[str]:
    """The terms of the glossary, read from its page."""
    text = pages.source("glossary").read_text(encoding="utf-8")
    body = text[text.index("```{glossary}\n") + len("```{glossary}\n") :]
    return re.findall(r"^([^\s:].*)$", body[: body.index("\n```")], re.M)


def used_in(chapter: str) -> set[str]:
    """The terms that a chapter links to, in lower case."""
    text = " ".join(pages.source(chapter).read_text(encoding="utf-8").split())
    links = re.findall(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`", text)
    return {link.strip().lower() for link in links}


def test_every_term_is_explained_in_one_chapter() -> None:
    listed = [term for entry in CONCEPTS.values() for term in entry.get("explains", [])]
    assert [term for term, count in Counter(listed).items() if count > 1] == []
    assert sorted(set(terms()) - set(listed)) == [], "list them under `explains` of a chapter in book/concepts.toml"
    assert sorted(set(listed) - set(terms())) == [], "book/concepts.toml: the glossary has no such term"


@pytest.mark.parametrize("chapter", CONCEPTS)
def test_a_chapter_links_to_the_terms_that_it_explains(chapter: str) -> None:
    explained = {term.lower() for term in CONCEPTS[chapter].get("explains", [])}
    assert explained - used_in(chapter) == set(), "link to the glossary where the chapter explains it: {term}`...`"


def test_every_term_leads_to_its_first_use_in_the_chapter(site: Path) -> None:
    built = pages.built(site, "glossary")
    places = re.findall(
        r'class="course-explained">Explained in <a [^>]*href="([^"#]+)#([^"]+)"', built.read_text("utf-8")
    )
    assert len(places) == len(terms())
    missing = [
        (page, name)
        for page, name in places
        if f'id="{name}"' not in (built.parent / page).resolve().read_text(encoding="utf-8")
    ]
    assert missing == []


def test_most_terms_lead_to_a_picture_in_the_section_that_explains_them(site: Path) -> None:
    built = pages.built(site, "glossary")
    places = re.findall(r', with <a [^>]*href="([^"#]+)#([^"]+)">a picture</a>', built.read_text("utf-8"))
    assert len(places) > len(terms()) / 2
    texts = {page: (built.parent / page).resolve().read_text(encoding="utf-8") for page, _ in places}
    assert [place for page, place in places if not re.search(rf'<figure[^>]* id="{place}"', texts[page])] == []


def test_there_is_a_path_for_each_of_five_aims() -> None:
    listed = tomllib.loads((ROOT / course_paths.DATA).read_text(encoding="utf-8"))
    assert list(PATHS) == list(listed)
    assert len(PATHS) == 5


@pytest.mark.parametrize("aim", PATHS)
def test_nothing_on_a_path_comes_before_what_it_needs(aim: str) -> None:
    read: set[str] = set()
    for chapter in PATHS[aim].chapters:
        assert set(CONCEPTS[chapter]["needs"]) <= read
        read.add(chapter)
    assert set(PATHS[aim].goals) <= read
    wanted = {need for name in read for need in CONCEPTS[name]["needs"]} | set(PATHS[aim].goals)
    assert read == wanted, "only what somebody on the path needs"


def test_together_the_paths_reach_every_chapter() -> None:
    reached = {chapter for path in PATHS.values() for chapter in path.chapters}
    assert set(CONCEPTS) - reached == {"summary"}, "the page names it for all of them"


def test_a_goal_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tmp_path / "paths.toml"
    wrong.write_text('[one]\naim = "a"\nresult = "b"\ngoals = ["primus"]\nlabs = ["lab-tiling"]\n')
    monkeypatch.setattr(course_paths, "DATA", str(wrong))
    with pytest.raises(ValueError, match=r"\[one\] names primus, which _toc\.yml does not list"):
        course_paths.read_paths(ROOT)


def weeks() -> list[list[str]]:
    """Names of the pages of each week of the instructor's plan, in order."""
    text = pages.source("instructor").read_text(encoding="utf-8")
    plan = text[text.index("\n## A term\n") : text.index("\n## A class, from roster to grades\n")]
    return [LINK.findall(row) for row in re.findall(r"^\| \d+ \|.*$", plan, re.M)]


def test_the_plan_of_a_term_has_every_chapter_and_every_lab() -> None:
    planned = {page for week in weeks() for page in week}
    labs = {page.stem for page in pages.sources() if page.parent.name == "labs"}
    assert (set(CONCEPTS) | labs) - planned == set()


def test_no_week_of_the_plan_needs_a_later_one() -> None:
    when = {page: number for number, week in reversed([*enumerate(weeks(), 1)]) for page in week}
    late = [(name, need) for name in CONCEPTS for need in CONCEPTS[name]["needs"] if when[need] > when[name]]
    assert late == []
