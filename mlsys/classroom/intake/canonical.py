"""From a submitted notebook to what can run: the right version of the lab, the canonical notebook, its cells.

Which version a notebook is of, the student says. So questions get the newest tests wherever answers to the older
version can run with them, whatever the notebook says.
"""

import ast
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace

from nbformat import NotebookNode

from mlsys.classroom.intake.normalize import ADDED, grade_id, normalize
from mlsys.core.cells import defined_names, free_names, parse, plain_python, used_names
from mlsys.course.lab import PREDICT, SETUP, SOLUTION, Cell, Lab
from mlsys.course.notebook import read_notebook
from mlsys.course.starter import starter, without_hidden_tests
from mlsys.course.tree import CourseTree
from mlsys.judge.grade_question import StudentCell, Submission


def released_lab(tree: CourseTree, name: str, version: str = "") -> Lab:
    """Read the lab as it was released, in a version that is kept, or now."""
    path = tree.version(name, version) if version else tree.source(name)
    return Lab.of_notebook(read_notebook(path), str(path))


def visible_lab(lab: Lab) -> Lab:
    """Return a lab without its hidden tests."""
    notebook = deepcopy(lab.notebook)
    for cell in notebook.cells:
        cell.source = without_hidden_tests(cell.source)
    return replace(lab, cells=Lab.of_notebook(notebook, lab.name).cells, notebook=notebook)


def canonical_notebook(tree: CourseTree, lab: str, submitted: NotebookNode) -> NotebookNode:
    """Return the canonical notebook of a submission, with the version that it is of and `repairs` in its metadata.

    `submitted_version` is a version that is kept; `claimed_version` what the notebook says, if that is not the current
    version.

    Raises:
        Refused: it is not a notebook of this lab.
    """
    released = read_notebook(tree.release(lab))
    current = str(released.metadata["mlsys"]["version"])
    claimed = version = str(submitted.metadata.get("mlsys", {}).get("version") or current)
    notes: list[str] = []
    original = None
    # A version is a file's name here, and it comes from the student.
    is_a_name = version.isalnum() and version.isascii() and len(version) <= 40
    if version != current and is_a_name and tree.version(lab, version).is_file():
        original = read_notebook(tree.version(lab, version))
        for cell in original.cells:
            cell.source = without_hidden_tests(starter(cell.source))
        older = with_older_tests(released_lab(tree, lab), released_lab(tree, lab, version))
        notes = [
            f"The notebook says that it is version {version} of the lab, which is at {current} now; "
            + (
                f"the tests of version {version} were used for {', '.join(older)}, as they ask for other names there."
                if older
                else f"the tests of version {current} were used."
            )
        ]
    elif version != current:
        notes = [f"The notebook says version {version[:20]!r} of the lab, which is not kept; {current} was used."]
        version = current
    notes += _other_term(submitted, released)
    canonical = normalize(submitted, released, original)
    canonical.notebook.metadata["mlsys"] |= {
        "submitted_version": version,
        "claimed_version": "" if claimed == current else claimed[:20],
        "repairs": [*notes, *canonical.repairs],
    }
    return canonical.notebook


def _other_term(submitted: NotebookNode, released: NotebookNode) -> list[str]:
    """Say that a notebook is of another term, if it says so: its answers are for other numbers, shapes and faults."""
    says = submitted.metadata.get("mlsys", {})
    said, term = str(says.get("term", "")), str(released.metadata["mlsys"].get("term", ""))
    if said == term or not (said or says.get("version")):  # an editor may have taken the metadata away
        return []
    return [
        f"The notebook says that it is of {f'term {said[:40]!r}' if said else 'no term'}; the lab as it is in "
        f"{f'term {term!r}' if term else 'none'} was used, with other numbers, shapes and faults."
    ]


def with_older_tests(current: Lab, older: Lab) -> list[str]:
    """Name the questions for which a notebook of the older version gets the older tests.

    These are the ones whose interface has changed: answers to the older version may then not run with the newer tests.
    """
    names = {question.name for question in older.questions}
    return [
        question.name
        for question in current.questions
        if question.name in names and not question.written and _interface_changed(current, older, question.name)
    ]


def _interface_changed(current: Lab, older: Lab, question: str) -> bool:
    """Return whether answers define other names or parameters, tests read others, or used names are gone."""
    now, before = _Interface(current, question), _Interface(older, question)
    gone = any(now.given.get(name) != before.given[name] for name in before.used)
    return gone or now.asked != before.asked or now.tested != before.tested


class _Interface:
    """What a question asks for and builds on: names, each with its parameters where it is a function.

    Attributes:
        asked: what its answer cells define.
        tested: what its tests read of all answers.
        given: what the lab's own cells define.
        used: names in `given` that the lab's answers use.
    """

    def __init__(self, lab: Lab, name: str) -> None:
        question = lab.question(name)
        answers = [cell for cell in lab.cells if cell.role in (PREDICT, SOLUTION)]
        self.asked = _definitions(starter(cell.source) for cell in answers if cell.question == name)
        answered = _definitions(starter(cell.source) for cell in answers)
        self.given = _definitions(cell.source for cell in lab.cells if cell.kind == "code" and cell.role in (SETUP, ""))
        read = free_names(plain_python(question.graded.source))
        self.tested = {one: answered[one] for one in read if one in answered and one not in self.given}
        reads = (used_names(plain_python(cell.source)) for cell in answers if cell.question in lab.needed(question))
        self.used = frozenset().union(*reads) & set(self.given)


def _definitions(sources: Iterable[str]) -> dict[str, str]:
    """Map the names that a lab's own cells define to the parameters of the last function, or nothing."""
    found: dict[str, str] = {}
    for source in sources:
        found |= dict.fromkeys(defined_names(source), "")
        for node in parse(plain_python(source)).body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = ast.unparse(node.args)
    return found


def submission_of(notebook: NotebookNode, lab: Lab) -> Submission:
    """Select the cells of a canonical notebook that can run: the lab's and the student's own, in their order.

    Cells that the lab only shows are those of `lab`, wherever the notebook's version has others.
    """
    graded = {cell.id: place for place, cell in enumerate(lab.cells) if cell.role}
    shown = {cell.source: place for place, cell in enumerate(lab.cells) if _is_shown(cell)}
    cells: list[StudentCell] = []
    done = 0

    def show(end: int) -> None:
        nonlocal done
        cells.extend(StudentCell(cell.id, cell.source) for cell in lab.cells[done:end] if _is_shown(cell))
        done = max(done, end)

    for cell in notebook.cells:
        added = cell.metadata.get("mlsys", {}).get("role") == ADDED
        place = None if added else graded.get(grade_id(cell), shown.get(cell.source))
        if place is not None:
            show(place)
        if place is not None and not lab.cells[place].role:
            show(place + 1)
        elif cell.cell_type == "code" and (added or place is not None):
            cells.append(StudentCell(grade_id(cell), cell.source, added))
    show(len(lab.cells))
    return Submission(lab, tuple(cells))


def _is_shown(cell: Cell) -> bool:
    return cell.kind == "code" and not cell.role
