"""Renamed copies are listed; independent kernels, the starter and a group's own work are not."""

import ast
import csv
import shutil
from pathlib import Path

import nbformat
import pytest
from helpers.sample_classes import handed_in

from mlsys.classroom.intake.collect import collect
from mlsys.classroom.intake.reading import LabReader
from mlsys.classroom.similarity.compare import Work, similar_pairs
from mlsys.classroom.similarity.tokens import MAX_PARSED, tokens, tokens_of
from mlsys.classroom.similarity.works import starter_of, works_of
from mlsys.cli.main import main
from mlsys.course.release import release
from mlsys.course.tree import CourseTree

HONEST = Path(__file__).parents[2] / "helpers" / "honest_kernels"
SIGNATURE = """@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
"""
KERNEL = """@triton.jit
def matmul(a_ptr, b_ptr, M, N, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, N, TILE):
        total += tl.load(a_ptr + rows * N + k, mask=rows < M, other=0.0)
    tl.store(b_ptr + rows, total, mask=rows < M)
"""


def kinds(source: str) -> list[str]:
    return [token.kind for token in tokens(source)]


def renamed(source: str) -> str:
    """The same code with other names and numbers, no comments, and Python's own layout."""
    tree = ast.parse(source)
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in own:
            node.id = f"zz_{node.id[::-1]}_q"
        elif isinstance(node, ast.arg):
            node.arg = f"zz_{node.arg[::-1]}_q"
    return ast.unparse(tree)


def work(student: str, *sources: str, term: str = "", group: str = "") -> Work:
    names = [f"cell-{index}" for index in range(len(sources))]
    return Work(student, term, group, student, names, sources, tokens_of(sources)[0])


def listed(works: list[Work], starter: str = "", least: float = 0.5) -> set[tuple[str, str]]:
    pairs, _ = similar_pairs(works, [tokens(starter)], least, 10_000)
    return {(pair.left.student, pair.right.student) for pair in pairs}


def test_names_numbers_comments_and_layout_change_no_token() -> None:
    other = renamed(KERNEL).replace("0.0", "1e-9")
    assert other != KERNEL
    assert kinds(other) == kinds(KERNEL)
    wrapped = KERNEL.replace("mask=rows < M)", "mask=rows < M,  # inside\n    )").replace(
        "    rows =", '    """Multiply."""\n\n    rows =', 1
    )
    assert kinds(wrapped) == kinds(KERNEL)


def test_numbers_filled_in_for_none_are_the_starters_own() -> None:
    starter = "".join(f"guesses.guess_{index} = None\n" for index in range(40))
    works = [work(name, starter.replace("None", number)) for name, number in (("ann", "1.5"), ("bob", "64"))]
    assert listed(works) == {("ann", "bob")}
    assert listed(works, starter) == set()


def test_another_operator_keyword_or_function_of_the_language_is_another_token() -> None:
    for old, new in (("tl.load", "tl.sum"), ("+=", "-="), ("for k in range(0, N, TILE)", "while k < N")):
        assert kinds(KERNEL.replace(old, new)) != kinds(KERNEL)


@pytest.mark.parametrize(
    "source", ["def f(:\n  x = (", "x = '", "\tx\n  y\n z", "\0", "é" * 50, "(" * 1000, "%%time\nx=1"]
)
def test_what_is_no_python_has_the_tokens_before_the_error(source: str) -> None:
    good = "x = tl.load(y)\n"
    assert kinds(good + source)[:8] == kinds(good)[:8]


def test_cells_that_are_too_long_are_left_out_and_counted() -> None:
    found, left_out = tokens_of(["x = 1\n", "y = 2\n" * MAX_PARSED])
    assert (len(found), found[1], left_out) == (2, [], 1)


def test_honest_kernels_that_are_independent_are_not_listed() -> None:
    by_file = {
        path.stem: [part.split("\n", 2)[2] for part in path.read_text().split("# %% ")[1:]]
        for path in sorted(HONEST.glob("*.py"))
    }
    kernels = [kernel for parts in by_file.values() for kernel in parts]
    assert len(kernels) > 100
    assert listed([work(str(index), kernel) for index, kernel in enumerate(kernels)], SIGNATURE) == set()
    # As long as answers to a lab are: all kernels of one file against all of another, far below what is listed.
    works = [work(name, *parts) for name, parts in by_file.items() if parts]
    assert len(works) > 4
    assert listed(works, SIGNATURE, least=0.3) == set()
    # And a renamed copy of one of them is found among them.
    assert listed([*works, work("copier", *map(renamed, by_file["statements"]))], SIGNATURE, least=0.3) == {
        ("statements", "copier")
    }


def test_a_starter_that_everybody_keeps_is_nobodys() -> None:
    starter = KERNEL * 4
    works = [work("ann", starter), work("bob", starter)]
    assert listed(works) == {("ann", "bob")}
    assert listed(works, starter) == set()


def test_groups_and_pairs_of_earlier_terms_are_no_pairs() -> None:
    text = KERNEL * 4
    assert listed([work("ann", text, group="g"), work("bob", text, group="g")]) == set()
    earlier = [work("old", text, term="2025"), work("older", text, term="2024")]
    assert listed(earlier) == set()
    assert listed([*earlier, work("ann", text)]) == {("ann", "old"), ("ann", "older")}


