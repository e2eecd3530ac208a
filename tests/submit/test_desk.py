"""The desk: times, places, the same file again, limits, hidden tests, and clocks that jump."""

import tracemalloc

import pytest

from mlsys.errors import UserError
from mlsys.submit.desk import Refused, TooOften
from mlsys.submit.queue import DONE, REPLACED, WAITING, Found

from .conftest import Clock, Course


def test_numbers_times_and_places_grow(course: Course) -> None:
    clock = Clock()
    desk = course.desk(clock)
    receipts = []
    for student in ("ann", "bob", "cy"):
        receipts.append(desk.hand_in(student, "adding", course.right).receipt)
        clock.on(seconds=1)
    assert [(one.number, one.place) for one in receipts] == [(1, 1), (2, 2), (3, 3)]
    assert [one.when.second for one in receipts] == [0, 1, 2]
    # What is kept is the receipt's time, and a student's newer file takes the place of the one that waits.
    later = desk.hand_in("ann", "adding", course.another(1)).receipt
    assert later.place == 3
    assert [one.state for one in course.queue.hand_ins()] == [REPLACED, WAITING, WAITING, WAITING]
    assert [one.time for one in course.queue.hand_ins()][:3] == [one.when for one in receipts]


def test_the_same_file_again_is_the_same_receipt(course: Course) -> None:
    clock = Clock()
    desk = course.desk(clock, hand_ins_per_hour=1)
    first = desk.hand_in("ann", "adding", course.right)
    clock.on(minutes=5)
    again = desk.hand_in("ann", "adding", course.right)
    assert again.receipt == first.receipt
    assert "handed in last" in again.notes[0]
    with pytest.raises(TooOften, match="possible in 55 minutes"):
        desk.hand_in("ann", "adding", course.another(1))
    clock.on(minutes=56)
    assert desk.hand_in("ann", "adding", course.another(1)).receipt.number == 2


def test_a_clock_that_is_set_back_gives_no_earlier_time(course: Course) -> None:
    clock = Clock()
    desk = course.desk(clock)
    desk.check_clock()
    first = desk.hand_in("ann", "adding", course.right).receipt
    clock.on(hours=-2)
    assert desk.hand_in("bob", "adding", course.right).receipt.when == first.when
    with pytest.raises(UserError, match="set the clock right"):
        desk.check_clock()
    clock.on(hours=2, minutes=-4)
    desk.check_clock()


def test_hidden_tests_run_by_the_instructors_choice_and_so_often_a_day(course: Course) -> None:
    off = course.desk(Clock()).hand_in("bob", "adding", course.right, hidden=True)
    assert "not offered" in off.notes[0]
    clock = Clock()
    desk = course.desk(clock, hidden_tests_per_day=1)
    assert desk.hand_in("ann", "adding", course.right, hidden=True).notes == ()
    clock.on(hours=1)
    second = desk.hand_in("ann", "adding", course.another(1), hidden=True)
    assert "which you have used" in second.notes[0]
    assert [(one.student, one.hidden) for one in course.queue.hand_ins()] == [
        ("bob", False),
        ("ann", True),
        ("ann", False),
    ]
    # The next day hidden tests may run for a file that is in already: it is judged again.
    course.queue.take(10)
    course.queue.save_found(3, Found())
    assert course.queue.hand_in(3).state == DONE
    clock.on(hours=24)
    assert desk.hand_in("ann", "adding", course.another(1), hidden=True).receipt.number == 3
    assert (course.queue.hand_in(3).state, course.queue.hand_in(3).hidden) == (WAITING, True)


def test_what_is_refused_takes_no_number(course: Course) -> None:
    desk = course.desk(Clock())
    with pytest.raises(Refused):
        desk.hand_in("ann", "adding", b"{}")
    assert desk.hand_in("ann", "adding", course.right).receipt.number == 1


def test_a_student_may_have_moved_the_metadata_away(course: Course) -> None:
    assert course.desk(Clock()).hand_in("ann", "adding", b'\xef\xbb\xbf{"cells": []}').receipt.size == 16


def test_millions_of_cells_are_not_counted_in_memory(course: Course) -> None:
    data = b'{"cells": [' + b"1," * 9_000_000 + b"1]}"
    tracemalloc.start()
    try:
        course.desk(Clock()).hand_in("ann", "adding", data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5 * len(data)
