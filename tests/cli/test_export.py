import argparse
import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from mlsys.classroom.store.marks import Marks
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.store.run import Run
from mlsys.classroom.store.store import FileStore
from mlsys.cli import export
from mlsys.cli.main import main
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

GRADEBOOK = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Tiling (4711),Final Score\r\n"
    ",,,,,Manual Posting,\r\n"
    "    Points Possible,,,,,10.00,(read only)\r\n"
    '"Baker, Ann",101,S101,ab1@uni.edu,A,,0.00\r\n'
    '"Carter, Bob",102,S102,bc2@uni.edu,A,3.00,30.00\r\n'
    '"Dunn, Cy",103,S103,cd3@uni.edu,B,,0.00\r\n'
    '"Evans, \x1b[31mEve",104,S104,ee4@uni.edu,B,7.00,70.00\r\n'
    '"Student, Test",999,,0d1e2f,A,,0.00\r\n'
)
ROSTER = (
    "id,name,canvas id,sis user id\nann,Ann Baker,101,\nbob,Bob Carter,,S102\ncy,Cy Dunn,,\neve,Eve Evans,104,\n"
    "zoe,Zoe Young,,\n"
)


def question(name: str, verdict: str, points: float, most: float) -> QuestionRecord:
    return QuestionRecord(name, "", f"{name}-test", verdict, points, most)


DONE = (question("a", "passed", 6, 6), question("e", "slow", 2.5, 4))
WAITS = (question("a", "passed", 6, 6), question("e", "needs gpu", 0, 4))


@pytest.fixture
def in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "labs" / "tiling").mkdir(parents=True)
    (tmp_path / "labs" / "tiling" / "lab.py").touch()
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def course(tmp_path: Path, in_a_repository: None) -> CourseTree:
    (tmp_path / "gradebook.csv").write_bytes(GRADEBOOK.encode())
    (tmp_path / "roster.csv").write_text(ROSTER)
    tree = CourseTree(tmp_path / "course")
    for student, questions in {"ann": DONE, "bob": WAITS, "zoe": DONE}.items():
        FileStore(tree).save_record(Record(student, "tiling", "1", "now", questions=questions))
    return tree


def run(tree: CourseTree, *more: str, out: str = "filled.csv", lab: str = "tiling") -> Path:
    here = tree.root.parent
    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    target = [] if "--new-roster" in more else ["--out", str(here / out)]
    words = [lab, "--canvas", str(here / "gradebook.csv"), *target, "--course", str(tree.root), *more]
    assert export.run(parser.parse_args(words)) == 0
    return here / out


def column(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["ID"]: row["Tiling (4711)"] for row in csv.DictReader(file) if row["ID"]}


