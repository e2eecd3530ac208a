from pathlib import Path
from typing import Any

import pytest
from helpers.on_gpu import read_records
from helpers.sample_classes import ROOT, expected, graded, is_due

from mlsys.course.lab import find_labs

LABS = find_labs(ROOT)
HOW = "run `python -m pytest tests/labs/test_sample_classes_gpu.py -m gpu` on a GPU and commit tests/labs/results"


@pytest.mark.proof
@pytest.mark.timeout(1800)  # a class of notebooks, and how long each takes depends on what else the machine does
@pytest.mark.parametrize("name", LABS)
def test_sample_class_gets_the_marks_written_beforehand(tmp_path: Path, name: str) -> None:
    due = {key: (row["verdict"], float(row["points_cpu"])) for key, row in expected(name).items()}
    found = graded(name, tmp_path, once=True)
    assert found.keys() == due.keys()
    assert len({student for student, _ in found}) >= 8
    marks = {key: (question.verdict, question.points) for key, question in found.items()}
    assert [(key, marks[key], found[key].message) for key in due if marks[key] != due[key]] == []


@pytest.mark.parametrize("record", read_records(Path(__file__).parent / "results"), ids=lambda record: record["device"])
@pytest.mark.parametrize("name", LABS)
def test_the_record_of_a_gpu_has_the_marks_written_beforehand(name: str, record: dict[str, Any]) -> None:
    if name not in record:
        pytest.skip(f"the record of {record['device']} has no sample class of {name}: {HOW}")
    due = {key: row["points_gpu"] for key, row in expected(name).items()}
    found = {(row["student"], row["question"]): row for row in record[name]}
    assert found.keys() == due.keys(), HOW
    assert [row for key, row in found.items() if not is_due(row["points"], due[key])] == [], HOW
