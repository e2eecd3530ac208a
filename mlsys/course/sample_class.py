"""The sample class: submissions with known marks, written as small changes to the released notebook.

`labs/<lab>/class/<student>.py` starts from the released notebook and does the operations of the file in order. An
operation is a marker line; the lines up to the next marker are its text. ID is a grade_id, or a cell id for cells
without one. Text before the first marker describes the student.

    # %% solve=c-kernel,d-config   put the lab's own solution of these cells (`solve=*`: of all but written ones)
    # %% replace=c-kernel          the text becomes the source of that cell, locked or not
    # %% add after=c-kernel        a new code cell without metadata (`type=markdown` for prose)
    # %% delete=c-test             the cell goes
    # %% copy=c-test               an exact copy, same metadata, right after it
    # %% move=d-config after=title the cell moves
    # %% flag=c-kernel solution=false locked=true    changes nbgrader's flags
    # %% strip=c-test              the cell loses its metadata (`strip=*`: all of them and the notebook, with new ids)
    # %% colab                     the notebook as Colab saves it

Any other file of the folder, such as `empty.ipynb`, is handed in as it is.
"""

import copy
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from mlsys.course.lab import PREDICT, SOLUTION, Lab
from mlsys.course.notebook import as_node, new_cell, new_output, read_notebook, write_notebook
from mlsys.course.starter import solution
from mlsys.course.term import read_terms, with_variants
from mlsys.course.tree import CourseTree
from mlsys.errors import UnknownName, UserError

_MARKER = re.compile(r"^# %% ?(.*)$", re.M)


@dataclass(frozen=True)
class Operation:
    """One marker line: its name, its value, the other words of the line, and the text below it."""

    name: str
    value: str
    options: dict[str, str]
    text: str
    where: str


def hand_in(lab_path: Path, folder: Path, tree: CourseTree) -> list[str]:
    """Write the sample class of a released lab as `<student>.ipynb` files, and return the students' names.

    Args:
        lab_path: the lab's `lab.py`; the class lies beside it in `class/`.
        folder: where the notebooks go; what a former class left there is removed.
        tree: the course tree with the released notebook.

    Raises:
        UserError: there is no sample class, or an operation names an unknown cell.
    """
    lab = Lab.load(lab_path, [term.seed for term in read_terms(tree)])
    sources = sorted(path for path in (lab_path.parent / "class").glob("*") if path.suffix in (".py", ".ipynb"))
    if not sources:
        raise UserError(f"{lab_path.parent / 'class'} holds no sample submissions (<student>.py or <student>.ipynb)")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.ipynb"):
        old.unlink()
    for path in sources:
        target = folder / f"{path.stem}.ipynb"
        if path.suffix == ".py":
            released = read_notebook(tree.release(lab.name))
            write_notebook(build(path.read_text(encoding="utf-8"), lab, released, str(path)), target)
        else:
            shutil.copyfile(path, target)
    return [path.stem for path in sources]


def build(text: str, lab: Lab, released: NotebookNode, where: str) -> NotebookNode:
    """Return the submission that the operations in `text` make of the `released` notebook, in the lab's variant."""
    notebook = copy.deepcopy(released)
    for operation in read_operations(with_variants(text, lab.variants), where):
        _OPERATIONS[operation.name](notebook, lab, operation)
    return notebook


def read_operations(text: str, where: str) -> list[Operation]:
    """Return the operations of a sample submission, in order."""
    parts = _MARKER.split(text)
    operations = []
    for marker, below in zip(parts[1::2], parts[2::2], strict=True):
        words = [(name, value) for name, _, value in (word.partition("=") for word in marker.split())]
        if not words or words[0][0] not in _OPERATIONS:
            raise UnknownName.of(f"operation in {where}", marker, _OPERATIONS)
        (name, value), options = words[0], dict(words[1:])
        operations.append(Operation(name, value, options, below.strip("\n"), f"{where}, `# %% {marker}`"))
    return operations


def _find(notebook: NotebookNode, identifier: str, where: str) -> int:
    known = [cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "") for cell in notebook.cells]
    if identifier not in known:
        raise UnknownName.of(f"cell in {where}", identifier, known)
    return known.index(identifier)


def _solve(notebook: NotebookNode, lab: Lab, operation: Operation) -> None:
    solutions = {cell.id: solution(cell.source) for cell in lab.cells if cell.role in (PREDICT, SOLUTION)}
    for identifier in solutions if operation.value == "*" else operation.value.split(","):
        if identifier not in solutions:
            raise UnknownName.of(f"answer cell in {operation.where}", identifier, solutions)
        notebook.cells[_find(notebook, identifier, operation.where)].source = solutions[identifier]


def _replace(notebook: NotebookNode, lab: Lab, operation: Operation) -> None:
    notebook.cells[_find(notebook, operation.value, operation.where)].source = operation.text


def _add(notebook: NotebookNode, lab: Lab, operation: Operation) -> None:
    index = _find(notebook, operation.options["after"], operation.where)
    kind = operation.options.get("type", "code")
    notebook.cells.insert(index + 1, new_cell(kind, operation.text, f"added-{len(notebook.cells)}"))


def _delete(notebook: NotebookNode, lab: Lab, operation: Operation) -> None:
    del notebook.cells[_find(notebook, operation.value, operation.where)]


def _copy(notebook: NotebookNode, lab: Lab, operation: Operation) -> None:
    index = _find(notebook, operation.value, operation.where)
    twin = copy.deepcopy(notebook.cells[index])
    twin["id"] = f"copy-{len(notebook.cells)}"
    notebook.cells.insert(index + 1, twin)


def _move(notebook: NotebookNode, lab: Lab, operation: Operation) -> None:
    cell = notebook.cells.pop(_find(notebook, operation.value, operation.where))
    notebook.cells.insert(_find(notebook, operation.options["after"], operation.where) + 1, cell)


def _flag(notebook: NotebookNode, lab: Lab, operation: Operation) -> None:
    flags = {name: value == "true" for name, value in operation.options.items()}
    notebook.cells[_find(notebook, operation.value, operation.where)].metadata["nbgrader"].update(flags)


def _strip(notebook: NotebookNode, lab: Lab, operation: Operation) -> None:
    if operation.value != "*":
        notebook.cells[_find(notebook, operation.value, operation.where)].metadata = as_node({})
        return
    notebook.metadata = as_node({})
    for index, cell in enumerate(notebook.cells):
        cell.metadata, cell["id"] = as_node({}), f"cell-{index}"


def _colab(notebook: NotebookNode, lab: Lab, operation: Operation) -> None:
    notebook.nbformat_minor = 0
    notebook.metadata = as_node(
        {
            "colab": {"provenance": [], "gpuType": "T4"},
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "language_info": {"name": "python"},
            "accelerator": "GPU",
        }
    )
    for index, cell in enumerate(notebook.cells):
        cell.pop("id", None)
        cell.metadata["id"] = f"colab{index:08d}"
        if cell.cell_type == "code":
            cell.metadata["executionInfo"] = {"status": "ok", "elapsed": 12, "user_tz": -60}
            cell.metadata["outputId"] = f"output{index:08d}"
            cell.execution_count = index + 1
            cell.outputs = [new_output("stream", name="stdout", text="ran in Colab\n")]


_OPERATIONS: dict[str, Callable[[NotebookNode, Lab, Operation], None]] = {
    "solve": _solve,
    "replace": _replace,
    "add": _add,
    "delete": _delete,
    "copy": _copy,
    "move": _move,
    "flag": _flag,
    "strip": _strip,
    "colab": _colab,
}
