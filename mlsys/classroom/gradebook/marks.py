"""Marks: the points and comments that people gave in nbgrader's gradebook, and pages that show them.

The gradebook is a file that can be lost, so what was found in it is kept in the store as well. A mark belongs to the
answer that a person read: when the answer changes, the mark lapses, after a yes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from nbformat import NotebookNode

from mlsys.classroom.gradebook.feedback import feedback_page
from mlsys.classroom.gradebook.scores import comments_of_people, marks_in
from mlsys.classroom.intake.normalize import is_answer
from mlsys.classroom.store.marks import Marks
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.store import Store
from mlsys.core.files import write_atomically
from mlsys.course.nbgrader import gradebook_exists, open_gradebook
from mlsys.course.notebook import read_notebook
from mlsys.course.tree import CourseTree
from mlsys.errors import NeedsYes

Value = TypeVar("Value", float, str)
Given = Mapping[str, Mapping[str, Value]]
"""What people gave, by student and grade_id."""
_NAMED = 10
"""Most marks that a message names."""


def marks_of(tree: CourseTree, lab: str) -> dict[str, Marks]:
    """Return what people gave in the gradebook, by student; without those who got nothing from anybody."""
    if not gradebook_exists(tree):  # opening it would make one
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


def entered(tree: CourseTree, lab: str) -> frozenset[str]:
    """Return the students whose submissions are in the gradebook."""
    if not gradebook_exists(tree):
        return frozenset()
    with open_gradebook(tree) as gradebook:
        return frozenset(submission.student_id for submission in gradebook.assignment_submissions(lab))


def marked_records(store: Store, lab: str, marks: Mapping[str, Marks]) -> dict[str, Record | None]:
    """Return the records of a lab with the points that people gave, by student; None for one that cannot be read."""
    return {student: marked(record, marks) if record else None for student, record in store.records(lab).items()}


def read_class(tree: CourseTree, store: Store, lab: str) -> dict[str, Record | None]:
    """Return the records with the points that people gave, after bringing pages and histories of scores up to date."""
    records = marked_records(store, lab, refresh_pages(tree, store, lab))
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    for student, record in records.items():
        before = store.scores(lab, student)
        if record and (after := before.with_record(record, now)) is not before:
            store.save_scores(lab, after)
    return records


def lost_marks(store: Store, lab: str, now: Mapping[str, Marks]) -> list[str]:
    """Return what people gave by the last call and the gradebook lacks now, each in a few words."""
    return [
        f"{student} {name}: {points:g}"
        for student, marks in store.marks(lab).items()
        for name, points in marks.points.items()
        if name not in now.get(student, Marks()).points
    ]


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
    now = marks_of(tree, lab)
    lost = lost_marks(store, lab, now)
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
    _write_marks(tree, lab, [student], dict.fromkeys(names), {})


def give_mark(tree: CourseTree, lab: str, student: str, cells: Sequence[str], points: float | None, text: str) -> None:
    """Enter in the gradebook what a person gives for a question, as formgrader does.

    Args:
        tree: the course.
        lab: the lab.
        student: whose answer it is.
        cells: grade_id of the cell that has the points, and of the one that takes the comment, if there is one.
        points: the points, or None to take a mark back.
        text: the comment.
    """
    graded, *answers = cells
    _write_marks(tree, lab, [student], {graded: points}, dict.fromkeys(answers, text or None))


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
    there = entered(tree, lab)  # nobody, if the gradebook was lost: the next grading enters all again
    if _share_marks(tree, store, lab, kept, now, there):
        now = marks_of(tree, lab)
    if _write_penalties(tree, store, lab, now, there):
        now = marks_of(tree, lab)
    changed = sorted(
        student for student in kept.keys() | now.keys() if kept.get(student, Marks()) != now.get(student, Marks())
    )
    for student in changed:
        write_page(tree, store, lab, student, now)
    if changed:
        store.save_marks(lab, now)
    return now


def _share_marks(
    tree: CourseTree,
    store: Store,
    lab: str,
    kept: Mapping[str, Marks],
    now: Mapping[str, Marks],
    there: Collection[str],
) -> bool:
    """Give every member of a group what a person gave one of them since the last call; return whether there was any."""
    shared = False
    groups: dict[tuple[str, str], list[str]] = {}
    for student, record in store.records(lab).items():
        if record and record.handed_in.group and not record.refused and student in there:
            groups.setdefault((record.handed_in.group, record.submission), []).append(student)
    for members in groups.values():
        points = _given(members, _each(kept, lambda marks: marks.points), _each(now, lambda marks: marks.points))
        comments = _given(members, _each(kept, lambda marks: marks.comments), _each(now, lambda marks: marks.comments))
        if points or comments:
            _write_marks(tree, lab, members, points, comments)
            shared = True
    return shared


def _each(marks: Mapping[str, Marks], what: Callable[[Marks], Mapping[str, Value]]) -> dict[str, Mapping[str, Value]]:
    return {student: what(one) for student, one in marks.items()}


def _given(members: Sequence[str], kept: Given[Value], now: Given[Value]) -> dict[str, Value | None]:
    """Return what is to hold for every member of a group, by grade_id: None where a person took it back.

    That is what is new at one of them since the last call, or else what all others have. Where several are given
    different values, each keeps the own.
    """
    found: dict[str, Value | None] = {}
    for name in {name for who in (kept, now) for member in members for name in who.get(member, {})}:
        values = {member: now.get(member, {}).get(name) for member in members}
        new = {value for member, value in values.items() if value != kept.get(member, {}).get(name)}
        one = new or {value for value in values.values() if value is not None}
        if len(one) == 1 and len(set(values.values())) > 1:
            found[name] = one.pop()
    return found


def _write_marks(
    tree: CourseTree,
    lab: str,
    members: Sequence[str],
    points: Mapping[str, float | None],
    comments: Mapping[str, str | None],
) -> None:
    """Write points and comments by grade_id into the gradebook for each of these students; None takes them back."""
    with open_gradebook(tree) as gradebook:
        for member in members:
            for notebook in gradebook.find_submission(lab, member).notebooks:
                for grade in notebook.grades:
                    if grade.cell.name in points:
                        grade.manual_score = points[grade.cell.name]
                        grade.needs_manual_grade = grade.manual_score is None and grade.auto_score is None
                for remark in notebook.comments:
                    if remark.cell.name in comments:
                        remark.manual_comment = comments[remark.cell.name]
        gradebook.db.commit()


def _write_penalties(
    tree: CourseTree, store: Store, lab: str, now: Mapping[str, Marks], there: Collection[str]
) -> bool:
    """Write into the gradebook what lateness takes off, of people's points too; return whether that has changed."""
    records = marked_records(store, lab, now)
    due = {
        student: record.penalty
        for student, record in records.items()
        if record and student in there and (record.ruled or record.handed_in.late or record.nbgraders_penalty)
    }
    wrong = {student: points for student, points in due.items() if now.get(student, Marks()).penalty != points}
    if not wrong:
        return False
    with open_gradebook(tree) as gradebook:
        for student, points in wrong.items():
            for notebook in gradebook.find_submission(lab, student).notebooks:
                notebook.late_submission_penalty = points or None
        gradebook.db.commit()
    return True


def write_page(tree: CourseTree, store: Store, lab: str, student: str, marks: Mapping[str, Marks]) -> None:
    """Write a student's feedback page again, from the record and with what people gave."""
    record, path = store.record(lab, student), tree.autograded(lab, student)
    if record is None or record.refused or not path.is_file():
        return  # a refusal's page shows no answers, so no marks
    given = marks.get(student, Marks())
    page = feedback_page(read_notebook(path), marked(record, marks), given.comments)
    write_atomically(tree.feedback(lab, student), page.encode())


def marked(record: Record, marks: Mapping[str, Marks]) -> Record:
    """Return a record with the points that people gave its student."""
    given = marks.get(record.student, Marks())
    return record.marked({(record.student, name): points for name, points in given.points.items()}, given.penalty)
