from pathlib import Path

import nbformat
import pytest

from mlsys.course.lab import Lab
from mlsys.course.sample_class import build
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


@pytest.fixture
def made(adding: tuple[Path, CourseTree, Path]):  # type: ignore[no-untyped-def]
    root, tree, _ = adding
    lab = Lab.load(root / "labs" / "adding" / "lab.py")

    def make(text: str) -> list[nbformat.NotebookNode]:
        cells: list[nbformat.NotebookNode] = build(text, lab, nbformat.read(tree.release("adding"), 4), "x.py").cells
        return cells

    return make


def ids(cells: list[nbformat.NotebookNode]) -> list[str]:
    return [cell.metadata.get("nbgrader", {}).get("grade_id", "-") for cell in cells]


def test_no_operation_hands_in_the_released_notebook(made, adding: tuple[Path, CourseTree, Path]) -> None:  # type: ignore[no-untyped-def]
    assert made("# a student who did nothing\n") == nbformat.read(adding[1].release("adding"), 4).cells


def test_solving_writes_what_a_student_would(made) -> None:  # type: ignore[no-untyped-def]
    sources = {cell["id"]: cell.source for cell in made("# %% solve=a-predict\n")}
    assert sources["a-predict"] == "bytes_moved = 3 * 4 * 1000"
    assert "NotImplementedError" in sources["c-sum"]


def test_cells_are_replaced_added_copied_moved_and_deleted(made) -> None:  # type: ignore[no-untyped-def]
    cells = made(
        "# %% replace=b-test\npass\n# %% add after=b-test\nx = 1\n\ny = 2\n# %% copy=a-test\n# %% delete=d-speed\n"
        "# %% move=e-why after=setup\n# %% flag=c-sum solution=false locked=true\n# %% strip=c-test\n"
    )
    names = ids(cells)
    assert names.count("a-test") == 2
    assert "d-speed" not in names
    assert "c-test" not in names
    assert names[names.index("setup") + 1] == "e-why"
    assert [cells[names.index("b-test") + step].source for step in (0, 1)] == ["pass", "x = 1\n\ny = 2"]
    flags = cells[names.index("c-sum")].metadata["nbgrader"]
    assert (flags["solution"], flags["locked"]) == (False, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# %% replace=b-kernl\nx", "did you mean 'b-kernel'"),
        ("# %% repalce=b-kernel\nx", "did you mean"),
        ("# %% solve=b-test\n", "unknown answer cell"),
    ],
)
def test_unknown_cell_or_operation_is_named(made, text: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match=message):
        made(text)
