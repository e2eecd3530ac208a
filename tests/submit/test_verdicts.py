"""The judging of the queue, with real sandboxes; a kill at any moment loses nothing and judges nothing for ever."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from mlsys.classroom.batch.pool import Pool
from mlsys.classroom.batch.task import Judged, Task
from mlsys.errors import UserError
from mlsys.submit.queue import DONE, JUDGING, WAITING
from mlsys.submit.verdicts import QueueJudging, judge_forever

from .conftest import Course


def changed(course: Course, old: str, new: str) -> bytes:
    notebook = json.loads(course.right)
    texts = ["".join(cell["source"]) for cell in notebook["cells"]]
    assert any(old in text for text in texts)
    for cell, text in zip(notebook["cells"], texts, strict=True):
        cell["source"] = text.replace(old, new)
    return json.dumps(notebook).encode()


def verdicts(course: Course, number: int) -> dict[str, str]:
    found = course.queue.hand_in(number).found
    assert found is not None
    return {one.question: one.verdict for one in found.questions}


@pytest.mark.proof
def test_visible_tests_run_by_default_and_hidden_ones_where_they_are_asked_for(course: Course) -> None:
    desk = course.desk(hidden_tests_per_day=1)
    # Without its mask the kernel is wrong where a hidden test looks, and only there.
    no_mask = changed(course, "inside = offsets < size", "inside = offsets < (size // 64) * 64")
    desk.hand_in("ann", "adding", course.right)
    desk.hand_in("bob", "adding", no_mask)
    desk.hand_in("cy", "adding", no_mask, hidden=True)
    with Pool(course.tree.root.resolve(), 2) as pool:
        judging = QueueJudging(course.tree, course.queue, pool, "cpu")
        assert (judging.judge_waiting(), judging.judge_waiting()) == (3, 0)
    visible = {"a": "passed", "b": "passed", "c": "passed", "d": "needs gpu"}
    assert verdicts(course, 1) == verdicts(course, 2) == visible
    assert verdicts(course, 3) == visible | {"b": "wrong answer", "e": "needs review"}
    found = course.queue.hand_in(3).found
    assert found is not None
    assert "hidden test" in next(one.message for one in found.questions if one.question == "b")
    assert {one.state for one in course.queue.hand_ins()} == {DONE}
    # The gradebook and the records know nothing of it: verdicts of the queue are no grades.
    assert not course.tree.record("adding", "ann").exists()


def test_what_no_worker_can_read_is_refused_with_its_reason(course: Course) -> None:
    course.desk().hand_in("ann", "adding", b'{"cells": [], "metadata": {}}')

    class Refusing:
        def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
            for task in tasks:
                assert isinstance(task, Judged)
                yield task

    assert QueueJudging(course.tree, course.queue, Refusing(), "cpu").judge_waiting() == 1
    found = course.queue.hand_in(1).found
    assert found is not None
    assert "none of the cells" in found.refused


def test_after_a_fault_everything_waits_again(course: Course) -> None:
    class Full:
        def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
            raise UserError("the disk is full")

    for student in ("ann", "bob"):
        course.desk().hand_in(student, "adding", course.right)
    with pytest.raises(UserError, match="disk is full"):
        QueueJudging(course.tree, course.queue, Full(), "cpu").judge_waiting()
    assert {one.state for one in course.queue.hand_ins()} == {WAITING}


def test_only_one_process_judges_and_takes_over_what_another_had_begun(course: Course) -> None:
    course.desk().hand_in("ann", "adding", course.right)
    with course.queue.only_judge():
        course.queue.take(1)
        with pytest.raises(UserError, match="another process judges"), course.queue.only_judge():
            pass
        assert course.queue.hand_in(1).state == JUDGING
    with course.queue.only_judge():
        assert course.queue.hand_in(1).state == WAITING


@pytest.mark.proof
def test_killed_at_any_moment_it_judges_everything_all_the_same(course: Course) -> None:
    desk = course.desk()
    for number, student in enumerate(("ann", "bob")):
        desk.hand_in(student, "adding", course.another(number))
    command = [sys.executable, "-m", "mlsys.cli.main", "serve", "--only-verdicts", "--roster", "roster.csv"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    for moment_s in (3.0, 6.0):
        process = subprocess.Popen([*command, "--workers", "1"], cwd=course.root, env=environment)
        time.sleep(moment_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = subprocess.Popen([*command, "--workers", "2"], cwd=course.root, env=environment)
    until_s = time.monotonic() + 120
    while {one.state for one in course.queue.hand_ins()} != {DONE} and time.monotonic() < until_s:
        time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [verdicts(course, number)["b"] for number in (1, 2)] == ["passed"] * 2


def test_judging_ends_when_it_is_told(course: Course) -> None:
    class Idle:
        def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
            return iter(())

    from rich.console import Console

    said = iter([False, False, True])
    judge_forever(QueueJudging(course.tree, course.queue, Idle(), "cpu"), Console(quiet=True), lambda: next(said))
