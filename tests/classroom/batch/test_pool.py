import itertools
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from mlsys.classroom.batch.pool import LATER_TOGETHER, Pool, time_limit_s
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.store.record import QuestionRecord
from mlsys.classroom.store.run import Terms
from mlsys.errors import UserError

STUDENTS = ["ann", "bob", "cid", "dan", "eve"]


def tasks(students=STUDENTS, time_limit_s=100, submission="abc"):
    """A task for each, with what is judged replaced by nothing: the tests say what their workers do."""
    rest = (nbformat.v4.new_notebook(), submission, Terms("run", 1), "cpu", 1, time_limit_s)
    return [Task(student, "lab", "1", *rest) for student in students]


def judge_all(tasks, course, workers):
    with Pool(course, workers) as pool:
        yield from pool.judge_all(tasks)


def judged_by(monkeypatch, function):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", function)
    return {one.student: one for one in judge_all(tasks(), Path("nowhere"), 2)}


def fail_on_bob(task, _):
    if task.student == "bob":
        raise RecursionError("too deep")
    return Judged(task.student, "judged")


def lack_a_package(*_):
    raise UserError("torch is not installed")


def test_a_submission_that_the_judge_fails_on_is_refused_and_ends_nothing(monkeypatch):
    found = judged_by(monkeypatch, fail_on_bob)
    assert sorted(found) == STUDENTS
    assert [found[name].submission for name in STUDENTS if name != "bob"] == ["judged"] * 4
    assert "failed or died on it twice" in found["bob"].refused
    assert [found[name].failed for name in STUDENTS] == [name == "bob" for name in STUDENTS]


def test_what_no_submission_can_help_ends_the_run(monkeypatch):
    with pytest.raises(UserError, match="torch is not installed"):
        judged_by(monkeypatch, lack_a_package)


def kill_the_worker_for_bob(task, folder):
    with (folder / task.student).open("a") as tries:
        tries.write("x")
    if task.student == "bob":
        os.kill(os.getpid(), signal.SIGKILL)
    return Judged(task.student, "judged")


def test_a_worker_that_dies_costs_nobody_else_a_second_try(monkeypatch, tmp_path):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", kill_the_worker_for_bob)
    found = list(judge_all(tasks(), tmp_path, 2))
    assert sorted(one.student for one in found) == STUDENTS
    assert [one.student for one in found if one.refused] == ["bob"]
    assert {path.name: len(path.read_text()) for path in tmp_path.iterdir()} == dict.fromkeys(STUDENTS, 1) | {"bob": 2}


def judge_bob_for_ever(task, folder):
    with (folder / task.student).open("a") as tries:
        tries.write("x")
    signal.alarm(task.time_limit_s)
    if task.student == "bob":
        time.sleep(600)
    return Judged(task.student, "judged")


def judge_for_minutes(task, folder):
    with (folder / task.student).open("a") as tries:
        tries.write("x")
    time.sleep(250)


def test_what_is_given_up_ends_at_once_and_is_not_tried_again(monkeypatch, tmp_path):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", judge_for_minutes)
    found = []
    with Pool(tmp_path, 1) as pool:
        judging = threading.Thread(target=lambda: found.extend(pool.judge_all(tasks(["ann"]))))
        judging.start()
        while not (tmp_path / "ann").exists():
            time.sleep(0.05)
        pool.give_up()
        judging.join(20)
    assert not judging.is_alive()
    assert found == []
    assert (tmp_path / "ann").read_text() == "x"


def test_a_submission_whose_judging_takes_too_long_is_given_up_at_once(monkeypatch, tmp_path):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", judge_bob_for_ever)
    found = list(judge_all(tasks(time_limit_s=2), tmp_path, 2))
    assert {one.student: one.refused != "" for one in found} == {name: name == "bob" for name in STUDENTS}
    assert any("longer than 2 s" in one.refused for one in found)
    assert {path.name: len(path.read_text()) for path in tmp_path.iterdir()} == dict.fromkeys(STUDENTS, 1)


def test_judging_may_take_twice_as_long_as_the_questions_of_the_lab(adding):
    lab = released_lab(adding[1], "adding")
    assert time_limit_s(lab, "cpu", 10) == 2 * 5 * 40
    assert time_limit_s(lab, "cpu", 1) == 2 * 5 * 4
    assert time_limit_s(lab, "gpu", 1) == 2 * 5 * 4 * 4


def lose_bs_process(task, folder):
    """The process of question b is lost in bob's first try and in both of cid's."""
    seen = folder / task.student
    lost = task.student == "cid" or (task.student == "bob" and not seen.is_file())
    seen.touch()
    verdict = ("crashed", 0) if lost else ("passed", 1)
    records = [QuestionRecord(name, "", name, "passed", 1, 1, message=f"asked {task.only}") for name in "ac"]
    return Judged(
        task.student, "abc", (*([] if task.only else records), QuestionRecord("b", "", "b", *verdict, 1, lost=lost))
    )


