"""Terms: what they draw, how they begin, and what a lab released in one looks like."""

import json
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from helpers.adding_course import VARIANTS, change_lab

from mlsys.cli import main as cli
from mlsys.course.lab import Lab, LabError
from mlsys.course.release import release
from mlsys.course.term import drawn, present_term, read_terms, read_variants, tree_of, with_variants
from mlsys.course.tree import CourseTree
from mlsys.errors import InvalidValue, UserError

CELL = (
    "from mlsys.course.term import drawn\nTERM_ONE = drawn(1, 2, 3, 4)\nother = drawn('a', 'b')\nTERM_TWO = other * 2\n"
)


def text_of(path: Path) -> str:
    return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)


def test_without_a_term_the_first_choice_stands() -> None:
    assert drawn("x", "y") == "x"
    assert read_variants(CELL) == {"TERM_ONE": "1", "TERM_TWO": "aa"}


def test_two_terms_in_a_row_differ_in_every_draw_and_the_same_seeds_give_the_same() -> None:
    seeds = [f"seed {number}" for number in range(40)]
    series = [read_variants(CELL, seeds[:count]) for count in range(len(seeds) + 1)]
    assert all(one[name] != other[name] for one, other in pairwise(series) for name in one)
    assert {one["TERM_ONE"] for one in series} == set("1234")
    assert series[-1] == read_variants(CELL, seeds)


def test_another_variant_beside_it_changes_no_draw() -> None:
    longer = CELL.replace("TERM_ONE", "TERM_NEW = drawn(5, 6)\nTERM_ONE")
    for count in range(1, 6):
        seeds = [str(number) for number in range(count)]
        assert read_variants(CELL, seeds).items() <= read_variants(longer, seeds).items()


@pytest.mark.parametrize("choices", [(), (1,), (2, 2)])
def test_a_draw_needs_two_choices(choices: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValue, match="at least two choices that differ"):
        drawn(*choices)


def test_values_stand_in_the_places_of_their_names_only() -> None:
    values = {"TERM_A": "1", "TERM_AB": "2", "TERM_LINES": "x = 1\ny = 2"}
    assert with_variants("TERM_AB TERM_A, xTERM_A TERM_a `TERM_A`", values) == "2 1, xTERM_A TERM_a `1`"
    assert with_variants("#: TERM_LINES", values) == "#: x = 1\n#: y = 2"
    assert with_variants("z = [TERM_LINES]", values) == "z = [x = 1\ny = 2]"
    with pytest.raises(InvalidValue, match="TERM_B is not in the variants of this lab"):
        with_variants("TERM_B", values)


def test_a_lab_has_its_variants_in_every_cell_and_not_their_cell(course_repository: Path) -> None:
    change_lab(course_repository, VARIANTS)
    path = course_repository / "labs" / "adding" / "lab.py"
    plain, other = Lab.load(path), Lab.load(path, ["seed"])
    assert plain.variants["TERM_ARRAYS"] == "3"
    assert other.variants["TERM_ARRAYS"] != "3"
    for lab in (plain, other):
        count = lab.variants["TERM_ARRAYS"]
        text = "\n".join(cell.source for cell in lab.cells)
        assert f"bytes_moved = {count} * 4 * 1000" in text
        assert f"{count} arrays cross the bus" in text
        assert "TERM_" not in text
        assert "drawn" not in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"= drawn(3, 5, 7)": "= drawn(3)"},
            "cell with the variants fails: InvalidValue: drawn.3,.: give at least two",
        ),
        ({"= drawn(3, 5, 7)": "= unknown"}, "cell with the variants fails: NameError"),
        ({"TERM_ARRAYS arrays cross": "TERM_ARAYS arrays cross"}, "TERM_ARAYS is not in the variants"),
        (
            {"# %% [markdown]\n# ## a. Predict": '# %% mlsys={"role": "variants"}\n1\n# %%'},
            "2 cells have the role 'variants'",
        ),
    ],
)
def test_a_lab_with_wrong_variants_is_named(course_repository: Path, change: dict[str, str], message: str) -> None:
    change_lab(course_repository, VARIANTS)
    change_lab(course_repository, change)
    with pytest.raises(LabError, match=message):
        Lab.load(course_repository / "labs" / "adding" / "lab.py")


