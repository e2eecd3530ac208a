"""Hand-ins of the queue, taken into the attempts that `mlsys grade` grades, with the times of their receipts."""

from collections.abc import Callable
from dataclasses import dataclass

from mlsys.classroom.intake.collect import put
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.intake.reading import check_notebook
from mlsys.classroom.store.store import Store
from mlsys.classroom.students.attempt_policy import Choice
from mlsys.classroom.students.history import Attempt
from mlsys.course.digest import digest
from mlsys.course.tree import CourseTree
from mlsys.submit.queue import Queue

ORIGIN = "queue"
"""What attempts say of where they come from."""


@dataclass(frozen=True)
class TakenIn:
    """What the queue had for a lab: hand-ins, by how many students, and how many were not among the attempts."""

    hand_ins: int
    students: int
    new: int


def take_in(
    queue: Queue, tree: CourseTree, store: Store, lab: str, *, check: Callable[[bytes], None] = check_notebook
) -> TakenIn:
    """Make every hand-in of a lab an attempt of its student. Doing so again changes nothing.

    Args:
        queue: the queue.
        tree: the course.
        store: where attempts are kept; whoever calls holds its lock.
        lab: the lab.
        check: reads what is new, and raises `Refused` for what is no notebook.

    Raises:
        UserError: a list of attempts cannot be read or written.
    """
    found = queue.hand_ins(lab)
    new, students = 0, set()
    for one in found:
        students.add(one.student)
        history = store.history(lab, one.student)
        if any(attempt.origin == ORIGIN and attempt.number == one.number for attempt in history.attempts):
            continue
        data = queue.content(one.number)
        attempt = Attempt(digest(data), f"{lab}.ipynb", ORIGIN, one.time, one.number, term=one.term)
        if history.knows(attempt):  # the newest attempt again: the queue says when it was handed in
            store.save_history(lab, one.student, history.with_attempt(attempt))
            continue
        store.save_content(lab, one.student, attempt.digest, data)
        try:
            check(data)
        except Refused as reason:
            attempt = Attempt(
                attempt.digest, attempt.name, ORIGIN, one.time, one.number, refused=str(reason), term=one.term
            )
        longer = history.with_attempt(attempt)
        store.save_history(lab, one.student, longer)
        put(tree, store, lab, one.student, Choice(longer.attempts[-1]))
        new += 1
    return TakenIn(len(found), len(students), new)
