"""Classes of many submissions, copies of a lab's sample class, graded on GPUs and timed."""

import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from helpers.on_gpu import GRADING_CONFIG
from helpers.sample_classes import ROOT, handed_in
from mlsys.classroom.batch.pool import Pool
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.grade_class import Batch, Options, grade_class
from mlsys.course.tree import CourseTree
from mlsys.judge.gpus import Gpu


@dataclass(frozen=True)
class TimedClass:
    """A graded class, the seconds of judging it, and those of the whole run.

    Judging includes what the run does meanwhile: it reads submissions, and writes the gradebook and feedback. The whole
    run is longer by what comes once, however large the class is: collecting files, and the reference solution.
    """

    batch: Batch
    judged_s: float
    run_s: float


class _TimedPool(Pool):
    """A pool that measures how long its last `judge_all` took."""

    took_s = 0.0

    def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
        began_s = time.monotonic()
        yield from super().judge_all(tasks)
        self.took_s = time.monotonic() - began_s


def copied_class(lab: str, folder: Path, submissions: int, without: Collection[str] = ()) -> CourseTree:
    """A tree with a lab, and so many submissions in `folder / "submissions"`: the samples in turns, but for some."""
    tree = handed_in(lab, folder)
    for student in without:
        (folder / "submissions" / f"{student}.ipynb").unlink()
    paths = sorted((folder / "submissions").iterdir())
    for number in range(len(paths), submissions):
        turn, place = divmod(number, len(paths))
        path = paths[place]
        shutil.copy(path, path.with_name(f"{path.stem}-{turn}{path.suffix}"))
    for path in paths[submissions:]:
        path.unlink()
    return tree


def sample_of(student: str, samples: Collection[str]) -> str:
    """The sample of which a student of a copied class handed in a copy.

    >>> sample_of("wrong-mask-3", {"wrong-mask"}), sample_of("wrong-mask", {"wrong-mask"})
    ('wrong-mask', 'wrong-mask')
    """
    return student if student in samples else student.rpartition("-")[0]


def graded_on_gpus(
    lab: str,
    folder: Path,
    *,
    submissions: int,
    workers: int,
    gpus: Sequence[Gpu] | None = None,
    without: Collection[str] = (),
) -> TimedClass:
    """Grade a copied class by so many workers on these GPUs, or on all of this machine."""
    tree = copied_class(lab, folder, submissions, without)
    with (tree.root / "nbgrader_config.py").open("a") as config:
        config.write(GRADING_CONFIG)
    pool = _TimedPool(tree.root.resolve(), workers, gpus=gpus)
    options = Options(folder / "submissions", open_pool=lambda *_: pool)
    began_s = time.monotonic()
    batch = grade_class(ROOT, tree, lab, options, Console(quiet=True))
    return TimedClass(batch, pool.took_s, time.monotonic() - began_s)