def test_a_release_without_a_term_is_what_it_was_and_says_nothing_of_terms(course_repository: Path) -> None:
    tree = CourseTree(course_repository / "_build" / "course")
    release(course_repository, tree)
    before = tree.release("adding").read_bytes()
    change_lab(course_repository, VARIANTS)
    release(course_repository, tree)
    assert tree.release("adding").read_bytes() == before
    assert not tree.terms.exists()
    assert present_term(tree) == ""


def test_a_term_draws_and_the_next_release_stays_in_it(course_repository: Path) -> None:
    change_lab(course_repository, VARIANTS)
    tree = CourseTree(course_repository / "_build" / "course")
    release(course_repository, tree)
    old = tree.source("adding").read_bytes()
    assert release(course_repository, tree, term="2027a") == ["adding: released version 1 in term 2027a (5 questions)"]
    [term] = read_terms(tree)
    assert tree.terms.stat().st_mode & 0o077 == 0
    first = text_of(tree.source("adding"))
    assert "bytes_moved = 3 * 4" not in first
    assert "TERM_" not in first + text_of(tree.release("adding"))
    assert nbformat.read(tree.release("adding"), as_version=4).metadata["mlsys"] == {
        "lab": "adding", "version": "1", "term": "2027a",
    }  # fmt: skip
    assert term.seed not in tree.release("adding").read_text() + tree.source("adding").read_text()
    assert release(course_repository, tree) == ["adding: released notebook is up to date"]
    path = course_repository / "labs" / "adding" / "lab.py"
    path.write_text(path.read_text().replace("A small lab", "A tiny lab"))
    release(course_repository, tree)
    assert text_of(tree.source("adding")) == first.replace("A small lab", "A tiny lab")
    release(course_repository, tree, term="2028")
    assert text_of(tree.source("adding")) != first
    assert [one.name for one in read_terms(tree)] == ["2027a", "2028"]
    # What the lab was is kept, for the submissions of then.
    assert tree_of(tree, "adding", "").source("adding").read_bytes() == old
    assert "A tiny lab" in text_of(tree_of(tree, "adding", "2027a").source("adding"))
    assert tree_of(tree, "adding", "2028") is tree


def test_what_a_lab_was_in_a_term_must_be_kept(course_repository: Path) -> None:
    tree = CourseTree(course_repository / "_build" / "course")
    release(course_repository, tree, term="2027a")
    with pytest.raises(UserError, match="adding as it was in term 2026b is not in .*restore that folder"):
        tree_of(tree, "adding", "2026b")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--term"], "a term needs a name: write it after --term, such as --term 2027a"),
        (["--term", ""], "a term needs a name"),
        (["--term", "  "], "a term needs a name"),
        (["--term", "2027a"], "the term '2027a' was used already; the terms are 2026b, 2027a. Leave --term out"),
        (["--term", "2026B"], "the term '2026B' was used already"),
        (["--term", "../x"], "'../x' cannot be the name of a term"),
        (["--term", "_"], "'_' cannot be the name of a term"),
        (["--term", "x" * 41], "cannot be the name of a term: use up to 40 letters"),
        (["--term", "2028", "--mend", "x.py"], "--term begins a new one: use one of them"),
    ],
)
def test_a_term_without_a_name_or_with_a_used_one_is_refused_with_status_2(
    course_repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(course_repository)
    tree = CourseTree(course_repository / "_build" / "course")
    tree.create()
    terms = [{"name": name, "seed": name, "began": "2026-10-01T00:00:00+00:00"} for name in ("2026b", "2027a")]
    tree.terms.write_text(json.dumps(terms))
    assert cli.main(["release", "adding", *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert json.loads(tree.terms.read_text()) == terms
    assert not tree.release("adding").exists()


def test_a_lab_that_breaks_a_rule_begins_no_term(course_repository: Path) -> None:
    change_lab(course_repository, VARIANTS)
    change_lab(course_repository, {"TERM_ARRAYS arrays cross": "TERM_ARAYS arrays cross"})
    tree = CourseTree(course_repository / "_build" / "course")
    with pytest.raises(LabError):
        release(course_repository, tree, term="2027a")
    assert read_terms(tree) == []


def test_a_damaged_list_of_terms_is_named(course_repository: Path) -> None:
    tree = CourseTree(course_repository / "_build" / "course")
    tree.create()
    tree.terms.write_text('[{"name": "2027a"}]')
    with pytest.raises(UserError, match=r"terms\.json is damaged .*restore it"):
        release(course_repository, tree)
