"""One cell of a lab: its role, and the rules that its metadata and its marked regions must keep."""

import re
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode

from mlsys.errors import UnknownName, UserError

SETUP, PREDICT, SOLUTION, TEST, SPEED, WRITTEN = "setup", "predict", "solution", "test", "speed", "written"
ROLES = (SETUP, PREDICT, SOLUTION, TEST, SPEED, WRITTEN)
ANSWERS = (PREDICT, SOLUTION, WRITTEN)
"""Roles of the cells that a student fills in."""
GRADED = (TEST, SPEED, WRITTEN)
"""Roles of the cells that carry points."""

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


@dataclass(frozen=True)
class Cell:
    """One cell of a lab; `role` and `question` are empty for prose and for cells that are only shown."""

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
    """One cell of a lab's notebook, checked; `where` is the lab's name in messages."""
    nbgrader: dict[str, Any] = cell.metadata.get("nbgrader", {})
    mlsys: dict[str, Any] = cell.metadata.get("mlsys", {})
    where = f"{where}, cell {cell['id']!r}"
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
    if mlsys.get("device", "any") not in ("any", "gpu"):
        raise LabError(f'{where}: device {mlsys["device"]!r} is not known; use "any" or "gpu"')
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
        raise LabError(f"{where}: a solution region stands outside the answer cells, so students would see it")
    if role not in (TEST, SPEED) and "HIDDEN TESTS" in kinds:
        raise LabError(f"{where}: hidden tests belong in test and speed cells only")