def test_scores_come_out_of_the_records_and_everybody_is_accounted_for(
    course: CourseTree, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(course, "--roster", str(course.root.parent / "roster.csv"))
    expected = GRADEBOOK.replace("ab1@uni.edu,A,,", "ab1@uni.edu,A,8.5,").replace("A,3.00,", "A,,")
    assert out.read_bytes() == expected.encode()
    said = capsys.readouterr().out
    assert "bob (Carter, Bob, line 5): 4 points wait (needs gpu); it was 3.00" in said
    assert "cy (Dunn, Cy, line 6): its cell stays empty" in said
    assert "zoe: has 8.5 of 10" in said
    assert "its cell stays 7.00" in said
    assert "Student, Test" not in said
    assert "\x1b" not in said


def test_without_a_roster_course_ids_that_are_canvas_ids_match(course: CourseTree) -> None:
    done = Record("cd3@uni.edu", "tiling", "1", "now", questions=DONE)
    FileStore(course).save_record(done)
    history = course.root / "attempts" / "zoe" / "tiling" / "attempts.json"
    history.parent.mkdir(parents=True)
    attempt = {"digest": "d", "name": "x", "origin": "canvas", "time": None, "number": 1, "late": False}
    history.write_text(json.dumps([attempt | {"canvas_id": "104", "refused": ""}]))
    assert column(run(course)) == {"101": "", "102": "3.00", "103": "8.5", "104": "8.5", "999": ""}


def test_marks_that_a_person_gave_are_in_the_score(course: CourseTree, monkeypatch: pytest.MonkeyPatch) -> None:
    (course.root / "gradebook.db").touch()
    given = {"bob": Marks({"e-test": 3.0})}
    monkeypatch.setattr("mlsys.classroom.gradebook.marks.marks_of", lambda *_: given)
    out = run(course, "--roster", str(course.root.parent / "roster.csv"))
    assert column(out)["102"] == "9"


def test_refused_submission_stays_blank(course: CourseTree) -> None:
    record = FileStore(course).record("tiling", "ann")
    assert record is not None
    FileStore(course).save_record(replace(record, refused="the file is empty"))
    assert column(run(course, "--roster", str(course.root.parent / "roster.csv")))["101"] == ""


def test_record_that_cannot_be_read_is_listed(course: CourseTree, capsys: pytest.CaptureFixture[str]) -> None:
    course.record("tiling", "cy").write_text("{")
    run(course)
    assert "cy.json cannot be read: grade again" in capsys.readouterr().out


def test_canvas_own_file_is_never_overwritten(course: CourseTree) -> None:
    with pytest.raises(UserError, match="the LMS's own file"):
        run(course, out="gradebook.csv")
    assert (course.root.parent / "gradebook.csv").read_bytes() == GRADEBOOK.encode()


@pytest.mark.parametrize("finished", [False, True])
def test_a_grading_that_is_not_finished_is_said(
    course: CourseTree, capsys: pytest.CaptureFixture[str], finished: bool
) -> None:
    FileStore(course).save_run("tiling", Run.new(finished=finished))
    run(course)
    assert ("continue it with `mlsys grade tiling --resume`" in capsys.readouterr().out) is not finished


def test_lab_without_results_says_what_to_run(course: CourseTree, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run `mlsys grade tiling` first"):
        run(CourseTree(tmp_path / "other"))
    assert not (tmp_path / "filled.csv").exists()


@pytest.mark.usefixtures("in_a_repository")
@pytest.mark.parametrize("kind", [["--csv"], ["--gradescope"], ["--canvas", "none.csv"]])
def test_a_misspelt_lab_is_named_with_the_nearest_and_those_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: list[str]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert main(["export", "tilin", *kind, "--out", "out"]) == 2
    assert capsys.readouterr().err == "mlsys: unknown lab 'tilin': did you mean 'tiling'? Known: tiling\n"
    assert sorted(tmp_path.rglob("*")) == before


def test_new_roster_of_a_misspelt_lab_is_not_written(course: CourseTree, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown lab 'tilling': did you mean 'tiling'"):
        run(course, "--new-roster", str(tmp_path / "new.csv"), lab="tilling")
    assert not (tmp_path / "new.csv").exists()


def test_new_roster_is_begun_once(course: CourseTree, tmp_path: Path) -> None:
    run(course, "--new-roster", str(tmp_path / "new.csv"))
    with (tmp_path / "new.csv").open() as file:
        assert [row["canvas id"] for row in csv.DictReader(file)] == ["", "101", "102", "103", "104"]
    with pytest.raises(UserError, match="may hold extensions"):
        run(course, "--new-roster", str(tmp_path / "new.csv"))


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("bc2@uni.edu", "ab1@uni.edu", "sis login id, 'ab1@uni.edu'"),
        ("bc2@uni.edu", "AB1@uni.edu", "sis login id, 'AB1@uni.edu'"),  # one folder on some disks
        ('Carter, Bob",102', 'Carter, Bob",101', "canvas id, '101'"),
        ("S102", "S101", "sis user id, 'S101'"),
    ],
)
def test_a_new_roster_of_one_id_twice_is_refused_with_both_lines_and_the_cure(
    course: CourseTree, tmp_path: Path, old: str, new: str, column: str
) -> None:
    assert GRADEBOOK.count(old) == 1
    (tmp_path / "gradebook.csv").write_bytes(GRADEBOOK.replace(old, new).encode())
    with pytest.raises(UserError) as refused:
        run(course, "--new-roster", str(tmp_path / "new.csv"))
    said = str(refused.value)
    assert said.startswith(
        f"{tmp_path / 'gradebook.csv'}: lines 4 and 5 (Baker, Ann and Carter, Bob) have the same {column}."
    )
    assert "take one of the lines out of a copy of the file, and name the copy" in said
    assert "correct it in the platform and export again" in said
    assert not (tmp_path / "new.csv").exists()


# Moodle, plain tables, and scores without a GPU


def out_of(tree: CourseTree, *words: str) -> str:
    here = tree.root.parent
    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    out = here / "out.csv"
    arguments = ["tiling", *words, "--roster", str(here / "roster.csv"), "--out", str(out), "--course", str(tree.root)]
    assert export.run(parser.parse_args(arguments)) == 0
    return out.read_text(encoding="utf-8-sig")


def test_a_plain_table_says_what_waits(course: CourseTree) -> None:
    rows = list(csv.DictReader(out_of(course, "--csv").splitlines()))
    assert [(row["student"], row["name"], row["points"], row["max_points"]) for row in rows] == [
        ("ann", "Ann Baker", "8.5", "10"),
        ("bob", "Bob Carter", "", "10"),
        ("zoe", "Zoe Young", "8.5", "10"),
        ("cy", "Cy Dunn", "", "10"),
        ("eve", "Eve Evans", "", "10"),
    ]
    assert [row["reason"] for row in rows] == ["", "4 points wait (needs gpu)", "", *["handed in nothing"] * 2]


def test_without_a_gpu_points_that_are_certain_can_be_written(
    course: CourseTree, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = list(csv.DictReader(out_of(course, "--csv", "--partial").splitlines()))
    assert [(row["points"], row["reason"]) for row in rows][1] == ("6", "4 points wait (needs gpu)")
    assert "1 with points that still wait" in capsys.readouterr().out
    assert column(run(course, "--partial", "--roster", str(course.root.parent / "roster.csv")))["102"] == "6"


def test_questions_can_be_left_out_and_the_weights_are_said(
    course: CourseTree, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = list(csv.DictReader(out_of(course, "--csv", "--without", "e").splitlines()))
    assert [(row["points"], row["max_points"], row["reason"]) for row in rows[:3]] == [("6", "6", "")] * 3
    assert "Without e: scores are out of 6 of the lab's 10 points: a 6 (100%)" in capsys.readouterr().out
    roster = str(course.root.parent / "roster.csv")
    with pytest.raises(UserError, match="6 of 6 points.*has 10 points possible: change them there, or add --scale"):
        run(course, "--without", "e", "--roster", roster)
    assert column(run(course, "--without", "e", "--scale", "--roster", roster))["102"] == "10"
    with pytest.raises(UserError, match="question"):
        out_of(course, "--csv", "--without", "f")
    with pytest.raises(UserError, match="leaves no question"):
        out_of(course, "--csv", "--without", "a,e")


def test_moodles_worksheet_is_filled_and_never_overwritten(course: CourseTree) -> None:
    sheet = course.root.parent / "worksheet.csv"
    header = "Identifier,Full name,Grade,Maximum grade,Grade can be changed,Last modified (grade),Feedback comments"
    sheet.write_text(f"{header}\nParticipant 1,Ann Baker,,10.00,Yes,-,\n")
    assert out_of(course, "--moodle", str(sheet)) == f"{header}\nParticipant 1,Ann Baker,8.5,10.00,Yes,-,\n"
    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    with pytest.raises(UserError, match="never overwritten"):
        export.run(parser.parse_args(["tiling", "--moodle", str(sheet), "--out", str(sheet)]))
