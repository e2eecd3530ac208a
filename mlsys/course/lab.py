"""A lab as the course machinery sees it: cells with roles, and the questions that they make up.

A lab is written as one `lab.py` in py:percent form; nbgrader works on the notebook made of it. Both are read here, and
every rule that a lab must keep is checked here, with the cell and the cure in the message.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode

from mlsys.core.package import defined_as
from mlsys.course.term import read_variants, with_variants
from mlsys.errors import InvalidValue, UnknownName, UserError

SETUP, PREDICT, SOLUTION, TEST, SPEED, WRITTEN = "setup", "predict", "solution", "test", "speed", "written"
VARIANTS = "variants"
"""Role of the cell that says what a term draws; it is in no notebook."""
ROLES = (SETUP, PREDICT, SOLUTION, TEST, SPEED, WRITTEN)
ANSWERS = (PREDICT, SOLUTION, WRITTEN)
"""Roles of the cells that a student fills in."""
GRADED = (TEST, SPEED, WRITTEN)
"""Roles of the cells that carry points."""

DEVICES = ("any", "cpu", "gpu")
"""Where a question is judged: on the device of the class; on the CPU, since its kernels are interpreted everywhere; or
on a GPU, where it is timed."""

_GRADE_AND_SOLUTION = {
    SETUP: (False, False),
    PREDICT: (False, True),
    SOLUTION: (False, True),
    TEST: (True, False),
    SPEED: (True, False),
    WRITTEN: (True, True),
}
_REGION = re.compile(r"### (BEGIN|END) (SOLUTION|HIDDEN TESTS)")


class LabError(UserError):
    """A lab that breaks one of the rules of a lab source."""


class UnreadableLab(LabError):
    """A file that cannot be read as the source of a lab."""


@dataclass(frozen=True)
class Cell:
    """One cell of a lab; `role` and `question` are empty for prose and for cells that are only shown.

    `device` is one of `DEVICES`.
    """

    id: str
    kind: str
    source: str
    role: str = ""
    question: str = ""
    needs: tuple[str, ...] = ()
    device: str = "any"
    title: str = ""
    points: float = 0.0


def read_cell(cell: NotebookNode, where: str) -> Cell:
    """Return one cell of a lab's notebook, checked; `where` is the lab's name in messages."""
    nbgrader: dict[str, Any] = cell.metadata.get("nbgrader", {})
    mlsys: dict[str, Any] = cell.metadata.get("mlsys", {})
    where = f"{where}, cell {cell['id']!r}"
    if title := cell.metadata.get("title"):
        raise LabError(
            f"{where}: {title[:40]!r} stands behind `%%`, so no student sees it; move it to a line of its own"
        )
    if not mlsys.get("role"):
        if nbgrader:
            raise LabError(
                f'{where}: has nbgrader metadata and no role; add mlsys={{"role": ...}} ({", ".join(ROLES)})'
            )
        _check_regions(cell.source, where, role="")
        return Cell(cell["id"], cell.cell_type, cell.source)
    role = str(mlsys["role"])
    if role not in ROLES:
        raise UnknownName.of(f"role in {where}", role, ROLES)
    if not nbgrader.get("grade_id"):
        raise LabError(f"{where}: role {role!r} needs nbgrader metadata with a grade_id")
    flags = (bool(nbgrader.get("grade")), bool(nbgrader.get("solution")))
    if flags != _GRADE_AND_SOLUTION[role]:
        grade, solution = (str(flag).lower() for flag in _GRADE_AND_SOLUTION[role])
        raise LabError(f'{where}: role {role!r} needs nbgrader "grade": {grade}, "solution": {solution}')
    if bool(nbgrader.get("locked")) != (role in (SETUP, TEST, SPEED)):
        raise LabError(f'{where}: set nbgrader "locked" to true for setup, test and speed cells, to false for answers')
    if role in GRADED and not float(nbgrader.get("points", 0)) > 0:
        raise LabError(f'{where}: role {role!r} needs nbgrader "points" above 0')
    if role != SETUP and not mlsys.get("question"):
        raise LabError(f'{where}: role {role!r} needs a question, such as "question": "c"')
    if mlsys.get("device", "any") not in DEVICES:
        raise LabError(f"{where}: device {mlsys['device']!r} is not known; use one of {', '.join(DEVICES)}")
    _check_regions(cell.source, where, role)
    return Cell(
        id=cell["id"],
        kind=cell.cell_type,
        source=cell.source,
        role=role,
        question=str(mlsys.get("question", "")) if role != SETUP else "",
        needs=tuple(mlsys.get("needs", ())),
        device=str(mlsys.get("device", "any")),
        title=str(mlsys.get("title", "")),
        points=float(nbgrader.get("points", 0)) if role in GRADED else 0.0,
    )


def _check_regions(source: str, where: str, role: str) -> None:
    marks = _REGION.findall(source)
    if [step for step, _ in marks] != ["BEGIN", "END"] * (len(marks) // 2) or any(
        first[1] != second[1] for first, second in zip(marks[::2], marks[1::2], strict=False)
    ):
        raise LabError(f"{where}: BEGIN and END markers must come in pairs, one after the other")
    kinds = {kind for _, kind in marks}
    if role in ANSWERS and "SOLUTION" not in kinds:
        raise LabError(f"{where}: an answer cell needs a `### BEGIN SOLUTION` ... `### END SOLUTION` region")
    if role not in ANSWERS and "SOLUTION" in kinds:
        raise LabError(f"{where}: a solution region is outside the answer cells, so students would see it")
    if role not in (TEST, SPEED) and "HIDDEN TESTS" in kinds:
        raise LabError(f"{where}: hidden tests belong in test and speed cells only")


__all__ = [
    "ANSWERS",
    "PREDICT",
    "SETUP",
    "SOLUTION",
    "VARIANTS",
    "Cell",
    "Lab",
    "LabError",
    "Question",
    "UnreadableLab",
    "find_lab",
    "find_labs",
]


@dataclass(frozen=True)
class Question:
    """What is graded together: the student's answer cells and the one cell that carries the points.

    `device` is one of `DEVICES`.
    """

    name: str
    title: str
    answers: tuple[Cell, ...]
    graded: Cell
    needs: tuple[str, ...]
    device: str

    @property
    def points(self) -> float:
        """The most points that the question gives."""
        return self.graded.points

    @property
    def written(self) -> bool:
        """Whether a person marks it."""
        return self.graded.role == WRITTEN


@dataclass(frozen=True)
class Lab:
    """A lab: its name, its version, and its cells in order.

    `withheld` names modules, classes and functions of the package that answer its questions: student code cannot call
    them when the lab is graded. `variants` is what a term has drawn, by the name in whose place it stands.
    """

    name: str
    version: str
    cells: tuple[Cell, ...]
    notebook: NotebookNode
    withheld: tuple[str, ...] = ()
    variants: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, seeds: Sequence[str] = ()) -> "Lab":
        """Return the lab in a `lab.py` (py:percent).

        Args:
            path: the file, `labs/<lab>/lab.py`.
            seeds: of the terms so far, the present one last; none for the lab as it is without a term.

        Raises:
            UnreadableLab: the file cannot be read.
            LabError: it breaks a rule; the message names the cell and the cure.
        """
        try:
            notebook = jupytext.read(path, fmt="py:percent")
        except (OSError, UnicodeDecodeError, ValueError, SyntaxError) as error:
            raise UnreadableLab(f"{path}: not readable as py:percent ({error})") from error
        notebook.metadata.pop("jupytext", None)
        notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
        notebook.metadata["language_info"] = {"name": "python"}
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        variants = _take_variants(notebook, seeds, str(path))
        lab = str(notebook.metadata.get("mlsys", {}).get("lab", ""))
        for index, cell in enumerate(notebook.cells):
            cell["id"] = str(cell.metadata.get("nbgrader", {}).get("grade_id", "")) or f"{lab}-{index}"
        return replace(cls.of_notebook(notebook, str(path)), variants=variants)

    @classmethod
    def of_notebook(cls, notebook: NotebookNode, where: str) -> "Lab":
        """Return the lab in a source notebook; `where` is its name in messages."""
        about = notebook.metadata.get("mlsys", {})
        if not about.get("lab") or not about.get("version"):
            raise LabError(
                f'{where}: the header needs `mlsys: {{lab: NAME, version: "1"}}` under `jupyter:` (found {dict(about)})'
            )
        cells = tuple(read_cell(cell, where) for cell in notebook.cells)
        lab = cls(str(about["lab"]), str(about["version"]), cells, notebook, _withheld(about, where))
        lab._check(where)
        return lab

    @cached_property
    def title(self) -> str:
        """The first heading of the lab, or its name."""
        found = re.search(r"^# +(.+)$", "\n".join(cell.source for cell in self.cells if cell.kind == "markdown"), re.M)
        return found.group(1).strip() if found else self.name

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions in the order in which they are graded."""
        return tuple(self._question(cell) for cell in self.cells if cell.role in GRADED)

    def question(self, name: str) -> Question:
        """Return the question called `name`."""
        for question in self.questions:
            if question.name == name:
                return question
        raise UnknownName.of(f"question of lab {self.name}", name, [question.name for question in self.questions])

    def needed(self, question: Question) -> tuple[str, ...]:
        """Return the questions whose answers run for `question`: those it needs, those they need, and itself."""
        found: list[str] = []

        def visit(name: str) -> None:
            if name != SETUP and name not in found:
                for other in self.question(name).needs:
                    visit(other)
                found.append(name)

        visit(question.name)
        return tuple(found)

    def _cells_of(self, question: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.question == question]

    def _question(self, graded: Cell) -> Question:
        members = self._cells_of(graded.question)
        needs = dict.fromkeys(name for cell in members for name in cell.needs)
        devices = {cell.device for cell in members} - {"any"}
        return Question(
            name=graded.question,
            title=next((cell.title for cell in members if cell.title), ""),
            answers=tuple(cell for cell in members if cell.role in ANSWERS),
            graded=graded,
            needs=tuple(needs),
            device=min(devices, default="any"),
        )

    def _check(self, where: str) -> None:
        _refuse_repeats(where, "cell id", (cell.id for cell in self.cells), "give every cell its own grade_id")
        graded = [cell.question for cell in self.cells if cell.role in GRADED]
        _refuse_repeats(where, "graded cell of question", graded, "a question has one cell with points")
        if not graded:
            raise LabError(f"{where}: no cell carries points; add a cell with role test, speed or written")
        for cell in self.cells:
            if cell.role in ANSWERS and cell.question not in graded:
                raise LabError(
                    f"{where}: question {cell.question!r} of cell {cell.id!r} has no test, speed or written cell"
                )
        for question in self.questions:
            for name in question.needs:
                if name != SETUP and name not in graded:
                    raise UnknownName.of(
                        f"question in needs of question {question.name!r} ({where})", name, {*graded, SETUP}
                    )
                if name != SETUP and question.name in self.question(name).needs:
                    raise LabError(f"{where}: questions {question.name!r} and {name!r} need each other")
            devices = {cell.device for cell in self._cells_of(question.name)}
            if "cpu" in devices and ("gpu" in devices or question.graded.role == SPEED):
                raise LabError(f"{where}: question {question.name!r} is timed, so none of its cells can be for the CPU")
            if not question.answers and not any(name != SETUP for name in question.needs):
                raise LabError(f"{where}: question {question.name!r} has no solution cell and needs no other question")


