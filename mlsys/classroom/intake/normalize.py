"""Turn an edited notebook into the canonical one: the released notebook with the student's answers in their places.

Students copy, delete, move and edit cells, and editors strip or change their marks. The answers are found by grade_id,
then by cell id, then by the names that they define, then by their place; everything of the course's own is put back as
released; what the student added stays, in order. Each repair is one plain sentence in the report.
"""

import copy
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nbformat import NotebookNode

from mlsys.classroom.intake.reader import OfAnotherLab, Refused
from mlsys.core.cells import PARSE_ERRORS, defined_names, parse, plain_python
from mlsys.judge.student_cells import read_added

ADDED = "added"
"""Role of a student's own cells in a canonical notebook."""

MAX_LISTED_LINES = 8
"""Most line numbers that one sentence of the report lists."""


@dataclass(frozen=True)
class Canonical:
    """A notebook ready for grading, and the repairs that were made."""

    notebook: NotebookNode
    repairs: tuple[str, ...]


def normalize(submitted: NotebookNode, released: NotebookNode, original: NotebookNode | None = None) -> Canonical:
    """Return the canonical form of a submission.

    Args:
        submitted: the student's notebook, as `mlsys.classroom.intake.reader.read_submission` gives it.
        released: the lab's released notebook.
        original: the released notebook of the version that the student worked on, when it is another.

    Raises:
        Refused: it is a notebook of another lab, or holds none of the lab's cells.
    """
    name = str(released.metadata["mlsys"]["lab"])
    claimed = str(submitted.metadata.get("mlsys", {}).get("lab", ""))
    if claimed and claimed != name:
        raise OfAnotherLab(
            f"the notebook is of lab {claimed[:40]!r}, not of lab {name!r}: hand in the notebook of this lab"
        )
    matches = _match(submitted.cells, released.cells)
    if not any(_is_ours(released.cells[place]) for place in matches.values()):
        raise Refused(
            f"the notebook holds none of the cells of lab {name!r}: hand in the notebook that you started from"
        )
    chosen = {
        place: _best(
            [cell for cell, target in matches.items() if target == place], submitted.cells, released.cells[place]
        )
        for place in set(matches.values())
    }
    report = _Report(submitted.cells, released.cells, (original or released).cells, matches, chosen)
    notebook = copy.deepcopy(released)
    notebook.cells = _assemble(submitted.cells, notebook.cells, (original or released).cells, matches, chosen)
    notebook.metadata["mlsys"]["submitted_version"] = str(
        submitted.metadata.get("mlsys", {}).get("version") or released.metadata["mlsys"]["version"]
    )
    return Canonical(notebook, tuple(report.sentences()))


def grade_id(cell: NotebookNode) -> str:
    """Return the grade_id of a cell, or nothing."""
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))


def _is_ours(cell: NotebookNode) -> bool:
    return bool(grade_id(cell)) and cell.metadata["mlsys"]["role"] != "setup"


def _is_shown(cell: NotebookNode) -> bool:
    """Return whether a released cell is code that the lab only shows; changed by a student, it is an added cell."""
    return cell.cell_type == "code" and not grade_id(cell)


def is_answer(cell: NotebookNode) -> bool:
    """Return whether a released cell is one that the student fills in."""
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def _match(cells: list[NotebookNode], released: list[NotebookNode]) -> dict[int, int]:
    """Map the index of a student's cell to that of the released cell that it is, or is a copy of."""
    matches: dict[int, int] = {}

    def by(key: Callable[[NotebookNode], object], released_key: Callable[[NotebookNode], object]) -> None:
        places = {value: place for place, cell in reversed(list(enumerate(released))) if (value := released_key(cell))}
        for index, cell in enumerate(cells):
            if index not in matches and (place := places.get(key(cell))) is not None:
                matches[index] = place

    by(grade_id, grade_id)
    by(lambda cell: (cell.cell_type, cell.source.strip()), lambda cell: (cell.cell_type, cell.source.strip()))
    found = set(matches.values())
    left = {id(cell) for place, cell in enumerate(released) if place not in found}
    by(lambda cell: cell.metadata.get("student_id"), lambda cell: cell["id"] if id(cell) in left else None)
    _match_answers_by_names(cells, released, matches)
    _match_written_by_place(cells, released, matches)
    return matches


def _match_answers_by_names(cells: list[NotebookNode], released: list[NotebookNode], matches: dict[int, int]) -> None:
    for place, target in enumerate(released):
        names = defined_names(target.source) if is_answer(target) and target.cell_type == "code" else frozenset()
        if not names or place in matches.values():
            continue
        for index, cell in enumerate(cells):
            if index not in matches and cell.cell_type == "code" and names <= defined_names(cell.source):
                matches[index] = place


def _match_written_by_place(cells: list[NotebookNode], released: list[NotebookNode], matches: dict[int, int]) -> None:
    for place, target in enumerate(released):
        if not is_answer(target) or target.cell_type != "markdown" or place in matches.values():
            continue
        before = max((index for index, other in matches.items() if other == place - 1), default=-1)
        after = min((index for index, other in matches.items() if other > place and index > before), default=len(cells))
        for index in range(before + 1, after):
            if before >= 0 and index not in matches and cells[index].cell_type == "markdown":
                matches[index] = place
                break


