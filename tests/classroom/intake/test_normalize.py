import copy
import json
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from mlsys.classroom.intake.normalize import normalize
from mlsys.classroom.intake.reader import Refused, clean
from mlsys.course.tree import CourseTree


@pytest.fixture
def released(adding: tuple[Path, CourseTree, Path]) -> NotebookNode:
    return nbformat.read(adding[1].release("adding"), as_version=4)


def submit(notebook: NotebookNode) -> NotebookNode:
    return clean(json.loads(nbformat.writes(notebook)))


def find(notebook: NotebookNode, identifier: str) -> int:
    return next(index for index, cell in enumerate(notebook.cells) if cell["id"] == identifier)


def sources(notebook: NotebookNode) -> dict[str, str]:
    return {cell["id"]: cell.source for cell in notebook.cells}


ANSWER = "def add(x, y):\n    return x + y\n\nadd_kernel = None"


def test_untouched_notebook_needs_no_repair(released: NotebookNode) -> None:
    canonical = normalize(submit(released), released)
    assert canonical.repairs == ()
    assert sources(canonical.notebook) == sources(released)


def test_answer_is_kept_and_everything_else_restored(released: NotebookNode) -> None:
    mine = copy.deepcopy(released)
    for cell in mine.cells:
        cell.source = ANSWER if cell["id"] == "b-kernel" else cell.source + "\n# edited"
    canonical = normalize(submit(mine), released)
    assert canonical.notebook.cells[find(canonical.notebook, "b-kernel")].source == ANSWER
    assert sources(canonical.notebook)["b-test"] == sources(released)["b-test"]
    assert [cell.metadata for cell in canonical.notebook.cells if "nbgrader" in cell.metadata] == [
        cell.metadata for cell in released.cells if "nbgrader" in cell.metadata
    ]
    assert sum("had been edited" in repair for repair in canonical.repairs) == 5


@pytest.mark.parametrize("keep_ids", [True, False])
def test_answers_are_found_without_metadata(released: NotebookNode, keep_ids: bool) -> None:
    mine = copy.deepcopy(released)
    mine.cells[find(mine, "b-kernel")].source = ANSWER
    mine.cells[find(mine, "e-why")].source = "Bandwidth."
    for index, cell in enumerate(mine.cells):
        cell.metadata = {}
        cell["id"] = cell["id"] if keep_ids else f"c{index}"
    canonical = normalize(submit(mine), released)
    assert sources(canonical.notebook)["b-kernel"] == ANSWER
    assert sources(canonical.notebook)["e-why"] == "Bandwidth."
    assert any("'b-kernel' of question b had lost its marks" in repair for repair in canonical.repairs)


def test_last_copy_that_was_worked_on_counts(released: NotebookNode) -> None:
    mine = copy.deepcopy(released)
    index = find(mine, "b-kernel")
    for position, source in enumerate(["def add(x, y):\n    return 0", ANSWER, released.cells[index].source]):
        twin = copy.deepcopy(released.cells[index])
        twin.source, twin["id"] = source, f"twin-{position}"
        mine.cells.insert(index + position, twin)
    canonical = normalize(submit(mine), released)
    assert sources(canonical.notebook)["b-kernel"] == ANSWER
    assert any("stood there 4 times; the last one that was worked on counts" in repair for repair in canonical.repairs)


def test_added_cells_stay_in_order_behind_the_same_cell(released: NotebookNode) -> None:
    mine = copy.deepcopy(released)
    for source in ("second = 2", "first = 1"):
        mine.cells.insert(find(mine, "b-kernel") + 1, nbformat.v4.new_code_cell(source))
    mine.cells.insert(0, nbformat.v4.new_code_cell("zeroth = 0"))
    canonical = normalize(submit(mine), released)
    order = [cell.source for cell in canonical.notebook.cells]
    place = find(canonical.notebook, "b-kernel")
    assert order[0] == "zeroth = 0"
    assert order[place + 1 : place + 3] == ["first = 1", "second = 2"]
    assert canonical.repairs == ()


