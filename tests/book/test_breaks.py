"""A computed number stays on the line of its unit, and a mark on that of its formula."""

import sys
from pathlib import Path

import pytest

nodes = pytest.importorskip("docutils.nodes", reason="docutils is not installed: mlsys[book] brings it")
utils = pytest.importorskip("docutils.utils")

sys.path.insert(0, str(Path(__file__).parents[2] / "book" / "_ext"))
course_breaks = pytest.importorskip("course_breaks", reason="sphinx is not installed: mlsys[book] brings it")


def kept(*parts: nodes.Node) -> nodes.paragraph:
    """A paragraph of these parts, as the build leaves it."""
    page, paragraph = utils.new_document("page"), nodes.paragraph("", "", *parts)
    page += paragraph
    course_breaks.keep_together(None, page, "page")
    return paragraph


@pytest.mark.parametrize(
    ("said", "stays"),
    [
        ("215 µs", "215\u00a0µs"),
        ("3.35 TB/s", "3.35\u00a0TB/s"),
        ("20 tokens", "20\u00a0tokens"),
        ("4 loads of 16 bytes", "4 loads of 16\u00a0bytes"),
        ("65,536; 1; 2,048", "65,536; 1; 2,048"),
        ("4 × 4 × 4", "4\u00a0×\u00a04\u00a0×\u00a04"),
        ("80%", "80%"),
    ],
)
def test_a_number_and_its_unit_are_one_word(said: str, stays: str) -> None:
    paragraph = kept(nodes.Text("in "), nodes.inline("", "", nodes.Text(said), classes=["pasted-text"]))
    assert paragraph.astext() == f"in {stays}"


def test_what_an_author_wrote_breaks_as_before_except_in_products() -> None:
    assert kept(nodes.Text("215 µs for 64 × 64 of them")).astext() == "215 µs for 64\u00a0×\u00a064 of them"
    assert kept(nodes.literal("", "2 × 3")).astext() == "2 × 3"


def test_a_hebrew_prefix_stays_with_its_word() -> None:
    paragraph = kept(nodes.Text("על ה-GPU וב-"), nodes.math("", "S"), nodes.Text(" בו-זמנית"))
    assert paragraph.astext() == "על ה-\u2060GPU וב-\u2060S בו-זמנית"


def test_a_mark_after_a_formula_stays_on_its_line_and_the_text_goes_on() -> None:
    paragraph = kept(
        nodes.Text("row "), nodes.math("", "i"), nodes.Text("). If row "), nodes.math("", "j"), nodes.Text(" is")
    )
    assert paragraph.astext() == "row i). If row j is"
    (together,) = [node for node in paragraph.children if isinstance(node, nodes.inline)]
    assert together.astext() == "i)."
    assert together["classes"] == ["course-unbroken"]
    assert [type(child).__name__ for child in paragraph.children] == ["Text", "inline", "Text", "math", "Text"]
