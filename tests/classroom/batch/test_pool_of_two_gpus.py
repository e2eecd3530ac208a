"""A pool whose workers judge on two GPUs. Processes and locks are real; the GPUs, and what is judged, are simulated."""

import os
import time
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from mlsys.classroom.batch.pool import Pool
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.store.run import Terms
from mlsys.judge.gpu_lock import GpuLock
from mlsys.judge.gpus import VISIBLE, Gpu

TWO = (Gpu("GPU-a", "simulated", "GPU-a"), Gpu("GPU-b", "simulated", "GPU-b"))
JUDGED_BY = "mlsys.classroom.batch.pool._judge_one"


def tasks(students):
    rest = (nbformat.v4.new_notebook(), "abc", Terms("run", 1), "auto", 1, 100)
    return [Task(student, "lab", "1", *rest) for student in students]


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path):
    """Locks of this test alone: the workers look for them in the temporary folder of their environment."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def say_where(task, _):
    return Judged(task.student, task.submission, gpu=os.environ.get(VISIBLE, ""))


def test_every_worker_sees_one_gpu_and_both_gpus_have_as_many(monkeypatch):
    monkeypatch.setattr(JUDGED_BY, meet_three_others)
    with Pool(Path("nowhere"), 4, gpus=TWO) as pool:
        found = list(pool.judge_all(tasks("abcd")))
        assert sorted(one.gpu for one in found) == ["GPU-a", "GPU-a", "GPU-b", "GPU-b"]
        assert [one.device for one in pool.device_times()] == ["simulated (GPU-a)", "simulated (GPU-b)"]


def meet_three_others(task, _):
    meet("judging", 4)
    return say_where(task, _)


def meet(name, number):
    """Wait until so many processes have come here."""
    folder = Path(os.environ["TMPDIR"])
    (folder / f"{name}-{os.getpid()}").touch()
    for _ in range(6000):
        if len(list(folder.glob(f"{name}-*"))) == number:
            return
        time.sleep(0.01)
    raise AssertionError(f"the others do not come while this one is {name}")


def test_without_a_gpu_nothing_is_said_to_workers(monkeypatch):
    monkeypatch.delenv(VISIBLE, raising=False)
    monkeypatch.setattr(JUDGED_BY, say_where)
    with Pool(Path("nowhere"), 1, gpus=()) as pool:
        assert [one.gpu for one in pool.judge_all(tasks("a"))] == [""]
        assert pool.device_times() == ()


def gpus_of_process(device):
    """Two GPUs whose names say in which process they were looked for."""
    return tuple(Gpu(one.uuid, f"of {os.getpid()}, {device}", one.visible) for one in TWO)


def test_gpus_are_looked_for_once_in_a_worker_which_then_ends(monkeypatch):
    monkeypatch.setattr("mlsys.classroom.batch.pool.gpus_to_grade_on", gpus_of_process)
    monkeypatch.setattr("mlsys.classroom.batch.pool.device_and_versions", process_of)
    with Pool(Path("nowhere"), 2) as pool:
        judges = pool.machine("auto")["device"]
        asked = {one.device.split(",")[0] for one in pool.device_times()}
        assert pool.machine("auto")["device"] == judges  # it stays
    assert len(asked) == 1
    assert f"of {os.getpid()}" not in asked
    assert judges not in asked  # who saw both GPUs does not judge


def process_of(_):
    return {"device": f"of {os.getpid()}"}


def time_together(task, _):
    gpu_lock = GpuLock.of(os.environ[VISIBLE])
    with gpu_lock.shared(), gpu_lock.exclusive():
        meet("timing", 2)
    return say_where(task, _)


def test_two_gpus_time_at_the_same_moment(monkeypatch):
    monkeypatch.setattr(JUDGED_BY, time_together)
    with Pool(Path("nowhere"), 2, gpus=TWO) as pool:
        assert {one.gpu for one in pool.judge_all(tasks("ab"))} == {"GPU-a", "GPU-b"}


def time_alone(task, _):
    gpu_lock = GpuLock.of(os.environ[VISIBLE])
    with gpu_lock.shared(), gpu_lock.exclusive():
        began_s = time.monotonic()
        time.sleep(0.2)
        ended_s = time.monotonic()
    return Judged(task.student, f"{began_s} {ended_s}")


def test_one_gpu_times_one_after_the_other(monkeypatch):
    monkeypatch.setattr(JUDGED_BY, time_alone)
    with Pool(Path("nowhere"), 3, gpus=TWO[:1]) as pool:
        spans = sorted(tuple(map(float, one.submission.split())) for one in pool.judge_all(tasks("abcdef")))
    assert len(spans) == 6
    assert all(ended_s <= began_s for (_, ended_s), (began_s, _) in pairwise(spans))


def time_for_half_a_second(task, _):
    gpu_lock = GpuLock.of(os.environ[VISIBLE])
    with gpu_lock.shared(), gpu_lock.exclusive():
        time.sleep(0.5)
    return Judged(task.student, task.submission)


@pytest.mark.proof
@pytest.mark.alone
def test_two_gpus_have_nine_tenths_of_twice_the_pace_and_hardly_idle(monkeypatch):
    students = [f"student-{number:02}" for number in range(24)]
    monkeypatch.setattr(JUDGED_BY, time_for_half_a_second)
    took_s = {}
    for gpus in (TWO[:1], TWO):
        with Pool(Path("nowhere"), 2 * len(gpus), gpus=gpus) as pool:
            list(pool.judge_all(tasks("abcd")))  # all workers have started
            began_s = time.monotonic()
            assert len(list(pool.judge_all(tasks(students)))) == len(students)
            took_s[len(gpus)] = time.monotonic() - began_s
            assert max(one.idle_share for one in pool.device_times()) <= 0.05
    efficiency = took_s[1] / (2 * took_s[2])
    print(f"efficiency of two simulated GPUs: {efficiency:.3f}")
    assert efficiency >= 0.9
