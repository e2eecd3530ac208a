"""The sample classes on a GPU: `python -m pytest tests/labs/test_sample_classes_gpu.py -m gpu`.

That command writes its record, `tests/labs/results/<device>.json`, which is committed; `test_sample_classes.py` holds
it to the marks written down at present.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from helpers.on_gpu import GRADING_CONFIG, needs_gpu, present_gpu, read_records, write_record
from helpers.sample_classes import ROOT, expected, graded, is_due

from mlsys.course.lab import find_labs

RESULTS = Path(__file__).parent / "results"
LABS = find_labs(ROOT)


@pytest.fixture(scope="module")
def marks() -> dict[str, Any]:
    """What the record holds: filled by the tests, written after each, so that nothing is lost with a later one.

    Labs that a present record of this GPU and its software holds stay in it, so that one lab can be graded again.
    """
    present = present_gpu()
    kept = [one for one in read_records(RESULTS) if {key: one[key] for key in present} == present]
    return {name: record[name] for record in kept for name in LABS if name in record}


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", LABS)
def test_sample_class_gets_the_marks_written_beforehand(tmp_path: Path, name: str, marks: dict[str, Any]) -> None:
    # Most of them wait for compilers, for the GPU, or for their limits.
    found = graded(name, tmp_path, GRADING_CONFIG, workers=len(os.sched_getaffinity(0)))
    marks[name] = [
        {
            "student": student,
            "question": question,
            "verdict": result.verdict,
            "points": result.points,
            "seconds": round(result.seconds, 2),
        }
        for (student, question), result in sorted(found.items())
    ]
    write_record(RESULTS, marks)
    due = {key: row["points_gpu"] for key, row in expected(name).items()}
    assert found.keys() == due.keys()
    wrong = [(*key, due[key], result) for key, result in found.items() if not is_due(result.points, due[key])]
    assert not wrong, "\n".join(
        f"{student}, {question}: {one.verdict}, {one.points:g} of {points} points: {one.message}"
        for student, question, points, one in wrong
    )