def test_a_question_whose_process_is_lost_is_tried_once_more(monkeypatch, tmp_path):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", lose_bs_process)
    found = list(judge_all(tasks(["ann", "bob", "cid"]), tmp_path, 2))
    verdicts = {one.student: [(q.question, q.verdict) for q in one.questions] for one in found}
    passed, crashed = ("b", "passed"), ("b", "crashed")
    assert verdicts == {
        student: [("a", "passed"), ("c", "passed"), b]
        for student, b in (("ann", passed), ("bob", passed), ("cid", crashed))
    }
    assert len(found) == 3


def meet(task, folder):
    """Wait for the other attempt: neither is judged unless both are judged at the same time."""
    (folder / task.submission).touch()
    until_s = time.monotonic() + 60
    while len(list(folder.iterdir())) < 2:
        assert time.monotonic() < until_s
        time.sleep(0.01)
    return Judged(task.student, task.submission)


def test_two_attempts_of_a_student_are_judged_side_by_side(monkeypatch, tmp_path):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", meet)
    both = [*tasks(["ann"], submission="first"), *tasks(["ann"], submission="second")]
    found = judge_all(both, tmp_path, 2)
    assert {(one.student, one.submission, one.failed) for one in found} == {
        ("ann", "first", False),
        ("ann", "second", False),
    }


def test_submissions_are_taken_as_workers_become_free_and_refused_ones_pass_through(monkeypatch, tmp_path):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", lack_nothing)
    taken = []

    def arriving():
        for task in [*tasks(list("abcdef")), Judged("refused", "x", refused="it is empty")]:
            taken.append(task.student)
            yield task

    found = []
    for one in judge_all(arriving(), tmp_path, 1):
        found.append(one)
        assert len(taken) <= len(found) + 2
    assert {one.student: one.refused for one in found} == dict.fromkeys("abcdef", "") | {"refused": "it is empty"}


def lack_nothing(task, _):
    return Judged(task.student, task.submission)


def where_it_is_judged(device):
    return {"device": f"{device} of process {os.getpid()}", "versions": {"torch": "of the worker"}}


def test_the_device_is_asked_where_judging_happens(monkeypatch):
    monkeypatch.setattr("mlsys.classroom.batch.pool.device_and_versions", where_it_is_judged)
    with Pool(Path("nowhere"), 2) as pool:
        found = pool.machine("auto")
    assert found["versions"] == {"torch": "of the worker"}
    assert found["device"].startswith("auto of process ")
    assert found["device"] != f"auto of process {os.getpid()}"


def judge_three(task, folder):
    """Judge questions a, b and c, of which b is timed; note what was asked for."""
    with (folder / task.student).open("a") as file:
        file.write(f"{','.join(task.only) or 'all'}\n")
    names = task.only or "abc"
    records = [QuestionRecord(one, "", one, "needs gpu" if one in task.later else "passed", 1, 1) for one in names]
    return Judged(task.student, task.submission, tuple(records), seconds=1)


@pytest.mark.parametrize("students", [3, 8, 21, 40])
def test_timings_are_made_together_once_many_wait_or_nothing_else_is_left(monkeypatch, tmp_path, students):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", judge_three)
    plain, order = Pool._submit, []
    monkeypatch.setattr(Pool, "_submit", lambda self, *rest: order.append(rest[2].only == ("b",)) or plain(self, *rest))
    names = [f"s{number}" for number in range(students)]
    found = list(judge_all([replace(one, later=("b",)) for one in tasks(names)], tmp_path, 2))
    assert sorted(one.student for one in found) == sorted(names)
    for one in found:
        assert [(q.question, q.verdict) for q in one.questions] == [("a", "passed"), ("b", "passed"), ("c", "passed")]
        assert one.seconds == 2
    runs = [(timed, len(list(run))) for timed, run in itertools.groupby(order)]
    timings = [length for timed, length in runs if timed]
    assert sum(timings) == len(order) / 2 == students
    assert all(length >= LATER_TOGETHER * 2 for length in timings[:-1])  # two workers


def lose_the_timing(task, folder):
    if task.only == ("b",) and not (folder / "lost").exists():
        (folder / "lost").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return judge_three(task, folder)


def test_a_submission_whose_timing_dies_is_judged_again_as_a_whole(monkeypatch, tmp_path):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", lose_the_timing)
    found = list(judge_all([replace(one, later=("b",)) for one in tasks(["ann", "bob"])], tmp_path, 1))
    assert {one.student: [q.verdict for q in one.questions] for one in found} == dict.fromkeys(
        ("ann", "bob"), ["passed"] * 3
    )
    asked = [(tmp_path / name).read_text().split() for name in ("ann", "bob")]
    assert sorted(asked) == [["all", "all"], ["all", "b"]]
