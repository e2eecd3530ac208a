import copy
import shutil
from pathlib import Path

import nbformat
import pytest
from helpers.adding_course import ANOTHER_PREDICTION, change_lab
from nbgrader.utils import determine_grade
from rich.console import Console

from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.gradebook.feedback import Page, QuestionResult, render
from mlsys.classroom.gradebook.markup import prose
from mlsys.classroom.gradebook.scores import outputs
from mlsys.classroom.store.record import QuestionRecord
from mlsys.course.release import release
from mlsys.course.tree import CourseTree
from mlsys.grading.verdicts import VERDICTS, Verdict

FLAGS = {"grade": True, "solution": False, "locked": True, "points": 8, "grade_id": "x", "schema_version": 3}


@pytest.mark.parametrize("name", VERDICTS)
def test_nbgrader_gives_the_points_of_each_verdict(name: str) -> None:
    fraction = {"passed": 1.0, "slow": 0.30001, "mutants survive": 0.30001}.get(name, 0.0)
    verdict = Verdict(name, fraction, "message 3.0")
    record = QuestionRecord.of(verdict, question="x", title="", grade_id="x", max_points=8, seconds=0)
    cell = nbformat.v4.new_code_cell("", metadata={"nbgrader": FLAGS}, outputs=outputs(record))
    score, most = determine_grade(cell)
    assert (score, most) == (pytest.approx(8 * fraction, abs=1e-3), 8)
    nbformat.validate(nbformat.v4.new_notebook(cells=[cell]))


def test_older_tests_are_used_only_where_a_question_asks_for_other_names(
    adding: tuple[Path, CourseTree, Path], tmp_path: Path
) -> None:
    root = tmp_path / "repository"
    shutil.copytree(adding[0], root)
    tree = CourseTree(root / "_build" / "course")
    change_lab(root, {'version: "1"': 'version: "2"', "add_three": "add_all"} | ANOTHER_PREDICTION)
    release(root, tree)
    folder = tmp_path / "submissions"
    folder.mkdir()
    old = nbformat.read(adding[2] / "right.ipynb", as_version=4)
    for student, version in (("old", "1"), ("new", "2"), ("unknown", "../../../1")):
        notebook = copy.deepcopy(old)
        notebook.metadata["mlsys"]["version"] = version
        nbformat.write(notebook, folder / f"{student}.ipynb")
    records = grade_class(root, tree, "adding", Options(folder), Console(quiet=True)).records
    verdicts = {student: [one.verdict for one in record.questions[:3]] for student, record in records.items()}
    assert verdicts == {
        "old": ["wrong answer", "passed", "passed"],
        "new": ["wrong answer", "passed", "error"],
        "unknown": ["wrong answer", "passed", "error"],
    }
    assert records["old"].repairs == (
        "The notebook says that it is version 1 of the lab, which is at 2 now; the tests of version 1 were used for c, "
        "as they ask for other names there.",
    )
    assert "which is not kept" in records["unknown"].repairs[0]


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](http://evil.example/x.png)",
        "[x](javascript:alert(1))",
        "<a href='jAvascript:alert(1)' onclick=alert(1)>x</a>",
        "<svg onload=alert(1)>",
        "<style>@import 'http://evil.example'</style>",
        "<iframe src='http://evil.example'></iframe>",
        "<details open ontoggle=alert(1)>",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
    ],
)
def test_written_answers_cannot_run_code_or_reach_other_hosts(attack: str) -> None:
    shown = prose(attack).lower()
    for danger in ("<script", "<img", "<svg", "<style", "<iframe", "onerror", "onclick=", "onload", 'href="javascript'):
        assert danger not in shown
    assert "alert(1)</b>" in prose("**alert(1)**").replace("strong", "b")


def test_everything_else_of_the_students_is_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    record = QuestionRecord(hostile, hostile, "x", "error", 0, 1, hostile, hostile)
    page = render(Page(hostile, hostile, [QuestionResult(record)], [hostile], hostile))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 7
