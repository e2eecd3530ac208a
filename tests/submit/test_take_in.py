"""From the queue to grades: every hand-in is an attempt, and late is what the receipt says."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.roster import parse_roster
from mlsys.submit.take_in import take_in

from .conftest import Clock, Course

DUE = "2026-11-20 13:00 UTC"
LATE = f"id,name,late percent,due adding\n*,,50,{DUE}\nann,A,,\nbob,B,,\n"


def test_every_hand_in_becomes_an_attempt_once(course: Course) -> None:
    clock, store = Clock(), FileStore(course.tree)
    desk = course.desk(clock)
    for number in range(3):
        desk.hand_in("ann", "adding", course.another(number))
        clock.on(minutes=10)
    first = take_in(course.queue, course.tree, store, "adding")
    assert (first.hand_ins, first.students, first.new) == (3, 1, 3)
    history = store.history("adding", "ann")
    assert [one.number for one in history.attempts] == [1, 2, 3]
    assert [one.time for one in history.attempts] == [one.time for one in course.queue.hand_ins()]
    assert take_in(course.queue, course.tree, store, "adding").new == 0
    assert store.history("adding", "ann") == history
    assert course.tree.submitted("adding", "ann").read_bytes() == course.another(2)
    # Nothing was handed in to another lab, and nothing is lost where the store goes back, as `mlsys undo` does.
    store.save_history("adding", "ann", type(history)())
    assert take_in(course.queue, course.tree, store, "adding").new == 3


@pytest.mark.proof
def test_late_work_loses_points_by_the_time_of_the_receipt(course: Course) -> None:
    clock = Clock(datetime(2026, 11, 20, 12, 59, 59, 999_900, tzinfo=UTC))
    desk = course.desk(clock)
    desk.hand_in("ann", "adding", course.right)
    clock.on(milliseconds=2)
    receipt = desk.hand_in("bob", "adding", course.right).receipt
    store = FileStore(course.tree)
    take_in(course.queue, course.tree, store, "adding")
    options = Options(workers=2, roster=parse_roster(LATE))
    batch = grade_class(course.root, course.tree, "adding", options, Console(quiet=True))
    ann, bob = batch.records["ann"], batch.records["bob"]
    assert (ann.points, bob.points) == (6.0, 3.0)  # a, b and c; half of them a day late
    assert datetime.fromisoformat(bob.handed_in.time) == receipt.when


@pytest.mark.proof
@pytest.mark.parametrize("policy", ["best", "on-time"])
def test_policies_choose_among_hand_ins(course: Course, policy: str) -> None:
    clock = Clock()
    desk = course.desk(clock)
    desk.hand_in("ann", "adding", course.right)
    clock.on(hours=2)  # too late, and nothing in it
    desk.hand_in("ann", "adding", (course.tree.release("adding")).read_bytes())
    take_in(course.queue, course.tree, FileStore(course.tree), "adding")
    options = Options(workers=2, policy=policy, roster=parse_roster(LATE.replace(",50,", ",,")))
    batch = grade_class(course.root, course.tree, "adding", options, Console(quiet=True))
    assert batch.records["ann"].points == 6.0
