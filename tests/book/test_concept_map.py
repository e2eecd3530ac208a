"""The concept map and the contents agree, and each disagreement is named with its cure."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_concepts = pytest.importorskip("course_concepts", reason="sphinx is not installed: mlsys[book] brings it")

CHAPTER = "---\nkernelspec:\n  name: python3\n---\n\n# {title}\n"
TOC = "parts:\n  - chapters:\n      - file: book/first\n      - file: book/prose\n      - file: book/second\n"
CONCEPTS = '[first]\nneeds = []\ngives = "a"\n\n[second]\nneeds = ["first"]\ngives = "b"\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text(TOC)
    (tmp_path / "book" / "concepts.toml").write_text(CONCEPTS)
    (tmp_path / "book" / "prose.md").write_text("# No chapter\n")
    for name in ("first", "second"):
        (tmp_path / "book" / f"{name}.md").write_text(CHAPTER.format(title=name.capitalize()))
    return tmp_path


def test_chapters_come_in_the_order_of_the_contents(tree: Path) -> None:
    assert list(course_concepts.read_concepts(tree)) == ["first", "second"]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("[second]", "[third]", "does not say what chapter 'second' needs: add"),
        ('needs = ["first"]', 'needs = ["primus"]', "chapter 'second' needs primus, which does not come before it"),
        ("needs = []", 'needs = ["second"]', "chapter 'first' needs second, which does not come before it"),
        ("[first]", '[gone]\nneeds = []\ngives = "c"\n\n[first]', "has gone, which _toc.yml does not list"),
    ],
)
def test_a_disagreement_is_named(old: str, new: str, complaint: str, tree: Path) -> None:
    (tree / "book" / "concepts.toml").write_text(CONCEPTS.replace(old, new))
    with pytest.raises(ValueError, match=complaint):
        course_concepts.read_concepts(tree)


def test_the_picture_is_described_by_its_arrows(tree: Path) -> None:
    concepts = course_concepts.read_concepts(tree)
    names = course_concepts.titles(tree, list(concepts))
    assert "Second builds on First" in course_concepts.described(concepts, names)


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    concepts = {"a": {"needs": []}, "b": {"needs": ["a"]}, "c": {"needs": ["a", "b"]}, "d": {"needs": ["a"]}}
    assert course_concepts.arrows(concepts) == {"a": [], "b": ["a"], "c": ["b"], "d": ["a"]}


def test_the_books_own_map_is_whole() -> None:
    concepts = course_concepts.read_concepts(ROOT)
    assert "tiling" in concepts
    assert set(concepts) <= set(course_concepts.parts(ROOT))
    assert all(course_concepts.parts(ROOT)[name] for name in concepts)


def test_every_chapter_and_every_part_is_written_once_and_no_two_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib.pyplot as plt

    concepts = course_concepts.read_concepts(ROOT)
    names, part_of = course_concepts.titles(ROOT, list(concepts)), course_concepts.parts(ROOT)
    monkeypatch.setattr(plt, "close", lambda _: None)
    course_concepts.draw(concepts, names, part_of, tmp_path / "map.svg")
    figure = plt.gcf()
    monkeypatch.undo()
    texts = [text for text in figure.axes[0].texts if text.get_text()]
    expected = [*names.values(), *{part_of[name] for name in concepts}]
    assert sorted(text.get_text() for text in texts) == sorted(expected)
    boxes = sorted((text.get_window_extent() for text in texts), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)
    plt.close(figure)
