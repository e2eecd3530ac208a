"""Which questions of a submission have a verdict when only the visible tests run."""

import nbformat
import pytest
from helpers.adding_course import change_lab, make_course_repository

from mlsys.classroom.batch import submission as module
from mlsys.classroom.intake.reading import LabReader
from mlsys.classroom.store.run import Terms
from mlsys.course.release import release
from mlsys.course.tree import CourseTree
from mlsys.grading.verdicts import Verdict


@pytest.mark.parametrize("outcome", ["passed", "wrong answer"])
def test_an_answer_that_visible_tests_only_note_is_not_said_to_be_right(tmp_path, monkeypatch, outcome) -> None:
    root = make_course_repository(tmp_path / "repository")
    change_lab(root, {"grading.seal(bytes_moved=bytes_moved)": 'scorecard = None\nscorecard.answered("a")'})
    tree = CourseTree(root / "_build" / "course")
    release(root, tree)
    notebook = LabReader(tree, "adding").canonical(nbformat.writes(nbformat.read(tree.release("adding"), 4)).encode())
    verdict = Verdict.passed() if outcome == "passed" else Verdict(outcome)
    monkeypatch.setattr(module, "grade_question", lambda *_, **__: verdict)
    for hidden in (False, True):
        found = module.judge_questions(tree, "adding", notebook, "cpu", 10, Terms("", 1), hidden=hidden)
        judged = {one.question: one.verdict for one in found}
        assert judged["b"] == outcome
        # Passing the visible part of question a says nothing; failing it does.
        assert judged.get("a") == (None if outcome == "passed" and not hidden else outcome)


def test_questions_that_are_judged_later_wait_and_nothing_of_them_runs(tmp_path, monkeypatch) -> None:
    root = make_course_repository(tmp_path / "repository")
    tree = CourseTree(root / "_build" / "course")
    release(root, tree)
    notebook = LabReader(tree, "adding").canonical(nbformat.writes(nbformat.read(tree.release("adding"), 4)).encode())
    ran = []

    def judged(_, question, *__, **___):
        ran.append(question.name)
        return Verdict.passed()

    monkeypatch.setattr(module, "grade_question", judged)
    found = module.judge_questions(tree, "adding", notebook, "cpu", 10, Terms("", 1), later=["d"])
    assert {one.question: one.verdict for one in found if one.question in "bd"} == {"b": "passed", "d": "needs gpu"}
    assert "d" not in ran
    assert "b" in ran
