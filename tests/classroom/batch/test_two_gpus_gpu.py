"""A sample class on two GPUs of one host, against one: `python -m pytest FILE -s -m gpu`, with this file's name."""

from pathlib import Path

import pytest
import torch
from helpers.gpu_classes import TimedClass, graded_on_gpus
from helpers.sample_classes import endless

from mlsys.classroom.grade_class import Batch
from mlsys.classroom.processes.workers import worker
from mlsys.judge.gpus import gpus_to_grade_on

LAB = "access"
"""A lab whose submissions take about as long as each other, but for the one that never ends, which is left out."""
SUBMISSIONS = 48
"""So many that the class is long compared with its last submission."""
WORKERS_PER_GPU = 13
EFFICIENCY = 0.9
"""Least part of twice the pace of one GPU that two must have."""
IDLE = 0.05
"""Most of the time with work in which a GPU may idle."""


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA GPUs of one host")
@pytest.mark.timeout(1800)
def test_two_gpus_grade_a_class_at_nearly_twice_the_pace_with_the_same_verdicts(tmp_path: Path) -> None:
    with worker(0) as process:  # whoever asks CUDA keeps it, and this process must not be seen on a GPU
        gpus = process.submit(gpus_to_grade_on, "gpu").result()[:2]
    found: list[TimedClass] = []
    for number in (1, 2):
        found.append(
            graded_on_gpus(
                LAB,
                tmp_path / str(number),
                submissions=SUBMISSIONS,
                workers=number * WORKERS_PER_GPU,
                gpus=gpus[:number],
                without=endless(LAB),
            )
        )
        idle = {time.device: round(time.idle_share, 4) for time in found[-1].batch.device_times}
        print(f"{LAB}, {SUBMISSIONS} submissions on {number}: {found[-1].judged_s:.1f} s; idle with work: {idle}")
    one, two = (each.batch for each in found)
    assert {record.gpu for record in one.records.values() if not record.refused} == {str(gpus[0])}
    assert {record.gpu for record in two.records.values() if not record.refused} == set(map(str, gpus))
    assert verdicts(one) == verdicts(two)
    efficiency = found[0].judged_s / (2 * found[1].judged_s)
    print(f"efficiency {efficiency:.3f}")
    assert max(time.idle_share for time in two.device_times) <= IDLE
    assert efficiency >= EFFICIENCY


def verdicts(batch: Batch) -> dict[tuple[str, str], str]:
    """What each question got, as far as no time decides it."""
    return {
        (student, one.question): one.verdict
        for student, record in batch.records.items()
        for one in record.questions
        if not one.timed
    }
