import os
import signal
import time
from pathlib import Path

import pytest

from mlsys.classroom.batch.pool import Judged, judge_all, time_limit_s
from mlsys.classroom.store.record import QuestionRecord
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

STUDENTS = ["ann", "bob", "cid", "dan", "eve"]


def judged_by(monkeypatch, function):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", function)
    tree = CourseTree(Path("nowhere"))
    return {one.student: one for one in judge_all(tree, "lab", STUDENTS, workers=2, device="cpu", cpu_limit_s=1)}


def fail_on_bob(student, *_):
    if student == "bob":
        raise RecursionError("too deep")
    return Judged(student, "judged")


def lack_a_package(student, *_):
    raise UserError("torch is not installed")


def test_a_submission_that_the_judge_fails_on_is_refused_and_ends_nothing(monkeypatch):
    found = judged_by(monkeypatch, fail_on_bob)
    assert sorted(found) == STUDENTS
    assert [found[name].submission for name in STUDENTS if name != "bob"] == ["judged"] * 4
    assert "failed or died on it twice" in found["bob"].refused


def test_what_no_submission_can_help_ends_the_run(monkeypatch):
    with pytest.raises(UserError, match="torch is not installed"):
        judged_by(monkeypatch, lack_a_package)


def kill_the_worker_for_bob(student, only, root, *_):
    with (Path(root) / student).open("a") as tries:
        tries.write("x")
    if student == "bob":
        os.kill(os.getpid(), signal.SIGKILL)
    return Judged(student, "judged")


def test_a_worker_that_dies_costs_nobody_else_a_second_try(monkeypatch, tmp_path):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", kill_the_worker_for_bob)
    found = list(judge_all(CourseTree(tmp_path), "lab", STUDENTS, workers=2, device="cpu", cpu_limit_s=1))
    assert sorted(one.student for one in found) == STUDENTS
    assert [one.student for one in found if one.refused] == ["bob"]
    assert {path.name: len(path.read_text()) for path in tmp_path.iterdir()} == dict.fromkeys(STUDENTS, 1) | {"bob": 2}


def judge_bob_for_ever(student, only, root, lab, device, cpu_limit_s, limit_s):
    with (Path(root) / student).open("a") as tries:
        tries.write("x")
    signal.alarm(limit_s)
    if student == "bob":
        time.sleep(600)
    return Judged(student, "judged")


def test_a_submission_whose_judging_takes_too_long_is_given_up_at_once(monkeypatch, tmp_path):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", judge_bob_for_ever)
    monkeypatch.setattr("mlsys.classroom.batch.pool.time_limit_s", lambda *_: 2)
    found = list(judge_all(CourseTree(tmp_path), "lab", STUDENTS, workers=2, device="cpu", cpu_limit_s=1))
    assert {one.student: one.refused != "" for one in found} == {name: name == "bob" for name in STUDENTS}
    assert any("longer than 2 s" in one.refused for one in found)
    assert {path.name: len(path.read_text()) for path in tmp_path.iterdir()} == dict.fromkeys(STUDENTS, 1)


def test_judging_may_take_twice_as_long_as_the_questions_of_the_lab(adding):
    assert time_limit_s(adding[1], "adding", "cpu", 10) == 2 * 5 * 40
    assert time_limit_s(adding[1], "adding", "cpu", 1) == 2 * 5 * 4


def lose_bs_process(student, only, root, *_):
    """The process of question b is lost in bob's first try and in both of cid's."""
    seen = Path(root) / student
    lost = student == "cid" or (student == "bob" and not seen.is_file())
    seen.touch()
    verdict = ("crashed", 0) if lost else ("passed", 1)
    records = [QuestionRecord(name, "", name, "passed", 1, 1, message=f"asked {only}") for name in "ac"]
    return Judged(student, "s", (*([] if only else records), QuestionRecord("b", "", "b", *verdict, 1, lost=lost)))


def test_a_question_whose_process_is_lost_is_tried_once_more(monkeypatch, tmp_path):
    monkeypatch.setattr("mlsys.classroom.batch.pool._judge_one", lose_bs_process)
    found = list(judge_all(CourseTree(tmp_path), "lab", ["ann", "bob", "cid"], workers=2, device="cpu", cpu_limit_s=1))
    verdicts = {one.student: [(q.question, q.verdict) for q in one.questions] for one in found}
    passed, crashed = ("b", "passed"), ("b", "crashed")
    assert verdicts == {
        student: [("a", "passed"), ("c", "passed"), b]
        for student, b in (("ann", passed), ("bob", passed), ("cid", crashed))
    }
    assert len(found) == 3