@pytest.fixture(scope="module")
def tiling(tmp_path_factory: pytest.TempPathFactory) -> CourseTree:
    """The sample class of the tiling lab, taken in and not judged, with a renamed copy of one kernel in a notebook."""
    folder = tmp_path_factory.mktemp("similar")
    tree = handed_in("tiling", folder)
    notebook = nbformat.read(folder / "submissions" / "right-other-style.ipynb", as_version=4)
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and about.get("solution"):
            cell.source = renamed(cell.source)
    notebook.cells.append(nbformat.v4.new_code_cell("</td><script>alert(1)</script>"))
    nbformat.write(notebook, folder / "submissions" / "copier.ipynb")
    collect(folder / "submissions", tree, "tiling")
    return tree


def test_a_renamed_copy_is_first_and_the_independent_style_is_not_with_the_others(
    tiling: CourseTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = tmp_path / "2025"
    shutil.copytree(tiling.root / "attempts" / "right-other-style", earlier / "attempts" / "graduate")
    monkeypatch.setenv("COLUMNS", "160")
    command = ["similar", "tiling", "--course", str(tiling.root), "--earlier", str(earlier), "--most", "1000"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "it decides nothing" in said
    assert "Not compared: not-a-notebook: the file is not a notebook" in said
    with tiling.results("tiling-similar").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    percent = {frozenset((row["one"], row["other"])): int(row["percent"]) for row in rows}
    own = {name for pair in percent for name in pair}
    assert "empty" not in own
    other_style = {"right-other-style", "copier", "graduate (2025)"}
    # All three of the other style are one kernel; everybody else's is a changed `right`.
    assert {pair for pair in percent if pair & other_style} == {
        frozenset(("right-other-style", "copier")),
        frozenset(("right-other-style", "graduate (2025)")),
        frozenset(("copier", "graduate (2025)")),
    }
    assert percent[frozenset(("right-other-style", "copier"))] > 80
    assert percent[frozenset(("right-other-style", "graduate (2025)"))] == 100
    assert frozenset(("right", "edited-in-colab")) in percent


def test_an_attempt_of_an_earlier_term_in_the_same_folder_is_compared_as_one_of_that_term(
    course_repository: Path, tmp_path: Path
) -> None:
    tree = CourseTree(course_repository / "_build" / "course")
    answers = "".join(f"rows_{index} = tl.load(tensor_{index}.part_{index} + {index})\n" for index in range(30))
    for term, student in (("2026", "graduate"), ("2027", "ann")):
        release(course_repository, tree, ["adding"], term=term)
        notebook = nbformat.read(tree.release("adding"), as_version=4)
        notebook.cells.append(nbformat.v4.new_code_cell(answers.replace("rows", f"{student}s")))
        (tmp_path / term).mkdir()
        nbformat.write(notebook, tmp_path / term / f"{student}.ipynb")
        collect(tmp_path / term, tree, "adding")
    works, left_out = works_of(tree, "adding", LabReader(tree, "adding"))
    assert left_out == []
    (pair,), _ = similar_pairs(works, starter_of(tree, "adding"), 0.9, 10)
    assert (pair.left.who, pair.right.who) == ("ann", "graduate (2026)")


def test_the_passages_are_the_same_tokens_on_both_sides_and_stand_where_they_are_said_to() -> None:
    left = work("ann", "x = 1\n" * 3 + KERNEL * 4)
    right = work("bob", KERNEL * 2, "y = 2\nz = 3\n" + renamed(KERNEL) * 2)
    (pair,), _ = similar_pairs([left, right], [], 0.5, 10)
    assert pair.share > 0.9
    for passage in pair.passages:
        (cell, first, last), (other, there, end) = passage.left, passage.right
        one = "\n".join(left.sources[cell].split("\n")[first - 1 : last])
        two = "\n".join(right.sources[other].split("\n")[there - 1 : end])
        assert last - first == end - there
        # The first and the last line may belong to it in part.
        inner, outer = (kinds("\n".join(text.split("\n")[1:-1])) for text in (one, two))
        assert inner == outer


def test_the_page_escapes_what_students_wrote_and_loads_nothing(tiling: CourseTree) -> None:
    page = tiling.root / "results" / "tiling-similar.html"
    assert main(["similar", "tiling", "--course", str(tiling.root), "--most", "100"]) == 0
    text = page.read_text()
    assert "&lt;script&gt;alert(1)" in text
    assert "<script" not in text
    assert "src=" not in text
    assert "default-src 'none'" in text
    assert text.count('<section id="pair-') == text.count('class="sides"') > 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nosuch"], "holds no lab 'nosuch'"),
        (["tiling", "--earlier", "/nonexistent"], "/nonexistent holds no attempts at tiling"),
    ],
)
def test_a_mistake_is_named_with_the_cure(
    tiling: CourseTree, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["similar", *words, "--course", str(tiling.root)]) == 2
    assert says in capsys.readouterr().err