def test_deleted_and_reordered_cells_are_put_back(released: NotebookNode) -> None:
    mine = copy.deepcopy(released)
    mine.cells = [cell for cell in reversed(mine.cells) if cell["id"] not in ("b-test", "c-sum")]
    canonical = normalize(submit(mine), released)
    assert [cell["id"] for cell in canonical.notebook.cells] == [cell["id"] for cell in released.cells]
    repairs = "\n".join(canonical.repairs)
    assert "'b-test' of question b was missing; it was put back" in repairs
    assert "'c-sum' of question c was missing; it counts as not written" in repairs
    assert "another order" in repairs


def test_code_answer_turned_into_text_is_still_read(released: NotebookNode) -> None:
    mine = copy.deepcopy(released)
    old = mine.cells[find(mine, "b-kernel")]
    new = nbformat.v4.new_markdown_cell(ANSWER, metadata=old.metadata)
    mine.cells[find(mine, "b-kernel")] = new
    canonical = normalize(submit(mine), released)
    answer = canonical.notebook.cells[find(canonical.notebook, "b-kernel")]
    assert (answer.cell_type, answer.source) == ("code", ANSWER)


def test_notebook_of_another_lab_is_refused(released: NotebookNode) -> None:
    other = copy.deepcopy(released)
    other.metadata["mlsys"]["lab"] = "subtracting"
    with pytest.raises(Refused, match="'subtracting', not of lab 'adding'"):
        normalize(submit(other), released)
    foreign = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(1)")])
    with pytest.raises(Refused, match="holds none of the cells of lab 'adding'"):
        normalize(submit(foreign), released)


def test_what_a_student_makes_of_a_shown_cell_counts_as_added(released: NotebookNode) -> None:
    released = copy.deepcopy(released)
    released.cells.insert(3, nbformat.v4.new_code_cell("shown = 1", id="shown"))
    mine = copy.deepcopy(released)
    assert sources(normalize(submit(mine), released).notebook) == sources(released)
    mine.cells[3].source = "shown = 2\nimport numpy as np"
    cells = normalize(submit(mine), released).notebook.cells
    assert [cell.source for cell in cells[3:5]] == ["shown = 1", "shown = 2\nimport numpy as np"]
    assert cells[4].metadata["mlsys"]["role"] == "added"
    older = normalize(submit(mine), released, original=mine)
    assert sources(older.notebook) == sources(released)


def test_a_sentence_lists_few_lines(released: NotebookNode) -> None:
    mine = copy.deepcopy(released)
    mine.cells.append(nbformat.v4.new_code_cell("for x in y: pass\n" * 1000))
    (repair,) = normalize(submit(mine), released).repairs
    assert "(line 1, 2, 3, 4, 5, 6, 7, 8, ...)" in repair


def test_a_cell_that_no_python_here_reads_is_named(released: NotebookNode) -> None:
    mine = copy.deepcopy(released)
    mine.cells[find(mine, "c-sum")].source = "def add_three(x, y, z):\n    return x + y + z z"
    why = find(mine, "e-why")
    mine.cells[why] = nbformat.v4.new_code_cell("Three arrays.", id="e-why", metadata=mine.cells[why].metadata)
    mine.cells += [
        nbformat.v4.new_code_cell(text, id=f"mine-{number}")
        for number, text in enumerate(["import math\nsize = = 3", "%time size = 3\n!ls", "# nothing", ""])
    ]
    added = find(mine, "mine-0") + 1
    unread = [repair for repair in normalize(submit(mine), released).repairs if "is not Python" in repair]
    assert [repair.partition(", with")[0] for repair in unread] == [
        "The answer cell 'c-sum' of question c is not Python as it is read here",
        f"An added cell (number {added}) is not Python as it is read here",
    ]
    assert all(repair.endswith("see its line 2.") for repair in unread)
