"""Scores for Gradescope: the autograder's zip, unpacked and run in a folder here as Gradescope's specification says."""

import csv
import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mlsys.classroom.lms import run_autograder
from mlsys.classroom.lms.fill import score_of
from mlsys.classroom.lms.gradescope_results import Graded, results_of
from mlsys.classroom.store.record import HandedIn, QuestionRecord, Record
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.history import Attempt, History
from mlsys.classroom.students.late import Late
from mlsys.cli.main import main
from mlsys.course.digest import digest
from mlsys.course.tree import CourseTree

FILES = {name: f"notebook of {name}".encode() for name in ("ann", "bob", "eve", "ann before")}
PASSED = QuestionRecord("a", "Tiles", "a-test", "passed", 6, 6)
SLOW = QuestionRecord("e", "Speed", "e-test", "slow", 2.5, 4, message="0.6 of the library", detail="line 3")
WAITS = QuestionRecord("e", "Speed", "e-test", "needs gpu", 0, 4)
LATE = HandedIn("2026-03-04T14:00+00:00", Late(3000, needed=3, left=1, percent=10))
FAILED = QuestionRecord("a", "Tiles", "a-test", "marked", 0, 6)
RECORDS = {
    "ann": ((PASSED, SLOW), "ann"),
    "bob": ((PASSED, WAITS), "bob"),
    "dan": ((FAILED,), "eve"),  # dan and eve handed in the same file, and a person gave dan no points
    "eve": ((PASSED,), "eve"),
}


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CourseTree:
    monkeypatch.chdir(Path(__file__).parents[3])  # which has the lab
    tree = CourseTree(tmp_path / "course")
    store = FileStore(tree)
    for student, (questions, file) in RECORDS.items():
        name = digest(FILES[file])
        store.save_record(Record(student, "tiling", "1", "now", submission=name, questions=questions))
        earlier = [digest(FILES["ann before"])] if student == "ann" else []
        store.save_history(
            "tiling", student, History(tuple(Attempt(one, "x", "gradescope") for one in [*earlier, name]))
        )
    rows = [f"{student},{student},{student}@uni.edu" for student in RECORDS]
    (tmp_path / "roster.csv").write_text("\n".join(["id,name,sis login id", *rows]))
    return tree


def export(course: CourseTree, *words: str, roster: bool = True) -> Path:
    """Write the autograder's zip, unpack it as Gradescope does, and return the folder `autograder`."""
    here = course.root.parent
    named = ["--roster", str(here / "roster.csv")] if roster else []
    target = ["--out", str(here / "autograder.zip"), "--course", str(course.root)]
    assert main(["export", "tiling", "--gradescope", *named, *target, *words]) == 0
    root = here / "autograder"
    with zipfile.ZipFile(here / "autograder.zip") as archive:
        archive.extractall(root / "source")
        for name in ("run_autograder", "setup.sh"):
            assert stat.S_IMODE(archive.getinfo(name).external_attr >> 16) == 0o755
    (root / "run_autograder").write_bytes((root / "source" / "run_autograder").read_bytes())
    return root


def graded(root: Path, content: bytes, *addresses: str) -> dict[str, object] | str:
    """What the autograder gives a submission: the results, or what it prints where it gives none."""
    for folder in ("submission/inner", "results"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "submission" / "inner" / "tiling.ipynb").write_bytes(content)
    (root / "submission" / "README").write_text("a file beside it")
    users = [{"email": address, "id": 1, "name": "x"} for address in addresses]
    (root / "submission_metadata.json").write_text(json.dumps({"users": users}))
    results = root / "results" / "results.json"
    results.unlink(missing_ok=True)
    command = [sys.executable, "-I", str(root / "run_autograder")]  # isolated: nothing of mlsys is there
    run = subprocess.run(command, capture_output=True, text=True, cwd=root, env={"PATH": os.defpath})
    assert run.stderr == ""
    assert (run.returncode == 0) == results.is_file()
    return json.loads(results.read_text()) if results.is_file() else run.stdout


