"""The code that students handed in, read within limits, and the lab's own code, which counts for nobody."""

from nbformat import NotebookNode

from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.intake.normalize import ADDED, is_answer
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.intake.reading import LabReader
from mlsys.classroom.processes.limited import LimitExceeded, limited
from mlsys.classroom.similarity.compare import Work
from mlsys.classroom.similarity.tokens import Token, tokens_of
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.store import HISTORY, Store
from mlsys.classroom.students.history import Attempt
from mlsys.course.starter import starter, without_hidden_tests
from mlsys.course.term import archives, present_term
from mlsys.course.tree import CourseTree

MAX_SPLIT_S = 10.0
"""Longest time to split one student's code into tokens, in seconds; it takes a hundredth of one."""


def works_of(tree: CourseTree, lab: str, reader: LabReader, folder: str = "") -> tuple[list[Work], list[str]]:
    """Return the code of everybody in a course's folder, and who is left out, with the reason.

    Of each student and term, the attempt counts that is graded; before any is, and in place of a refused one, the
    newest.

    Args:
        tree: the course, of this or an earlier term.
        lab: the lab.
        reader: reads submissions to the lab as it is released in that folder, or here.
        folder: what an earlier folder is called; empty for that of the present term.
    """
    store, present = store_of(tree), present_term(tree)
    works, left_out = [], []
    for student in students_with_attempts(tree, lab):
        by_term: dict[str, list[Attempt]] = {}
        for attempt in store.history(lab, student).attempts:
            if attempt.digest:
                by_term.setdefault(attempt.term, []).append(attempt)
        record = store.record(lab, student)
        for term, kept in by_term.items():
            counting = [one for one in kept if record and not record.refused and one.digest == record.submission]
            attempt = (counting or kept)[-1]
            group = record.handed_in.group if record and counting else ""
            earlier = folder or ("" if term == present else term or "before the first term")
            try:
                works.append(_work(store, reader, lab, student, earlier, group, attempt))
            except (Refused, LimitExceeded, OSError) as reason:
                left_out.append(f"{student}{f' ({earlier})' if earlier else ''}: {reason}")
    return works, left_out


def students_with_attempts(tree: CourseTree, lab: str) -> list[str]:
    """Return the students of whom the course keeps attempts at a lab, wherever it keeps them."""
    return sorted({key.student for key in store_of(tree).all_keys(lab, (HISTORY,))})


def starter_of(tree: CourseTree, lab: str) -> list[list[Token]]:
    """Return the tokens of all that students are given, in every version and term: setup, starters, visible tests."""
    sources = {
        without_hidden_tests(starter(cell.source))
        for term in (tree, *archives(tree, lab))
        for path in term.versions(lab)
        for cell in released_lab(term, lab, path.stem).cells
        if cell.kind == "code"
    }
    return [cell for source in sorted(sources) for cell in tokens_of([source])[0]]


def _work(store: Store, reader: LabReader, lab: str, student: str, term: str, group: str, attempt: Attempt) -> Work:
    notebook = reader.canonical(store.content(lab, student, attempt.digest), attempt.term)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and (is_answer(cell) or _is_added(cell))]
    sources = [cell.source for cell in cells]
    split, left_out = limited(tokens_of, sources, time_s=MAX_SPLIT_S)
    names = [cell.metadata["mlsys"].get("question") or "added" for cell in cells]
    return Work(student, term, group, attempt.digest, names, sources, split, left_out)


def _is_added(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("mlsys", {}).get("role") == ADDED)