def _take_variants(notebook: NotebookNode, seeds: Sequence[str], where: str) -> dict[str, str]:
    """Take the cell with the variants out of a notebook, put what a term has drawn in its places, and return it."""
    declared = [cell for cell in notebook.cells if cell.metadata.get("mlsys", {}).get("role") == VARIANTS]
    if len(declared) > 1:
        raise LabError(f"{where}: {len(declared)} cells have the role {VARIANTS!r}; put all variants into one")
    notebook.cells = [cell for cell in notebook.cells if cell not in declared]
    try:
        variants = read_variants(declared[0].source, seeds) if declared else {}
    except Exception as error:
        raise LabError(f"{where}: the cell with the variants fails: {type(error).__name__}: {error}") from error
    for cell in notebook.cells:
        try:
            cell.source = with_variants(cell.source, variants)
        except InvalidValue as error:
            raise LabError(f"{where}: {error}") from None
    return variants


def _withheld(about: Mapping[str, object], where: str) -> tuple[str, ...]:
    names = about.get("withheld", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise LabError(
            f"{where}: the header's `withheld` must be a list of names, such as [mlsys.ops] (found {names!r})"
        )
    try:
        for name in names:
            defined_as(name)
    except InvalidValue as error:
        raise LabError(f"{where}: the header's `withheld`: {error}") from None
    return tuple(sorted(names))


def _refuse_repeats(where: str, what: str, values: Iterable[str], cure: str) -> None:
    repeated = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise LabError(f"{where}: {what} {repeated[0]!r} appears more than once; {cure}")


def find_labs(root: Path) -> dict[str, Path]:
    """Return the labs of a repository: name of the folder -> its `lab.py`."""
    return {path.parent.name: path for path in sorted((root / "labs").glob("*/lab.py"))}


def find_lab(root: Path, name: str) -> Path:
    """Return the source of lab `name`, or raise an error that lists the labs there are."""
    labs = find_labs(root)
    if not labs:
        raise LabError(f"{root.resolve() / 'labs'} holds no lab: run the command in the course repository")
    if name not in labs:
        raise UnknownName.of("lab", name, labs)
    return labs[name]