def _best(candidates: list[int], cells: list[NotebookNode], released: NotebookNode) -> int:
    """Choose the last copy that the student worked on: a notebook's last definition wins."""
    changed = [index for index in candidates if cells[index].source.strip() != released.source.strip()]
    return (changed or candidates)[-1]


def _assemble(
    cells: list[NotebookNode],
    released: list[NotebookNode],
    original: list[NotebookNode],
    matches: dict[int, int],
    chosen: dict[int, int],
) -> list[NotebookNode]:
    following: dict[int, list[NotebookNode]] = {}
    shown = {cell.source.strip() for cell in original if not grade_id(cell)}
    place = -1
    for index, cell in enumerate(cells):
        target = matches.get(index)
        if target is not None and chosen[target] == index:
            place = target
            worked_in = _is_shown(released[target]) and cell.cell_type == "code" and cell.source.strip() not in shown
        else:
            worked_in = target is None or (
                is_answer(released[target]) and cell.source.strip() != released[target].source.strip()
            )
        if worked_in:
            cell = copy.deepcopy(cell)
            cell.metadata = {"mlsys": {"role": ADDED}}
            cell["id"] = f"added-{index}"
            following.setdefault(place, []).append(cell)
    result = following.get(-1, [])
    for place, cell in enumerate(released):
        if is_answer(cell) and place in chosen:
            answer = cells[chosen[place]]
            cell.source = answer.source
            if cell.cell_type == answer.cell_type == "markdown" and "attachments" in answer:
                cell.attachments = answer.attachments
        result += [cell, *following.get(place, [])]
    return result


@dataclass(frozen=True)
class _Report:
    """The repairs, as sentences for the student."""

    cells: list[NotebookNode]
    released: list[NotebookNode]
    original: list[NotebookNode]
    matches: dict[int, int]
    chosen: dict[int, int]

    def sentences(self) -> Iterable[str]:
        texts = {grade_id(cell): cell.source for cell in self.original if grade_id(cell)}
        for place, target in enumerate(self.released):
            if not grade_id(target):
                continue
            name = _name(target)
            copies = [index for index, other in self.matches.items() if other == place]
            if not copies:
                yield (
                    f"{name} was missing; it counts as not written."
                    if is_answer(target)
                    else f"{name} was missing; it was put back."
                )
                continue
            if len(copies) > 1:
                kept = "the last one that was worked on counts" if is_answer(target) else "the original counts"
                yield f"{name} stood there {len(copies)} times; {kept}."
            cell = self.cells[self.chosen[place]]
            expected = texts.get(grade_id(target), target.source)
            if not is_answer(target) and any(_differs(self.cells[index].source, expected) for index in copies):
                yield f"{name} had been edited; the original was put back."
            yield from self._marks(cell, target, name)
        order = [self.chosen[place] for place in sorted(self.chosen) if grade_id(self.released[place])]
        if order != sorted(order):
            yield "The cells stood in another order; they were put back in the lab's order."
        for index, cell in enumerate(self.cells):
            yield from self._unread(index, cell)
            if index not in self.matches and cell.cell_type == "code" and (lines := read_added(cell.source).left_out):
                where = ", ".join(map(str, lines[:MAX_LISTED_LINES])) + (
                    ", ..." if len(lines) > MAX_LISTED_LINES else ""
                )
                yield (
                    f"An added cell (number {index + 1}) has loops or conditions at its top level (line {where}); "
                    "of added cells only imports, definitions and assignments are used."
                )

    def _unread(self, index: int, cell: NotebookNode) -> Iterable[str]:
        target = self.matches.get(index)
        if target is not None:
            released = self.released[target]
            if self.chosen[target] != index or not is_answer(released) or released.cell_type != "code":
                return
        if cell.cell_type != "code":
            return
        try:
            parse(plain_python(cell.source))
        except SyntaxError as error:
            name = f"An added cell (number {index + 1})" if target is None else _name(self.released[target])
            python = ".".join(platform.python_version_tuple()[:2])
            yield f"{name} is not Python as it is read here, with version {python}: see its line {error.lineno or 1}."
        except PARSE_ERRORS:
            pass  # what is nested too deeply is said where it is needed

    def _marks(self, cell: NotebookNode, target: NotebookNode, name: str) -> Iterable[str]:
        if grade_id(cell) != grade_id(target):
            yield f"{name} had lost its marks; it was recognized and got them back."
            return
        marks, right = cell.metadata["nbgrader"], target.metadata["nbgrader"]
        wrong = [
            key for key in ("grade", "solution", "locked", "points") if key in marks and marks[key] != right.get(key)
        ]
        if wrong:
            yield f"{name} had changed marks ({', '.join(wrong)}); they were set right."
        if cell.cell_type != target.cell_type:
            yield f"{name} had become a {cell.cell_type} cell; it was read as {target.cell_type}."


def _name(cell: NotebookNode) -> str:
    about = cell.metadata["mlsys"]
    kind = {"setup": "setup cell", "test": "test cell", "speed": "speed test"}.get(about["role"], "answer cell")
    question = f" of question {about['question']}" if about.get("question") and about["role"] != "setup" else ""
    return f"The {kind} {grade_id(cell)!r}{question}"


def _differs(one: str, other: str) -> bool:
    return [line.rstrip() for line in one.strip().split("\n")] != [line.rstrip() for line in other.strip().split("\n")]
