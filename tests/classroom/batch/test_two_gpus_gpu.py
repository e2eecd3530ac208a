"""A sample class on two GPUs of one host, against one: `python -m pytest FILE -m gpu`, with the name of this file.

Measured is the judging of a class of several copies of each sample submission, in time of the clock, with everything
that the run does meanwhile: it reads submissions, writes the gradebook and feedback. Left out are the release, the
collecting of files and the reference solution, which come once in a run however large the class is.
"""

import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import torch
from helpers.on_gpu import GRADING_CONFIG
from helpers.sample_classes import ROOT, endless, handed_in
from rich.console import Console

from mlsys.classroom.batch.pool import Pool
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.grade_class import Batch, Options, grade_class
from mlsys.classroom.processes.workers import worker
from mlsys.judge.gpus import Gpu, gpus_to_grade_on

LAB = "fusion"
"""A lab whose sample submissions take about as long as each other, but for those that never end, which are left out."""
COPIES = 4
"""Of each sample submission, so that the class is long compared with its last submission."""
WORKERS_PER_GPU = 13
EFFICIENCY = 0.9
"""Least part of twice the pace of one GPU that two must have."""
IDLE = 0.05
"""Most of the time with work in which a GPU may idle."""


class TimedPool(Pool):
    """A pool that measures how long its last `judge_all` took."""

    took_s = 0.0

    def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
        began_s = time.monotonic()
        yield from super().judge_all(tasks)
        self.took_s = time.monotonic() - began_s


def graded(folder: Path, gpus: tuple[Gpu, ...]) -> tuple[Batch, float]:
    """The class graded on these GPUs, and the seconds of judging it."""
    tree = handed_in(LAB, folder)
    with (tree.root / "nbgrader_config.py").open("a") as config:
        config.write(GRADING_CONFIG)
    left_out = endless(LAB)
    for path in sorted((folder / "submissions").glob("*.ipynb")):
        if path.stem in left_out:
            path.unlink()
            continue
        for number in range(1, COPIES):
            shutil.copy(path, path.with_name(f"{path.stem}-{number}.ipynb"))
    pool = TimedPool(tree.root.resolve(), WORKERS_PER_GPU * len(gpus), gpus=gpus)
    options = Options(folder / "submissions", open_pool=lambda *_: pool)
    batch = grade_class(ROOT, tree, LAB, options, Console(quiet=True))
    return batch, pool.took_s


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA GPUs of one host")
@pytest.mark.timeout(1800)
def test_two_gpus_grade_a_class_at_nearly_twice_the_pace_with_the_same_verdicts(tmp_path: Path) -> None:
    with worker(0) as process:  # whoever asks CUDA keeps it, and this process must not be seen on a GPU
        gpus = process.submit(gpus_to_grade_on, "gpu").result()[:2]
    one, one_s = graded(tmp_path / "one", gpus[:1])
    two, two_s = graded(tmp_path / "two", gpus)
    assert {record.gpu for record in one.records.values() if not record.refused} == {str(gpus[0])}
    assert {record.gpu for record in two.records.values() if not record.refused} == set(map(str, gpus))
    assert verdicts(one) == verdicts(two)
    efficiency = one_s / (2 * two_s)
    idle = {time.device: round(time.idle_share, 4) for time in two.device_times}
    print(f"{len(one.records)} submissions to {LAB}: {one_s:.1f} s on one GPU, {two_s:.1f} s on two")
    print(f"efficiency {efficiency:.3f}; idle while submissions waited: {idle}")
    assert max(idle.values()) <= IDLE
    assert efficiency >= EFFICIENCY


def verdicts(batch: Batch) -> dict[tuple[str, str], str]:
    """What each question got, as far as no time decides it."""
    return {
        (student, one.question): one.verdict
        for student, record in batch.records.items()
        for one in record.questions
        if not one.timed
    }
