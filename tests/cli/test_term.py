"""From a Canvas gradebook and an LMS's zip to the filled gradebook, through the commands that the instructor types."""

import csv
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mlsys.classroom.store.store import FileStore
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.tree import CourseTree

pytestmark = pytest.mark.proof

GRADEBOOK = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Adding (4711),Essay (4712),Final Score\r\n"
    ",,,,,Manual Posting,,\r\n"
    "    Points Possible,,,,,12.00,5.00,(read only)\r\n"
    '"Baker, Ann",101,S101,ab1@uni.edu,A,,"4,5",0.00\r\n'
    '"Carter, Bob",102,S102,bc2@uni.edu,A,3.00,,30.00\r\n'
    '"Dunn, Cy",103,S103,cd3@uni.edu,B,,,0.00\r\n'
    '"Evans, Eve",104,S104,ee4@uni.edu,B,EX,,70.00\r\n'
    '"Fox, ""Fay""",105,S105,ff5@uni.edu,B,9.00,,\r\n'
    '"Student, Test",999,,0d1e2f,A,,,0.00\r\n'
)


def mlsys(root: Path, *words: str) -> str:
    command = [sys.executable, "-m", "mlsys.cli.main", *words]
    env = {**os.environ, "COLUMNS": "250"}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=900, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def mark(tree: CourseTree, student: str, points: dict[str, float]) -> None:
    """What nbgrader's formgrader does when a person enters points."""
    with open_gradebook(tree) as gradebook:
        for grade_id, given in points.items():
            gradebook.find_grade(grade_id, "adding", "adding", student).manual_score = given
        gradebook.db.commit()


@pytest.mark.timeout(900)
def test_from_canvas_and_a_zip_to_the_filled_gradebook(adding: tuple[Path, CourseTree, Path], tmp_path: Path) -> None:
    root = tmp_path / "repository"
    shutil.copytree(adding[0], root)
    tree, samples = CourseTree(root / "_build" / "course"), adding[2]
    (root / "canvas.csv").write_bytes(GRADEBOOK.encode())
    handed_in = {
        "bakerann_101_900_adding.ipynb": "syntax",
        "bakerann_101_905_adding-1.ipynb": "right",
        "carterbob_LATE_102_901_adding.ipynb": "half-done",
        "evanseve_104_903_adding.ipynb": "syntax",
        "foxfay_105_904_adding.ipynb": "truncated",
        "stranger_555_906_adding.ipynb": "syntax",
    }
    with zipfile.ZipFile(root / "submissions.zip", "w") as archive:
        for name, sample in handed_in.items():
            archive.write(samples / f"{sample}.ipynb", name)

    mlsys(root, "export", "adding", "--canvas", "canvas.csv", "--new-roster", "roster.csv")
    lines = (root / "roster.csv").read_text().splitlines()
    assert lines[1] == "*,,,,,,,,,,,"
    lines[1] = "*,,,,,,Europe/Berlin,2,,,2026-11-20 23:59,"
    lines = [
        line.removesuffix(",,,,,,") + ",America/New_York,,,,2026-11-27 18:00," if "103" in line else line
        for line in lines
    ]
    (root / "roster.csv").write_text("\n".join(lines) + "\n")

    graded = ["grade", "adding", "--submissions", "submissions.zip", "--roster", "roster.csv", "--workers", "2"]
    said = mlsys(root, *graded)
    students = ["ab1@uni.edu", "bc2@uni.edu", "ee4@uni.edu", "ff5@uni.edu", "stranger_555"]
    records = {student: FileStore(tree).record("adding", student) for student in students}
    assert all(records.values())
    assert "missing: cd3@uni.edu" in said
    assert "unknown: stranger_555" in said
    assert "refused: the file is damaged" in said
    assert "5 submissions (5 graded now, 0 unchanged), 1 refused" in said
    # Of two uploads the newest counts, and both are kept.
    assert [question.points for question in records["ab1@uni.edu"].questions] == [1, 3, 2, 0, 0]  # type: ignore[union-attr]
    assert len(list((tree.root / "attempts" / "ab1@uni.edu" / "adding").glob("*.ipynb"))) == 2
    secrets = {record.run for record in records.values() if record and not record.refused}
    assert len(secrets) == 1

    fill = ["export", "adding", "--canvas", "canvas.csv", "--roster", "roster.csv", "--out", "filled.csv"]
    mlsys(root, *fill)
    # Ann's and Bob's points wait, Cy handed in nothing, Eve is excused, Fay was refused: all blank or as they were.
    expected = GRADEBOOK.replace("A,3.00,", "A,,").replace("B,9.00,", "B,,")
    assert (root / "filled.csv").read_bytes() == expected.encode()

    mark(tree, "ab1@uni.edu", {"d-speed": 3.5, "e-why": 2})
    mlsys(root, *fill)
    expected = expected.replace('edu,A,,"4,5"', 'edu,A,11.5,"4,5"')
    assert (root / "filled.csv").read_bytes() == expected.encode()
    with (root / "filled.csv").open(newline="") as file:
        assert [row["Adding (4711)"] for row in csv.DictReader(file)][2:] == ["11.5", "", "", "EX", "", ""]


@pytest.mark.timeout(900)
def test_the_best_attempt_counts_and_an_older_one_is_judged_once(
    adding: tuple[Path, CourseTree, Path], tmp_path: Path
) -> None:
    root = tmp_path / "repository"
    shutil.copytree(adding[0], root)
    tree, samples = CourseTree(root / "_build" / "course"), adding[2]
    source = tmp_path / "in"
    source.mkdir()
    command = ["grade", "adding", "--submissions", str(source), "--attempt", "best", "--workers", "2"]
    for sample in ("half-done", "right"):
        shutil.copy(samples / f"{sample}.ipynb", source / "ann.ipynb")
        mlsys(root, *command)
    first = {path: path.read_bytes() for path in (tree.root / "attempts" / "ann" / "adding").glob("?*.json")}
    # Worse, and then unreadable: the best stays.
    shutil.copy(samples / "syntax.ipynb", source / "ann.ipynb")
    said = mlsys(root, *command)
    assert "1 graded now" in said
    record = FileStore(tree).record("adding", "ann")
    assert record is not None
    assert record.points == 6
    assert tree.submitted("adding", "ann").read_bytes() == (samples / "right.ipynb").read_bytes()
    judged_before = {path: text for path, text in first.items() if path.name != "attempts.json"}
    assert len(judged_before) == 2
    assert {path: path.read_bytes() for path in judged_before} == judged_before
    with open_gradebook(tree) as gradebook:
        assert gradebook.find_submission("adding", "ann").score == 6
    # Under "newest" an unreadable newest attempt has no score, whatever was there before.
    (source / "ann.ipynb").write_text("{")
    said = mlsys(root, *command[:-4], "--attempt", "newest", "--yes")
    assert "refused: the file is damaged or cut off" in said
    with open_gradebook(tree) as gradebook:
        assert gradebook.find_submission("adding", "ann").score == 0
    assert "0 graded now" not in mlsys(root, *command)
    record = FileStore(tree).record("adding", "ann")
    assert record is not None
    assert (record.refused, record.points) == ("", 6)