def test_a_submission_gets_its_score_and_every_verdict_in_the_documented_form(course: CourseTree) -> None:
    assert graded(export(course), FILES["ann"], "Ann@uni.edu") == {
        "score": 8.5,
        "output": "8.5 of 10 points.",
        "tests": [
            {
                "name": "a. Tiles",
                "score": 6,
                "max_score": 6,
                "output": f"passed\n{PASSED.taught}",
                "visibility": "visible",
            },
            {
                "name": "e. Speed",
                "score": 2.5,
                "max_score": 4,
                "output": f"slow: 0.6 of the library\nline 3\n{SLOW.taught}",
                "visibility": "visible",
            },
        ],
    }


def test_the_scores_are_those_of_every_other_export(course: CourseTree) -> None:
    root, table = export(course), course.root.parent / "scores.csv"
    assert main(["export", "tiling", "--csv", "--out", str(table), "--course", str(course.root)]) == 0
    with table.open(newline="", encoding="utf-8-sig") as file:
        points = {row["student"]: row["points"] for row in csv.DictReader(file)}
    assert points.pop("bob") == ""
    assert {one: float(text) for one, text in points.items()} == {
        path.stem: json.loads(path.read_text())["score"] for path in (root / "source" / "results").iterdir()
    }


def test_late_work_says_what_is_taken_off() -> None:
    record = Record("cy", "tiling", "1", "now", questions=(PASSED, SLOW), handed_in=LATE)
    found = results_of(Graded(record, score_of(record), (), ()))
    assert found["score"] == pytest.approx(8.5 * 0.8)
    assert "Handed in late: it needs 3 late days, 1 was left; 20% of the points are taken off." in found["output"]


def test_an_earlier_attempt_gets_the_score_of_the_one_that_counts(course: CourseTree) -> None:
    root = export(course)
    assert graded(root, FILES["ann before"]) == graded(root, FILES["ann"])


@pytest.mark.parametrize("content", [FILES["bob"], b"handed in after the grading"])
def test_without_a_score_there_are_no_results_and_never_a_zero(course: CourseTree, content: bytes) -> None:
    assert "was not graded, or has no score yet: export the submissions" in graded(export(course), content)


def test_points_that_are_certain_can_be_given(course: CourseTree) -> None:
    found = graded(export(course, "--partial"), FILES["bob"])
    assert isinstance(found, dict)
    assert (found["score"], found["output"]) == (6, "6 of 10 points.\nNot final: 4 points wait (needs gpu).")


def test_a_question_that_does_not_count_is_left_out(course: CourseTree) -> None:
    found = graded(export(course, "--without", "e"), FILES["ann"])
    assert isinstance(found, dict)
    assert (found["score"], [test["name"] for test in found["tests"]]) == (6, ["a. Tiles"])  # type: ignore[attr-defined]


def test_two_who_handed_in_the_same_file_are_told_apart_by_their_addresses(course: CourseTree) -> None:
    root = export(course)
    one, other = (graded(root, FILES["eve"], f"{name}@uni.edu") for name in ("dan", "eve"))
    assert isinstance(one, dict)
    assert isinstance(other, dict)
    assert (one["score"], other["score"]) == (0, 6)
    assert "no address says whose it is: name a roster" in graded(root, FILES["eve"], "nobody@uni.edu")
    assert "was not graded" in graded(root, FILES["eve"], "ann@uni.edu")  # handed in by ann after the grading
    assert "no address says whose it is" in graded(export(course, roster=False), FILES["eve"], "eve@uni.edu")


def test_the_command_says_what_to_do_in_gradescope(course: CourseTree, capsys: pytest.CaptureFixture[str]) -> None:
    export(course)
    said = capsys.readouterr().out
    assert "3 students in" in said
    assert "give the assignment 10 autograder points, upload the zip as its autograder" in said
    assert "bob: 4 points wait (needs gpu)" in said


def test_where_nobody_has_a_score_nothing_is_written(course: CourseTree, capsys: pytest.CaptureFixture[str]) -> None:
    for student in ("ann", "dan", "eve"):
        course.record("tiling", student).unlink()
    out = course.root.parent / "autograder.zip"
    assert main(["export", "tiling", "--gradescope", "--out", str(out), "--course", str(course.root)]) == 2
    said = capsys.readouterr()
    assert "bob: 4 points wait (needs gpu)" in said.out
    assert "nobody has a score in tiling yet" in said.err
    assert not out.exists()


def test_the_lookup_knows_files_by_the_digest_of_the_course() -> None:
    assert [run_autograder.digest(data) for data in FILES.values()] == [digest(data) for data in FILES.values()]
