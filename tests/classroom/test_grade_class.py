import csv
import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from mlsys.classroom import grade_class as class_grading
from mlsys.classroom.batch.task import Judged
from mlsys.classroom.grade_class import Batch, Options, grade_class
from mlsys.classroom.intake import reading
from mlsys.classroom.processes.limited import limited
from mlsys.classroom.report import to_csv
from mlsys.classroom.store.store import FileStore, Store
from mlsys.classroom.students.roster import parse_roster
from mlsys.course.digest import digest
from mlsys.course.lab import Lab
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def graded(
    adding: tuple[Path, CourseTree, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, CourseTree, Batch]:
    root = tmp_path_factory.mktemp("graded") / "repository"
    shutil.copytree(adding[0], root)
    tree = CourseTree(root / "_build" / "course")
    config = tree.root / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.RunQuestions.cpu_limit_s = 3\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "limited", count_reading)
        batch = grade_class(root, tree, "adding", Options(tree.root / "sample-class" / "adding"), QUIET)
    return root, tree, batch


READ: list[str] = []
"""Digests of the submissions that were read in the class's first grading, in their order."""


def count_reading(work: Callable[..., Any], *arguments: Any, time_s: float) -> Any:
    READ.extend(digest(argument) for argument in arguments if isinstance(argument, bytes))
    return limited(work, *arguments, time_s=time_s)


def test_every_submission_is_read_once(graded: tuple[Path, CourseTree, Batch]) -> None:
    _, tree, batch = graded
    handed_in = {digest(path.read_bytes()) for path in (tree.root / "attempts").rglob("*.ipynb")}
    assert len(handed_in) >= len({record.submission for record in batch.records.values()} - {""}) > 5
    assert set(READ) <= handed_in
    assert len(READ) == len(set(READ))
    assert {record.submission for record in batch.records.values() if not record.refused} <= set(READ)


def test_records_name_what_judged(graded: tuple[Path, CourseTree, Batch]) -> None:
    for record in graded[2].records.values():
        if record.refused:
            assert (record.device, record.versions) == ("", {})
        else:
            assert record.device == ("gpu" if torch.cuda.is_available() else "cpu")
            assert record.versions["torch"] == torch.__version__


def test_every_student_gets_the_expected_marks(graded: tuple[Path, CourseTree, Batch]) -> None:
    root, _, batch = graded
    with (root / "labs" / "adding" / "class" / "expected.csv").open() as file:
        expected = {
            (row["student"], row["question"]): (row["verdict"], float(row["points_cpu"]))
            for row in csv.DictReader(file)
        }
    found = {
        (student, question.question): (question.verdict, question.points)
        for student, record in batch.records.items()
        for question in record.questions
    }
    assert found == expected


def test_gradebook_agrees_with_the_records(graded: tuple[Path, CourseTree, Batch]) -> None:
    _, tree, batch = graded
    with open_gradebook(tree) as gradebook:
        scores = {submission.student.id: submission.score for submission in gradebook.assignment_submissions("adding")}
        comment = gradebook.find_comment("b-kernel", "adding", "adding", "crash").comment
    assert scores == {
        student: sum(question.points for question in record.questions) for student, record in batch.records.items()
    }
    assert comment.startswith("crashed: ")


def test_unchanged_class_is_not_graded_again(graded: tuple[Path, CourseTree, Batch]) -> None:
    root, tree, batch = graded
    again = grade_class(root, tree, "adding", Options(tree.root / "sample-class" / "adding"), QUIET)
    assert again.graded_now == 0
    assert again.records == batch.records


def test_feedback_has_no_hidden_test_and_no_other_host(graded: tuple[Path, CourseTree, Batch]) -> None:
    root, tree, batch = graded
    hidden = [
        line.strip()
        for cell in Lab.load(root / "labs" / "adding" / "lab.py").cells
        for region in re.findall(r"BEGIN HIDDEN TESTS\n(.*)### END HIDDEN", cell.source, re.S)
        for line in region.splitlines()
    ]
    assert len(hidden) == 5
    for student in batch.records:
        page = tree.feedback("adding", student).read_text()
        text = html.unescape(re.sub(r"<[^>]+>", "", page))
        assert not [line for line in hidden if line in text]
        assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page)
        assert 'name="viewport"' in page


def test_feedback_tells_a_refused_student_why(graded: tuple[Path, CourseTree, Batch]) -> None:
    page = html.unescape(graded[1].feedback("adding", "other-lab").read_text())
    assert "the notebook is of lab 'subtracting'" in page


def test_repairs_are_reported_in_plain_sentences(graded: tuple[Path, CourseTree, Batch]) -> None:
    repairs = "\n".join(graded[2].records["colab"].repairs)
    assert "'b-test' of question b stood there 2 times" in repairs
    assert "'c-test' of question c had been edited" in repairs
    assert "'a-test' of question a was missing" in repairs
    assert "'b-kernel' of question b had changed marks (solution, locked)" in repairs
    assert "another order" in repairs
    assert graded[2].records["right"].repairs == ()


def test_traceback_shows_only_the_students_own_lines(graded: tuple[Path, CourseTree, Batch]) -> None:
    error = next(question for question in graded[2].records["syntax"].questions if question.question == "b")
    assert error.message.startswith("SyntaxError")
    assert error.detail == "your answer b, line 1: def add(x, y)"


