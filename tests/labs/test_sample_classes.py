import csv
from pathlib import Path

import pytest
from rich.console import Console

from mlsys.course.lab import find_labs
from mlsys.course.release import release
from mlsys.course.sample_class import hand_in
from mlsys.course.tree import CourseTree
from mlsys.grading.class_grading import Options, grade_class

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(1800)  # a class of notebooks, and how long each takes depends on what else the machine does
@pytest.mark.parametrize("name", find_labs(ROOT))
def test_sample_class_gets_the_marks_written_beforehand(tmp_path: Path, name: str) -> None:
    lab = ROOT / "labs" / name / "lab.py"
    tree = CourseTree(tmp_path / "course")
    release(ROOT, tree, [name])
    students = hand_in(lab, tmp_path / "submissions", tree)
    batch = grade_class(ROOT, tree, name, Options(tmp_path / "submissions"), Console(quiet=True))
    with (lab.parent / "class" / "expected.csv").open() as file:
        expected = {
            (row["student"], row["question"]): (row["verdict"], float(row["points_cpu"]))
            for row in csv.DictReader(file)
        }
    found = {
        (student, question.question): (question.verdict, question.points)
        for student, record in batch.records.items()
        for question in record.questions
    }
    assert len(students) >= 8
    assert found == expected
