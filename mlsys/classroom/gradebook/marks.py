"""Marks: the points and comments that people gave in nbgrader's gradebook, and pages that show them.

The gradebook is a file that can be lost, so what was found in it is kept in the store as well. A mark belongs to the
answer that a person read: when the answer changes, the mark lapses, after a yes.
"""

from collections.abc import Collection, Mapping, Sequence

from nbformat import NotebookNode

from mlsys.classroom.gradebook.feedback import feedback_page
from mlsys.classroom.gradebook.scores import comments_of_people, marks_in
from mlsys.classroom.intake.normalize import is_answer
from mlsys.classroom.store.marks import Marks
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.store import Store
from mlsys.core.files import write_atomically
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.notebook import read_notebook
from mlsys.course.tree import CourseTree
from mlsys.errors import NeedsYes

_NAMED = 10
"""Most marks that a message names."""


def marks_of(tree: CourseTree, lab: str) -> dict[str, Marks]:
    """Return what people gave in the gradebook, by student; without those who got nothing from anybody."""
    if not tree.gradebook.is_file():  # opening it would make one
        return {}
    found = {}
    with open_gradebook(tree) as gradebook:
        for submission in gradebook.assignment_submissions(lab):
            student = submission.student.id
            points = {name: given for (_, name), given in marks_in(student, submission.notebooks).items()}
            comments = {
                name: text for notebook in submission.notebooks for name, text in comments_of_people(notebook).items()
            }
            penalty = sum(float(notebook.late_submission_penalty or 0) for notebook in submission.notebooks)
            if points or comments or penalty:
                found[student] = Marks(points, comments, penalty)
    return found


def marked_records(store: Store, lab: str, marks: Mapping[str, Marks]) -> dict[str, Record | None]:
    """Return the records of a lab with the points that people gave, by student; None for one that cannot be read."""
    return {student: _marked(record, marks) if record else None for student, record in store.records(lab).items()}


def check_marks(tree: CourseTree, store: Store, lab: str, *, accept: bool) -> dict[str, Marks]:
    """Return what people gave, and refuse to go on where the gradebook lacks points, as an older copy of it does.

    Args:
        tree: the course.
        store: where the marks of the last call are kept.
        lab: the lab.
        accept: go on without them.

    Raises:
        NeedsYes: points are missing, and `accept` is not set.
    """
    kept, now = store.marks(lab), marks_of(tree, lab)
    lost = [
        f"{student} {name}: {points:g}"
        for student, marks in kept.items()
        for name, points in marks.points.items()
        if name not in now.get(student, Marks()).points
    ]
    if lost and not accept:
        more = f"\n  and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        gone = "1 mark that a person gave is" if len(lost) == 1 else f"{len(lost)} marks that people gave are"
        raise NeedsYes(
            f"{gone} no longer in {tree.gradebook}:\n  "
            + "\n  ".join(lost[:_NAMED])
            + f"{more}\nNothing was changed. If the file was lost, or is an older copy, put back the newest one in "
            f"{tree.backups}. If the marks were taken back on purpose, run the same command with --yes"
        )
    return now


def void_marks(tree: CourseTree, lab: str, student: str, names: Collection[str]) -> None:
    """Take the points that people gave for these cells out of the gradebook, for their answers have changed."""
    with open_gradebook(tree) as gradebook:
        for notebook in gradebook.find_submission(lab, student).notebooks:
            for grade in notebook.grades:
                if grade.cell.name in names:
                    grade.manual_score = None
                    grade.needs_manual_grade = grade.auto_score is None
        gradebook.db.commit()


def answers_to(notebook: NotebookNode, question: str) -> Sequence[str]:
    """Return the texts of a student's answer to a question of a canonical notebook."""
    return [
        cell.source
        for cell in notebook.cells
        if cell.metadata.get("mlsys", {}).get("question") == question and is_answer(cell)
    ]


def refresh_pages(tree: CourseTree, store: Store, lab: str) -> dict[str, Marks]:
    """Return what people gave, and rewrite the feedback pages on which it has changed since the last call."""
    kept, now = store.marks(lab), marks_of(tree, lab)
    changed = sorted(
        student for student in kept.keys() | now.keys() if kept.get(student, Marks()) != now.get(student, Marks())
    )
    for student in changed:
        _write_page(tree, store, lab, student, now)
    if changed:
        store.save_marks(lab, now)
    return now


def _write_page(tree: CourseTree, store: Store, lab: str, student: str, marks: Mapping[str, Marks]) -> None:
    record, path = store.record(lab, student), tree.autograded(lab, student)
    if record is None or record.refused or not path.is_file():
        return  # a refusal's page shows no answers, so no marks
    given = marks.get(student, Marks())
    page = feedback_page(read_notebook(path), _marked(record, marks), given.comments, given.penalty)
    write_atomically(tree.feedback(lab, student), page.encode())


def _marked(record: Record, marks: Mapping[str, Marks]) -> Record:
    """Return a record with the points that people gave its student."""
    given = marks.get(record.student, Marks()).points
    return record.marked({(record.student, name): points for name, points in given.items()})