def test_manual_mark_survives_a_regrade(graded: tuple[Path, CourseTree, Batch]) -> None:
    root, tree, _ = graded
    with open_gradebook(tree) as gradebook:
        gradebook.find_grade("e-why", "adding", "adding", "right").manual_score = 1.5
        gradebook.db.commit()
    tree.record("adding", "right").unlink()
    batch = grade_class(root, tree, "adding", Options(), QUIET)
    written = batch.records["right"].questions[-1]
    assert batch.graded_now == 1
    assert (written.verdict, written.points, written.waiting) == ("marked", 1.5, 0)
    assert "marked" in tree.feedback("adding", "right").read_text()


def test_a_refusal_replaces_a_score_after_a_yes_only(graded: tuple[Path, CourseTree, Batch], tmp_path: Path) -> None:
    root, tree, first = graded
    (tmp_path / "noisy.ipynb").write_text("{")
    held = grade_class(root, tree, "adding", Options(tmp_path), QUIET)
    assert [(change.question, change.after) for change in held.changes] == [("all", "refused")]
    assert held.withheld
    assert held.records["noisy"] == first.records["noisy"]
    assert [one.refused for one in FileStore(tree).history("adding", "noisy").attempts] == [""]  # as before
    batch = grade_class(root, tree, "adding", Options(tmp_path, accept_changes=True), QUIET)
    assert list(batch.records) == ["noisy"]
    assert batch.records["noisy"].refused.startswith("the file is damaged or cut off")
    with open_gradebook(tree) as gradebook:
        assert gradebook.find_submission("adding", "noisy").score == 0
    assert len(list((tree.root / "attempts" / "noisy").rglob("*.ipynb"))) == 2


@pytest.mark.proof
def test_plain_nbgrader_command_grades_and_goes_on_after_a_refusal(graded: tuple[Path, CourseTree, Batch]) -> None:
    _, tree, batch = graded
    for student in batch.records:
        if student not in ("colab", "empty", "half-done"):
            shutil.rmtree(tree.root / "submitted" / student)
        shutil.rmtree(tree.root / "autograded" / student, ignore_errors=True)
    tree.record("adding", "colab").unlink()
    command = [str(Path(sys.executable).with_name("nbgrader")), "autograde", "adding"]
    done = subprocess.run(
        command, cwd=tree.root, capture_output=True, text=True, env={**os.environ, "PATH": "/usr/bin:/bin"}
    )
    assert "the file is empty" in done.stderr
    assert "Warning:" not in done.stderr
    record = FileStore(tree).record("adding", "colab")
    assert record is not None
    assert [question.verdict for question in record.questions[:3]] == ["passed"] * 3
    assert tree.autograded("adding", "half-done").is_file()


def test_csv_has_a_row_per_student_and_question(graded: tuple[Path, CourseTree, Batch]) -> None:
    rows = list(csv.DictReader(to_csv(graded[2].records.values()).splitlines()))
    assert len(rows) == 5 * len(graded[2].records)
    assert {row["waiting"] for row in rows if row["verdict"] == "needs gpu"} == {"4"}


def test_names_that_climb_are_nobodys_and_named(adding: tuple[Path, CourseTree, Path], tmp_path: Path) -> None:
    (tmp_path / "..ipynb").write_text("{}")
    (tmp_path / 'a"b.ipynb').write_text("{}")
    with pytest.raises(UserError, match=r"(?s)holds no submissions.*cannot be a student's id"):
        grade_class(adding[0], adding[1], "adding", Options(tmp_path), QUIET)


def test_a_roster_with_due_times_of_a_misspelt_lab_is_refused(
    adding: tuple[Path, CourseTree, Path], tmp_path: Path
) -> None:
    roster = parse_roster("id,name,time zone,due ading\nann,Ann,UTC,2026-11-20 23:59\n")
    with pytest.raises(UserError, match="'due ading': unknown lab 'ading': did you mean 'adding'"):
        grade_class(adding[0], adding[1], "adding", Options(tmp_path, roster=roster), QUIET)


@pytest.mark.parametrize("name", ["nowhere", "nothing"])
def test_missing_or_empty_folder_is_named(adding: tuple[Path, CourseTree, Path], tmp_path: Path, name: str) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(UserError, match=name):
        grade_class(adding[0], adding[1], "adding", Options(tmp_path / name), QUIET)


@pytest.mark.parametrize("before", [0, 1])
def test_a_run_that_ends_before_anybody_is_graded_is_over_and_any_other_can_be_resumed(
    adding: tuple[Path, CourseTree, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    root = tmp_path / "repository"
    shutil.copytree(adding[0], root)
    tree = CourseTree(root / "_build" / "course")
    (tmp_path / "in").mkdir()
    for student in ("ann", "bob"):
        (tmp_path / "in" / f"{student}.ipynb").write_text("{")
    recorded: list[str] = []

    def record_some(_tree: CourseTree, _store: Store, _lab: Lab, judged: Judged, _state: str) -> None:
        if len(recorded) == before:
            raise UserError("the disk is full")
        recorded.append(judged.student)

    monkeypatch.setattr(class_grading, "record_result", record_some)
    for _ in range(2):
        recorded.clear()
        with pytest.raises(UserError, match="the disk is full"):
            grade_class(root, tree, "adding", Options(tmp_path / "in"), QUIET)
        run = FileStore(tree).run("adding")
        assert run is not None
        assert run.finished == (before == 0)
