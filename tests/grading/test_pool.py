from pathlib import Path

import pytest

from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.grading.pool import Judged, judge_all

STUDENTS = ["ann", "bob", "cid"]


def judged_by(monkeypatch, function):
    monkeypatch.setattr("mlsys.grading.pool._judge_one", function)
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
    assert [found[name].submission for name in ("ann", "cid")] == ["judged", "judged"]
    assert "failed or died on it twice" in found["bob"].refused


def test_what_no_submission_can_help_ends_the_run(monkeypatch):
    with pytest.raises(UserError, match="torch is not installed"):
        judged_by(monkeypatch, lack_a_package)
