"""A fleet of real workers: who judges what, what a lost worker costs, and which workers are refused."""

import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from helpers.cluster import QUICK, Cluster
from helpers.quick_judge import verdict_of
from rich.console import Console

from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.store.run import Terms
from mlsys.cli.main import main
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.judge.gpus import Gpu

distributed = pytest.importorskip("distributed", reason="distributed is not installed: mlsys[fleet] has it")

from mlsys.fleet import connection  # noqa: E402
from mlsys.fleet import pool as fleet  # noqa: E402
from mlsys.fleet import worker as on_worker  # noqa: E402
from mlsys.fleet.lab_files import LabFiles, pack, unpack  # noqa: E402
from mlsys.fleet.pool import FleetPool  # noqa: E402
from mlsys.fleet.worker import CPU, GPU, About, State, check_head, serve  # noqa: E402

QUIET = Console(quiet=True)
HERE = State.here()


def tasks(tree: CourseTree, students: list[str], device: str = "auto") -> list[Task]:
    lab = released_lab(tree, "adding")
    terms = Terms("run", 1)
    return [
        Task(one, "adding", lab.version, lab.notebook, f"{index:016x}", terms, device, 1, 100)
        for index, one in enumerate(students)
    ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path_factory.mktemp("cluster"))) as cluster:
        cluster.start_quick_workers(2)
        yield cluster


def test_each_submission_comes_back_once_with_what_judged_it(
    cluster: Cluster, adding: tuple[Path, CourseTree, Path]
) -> None:
    tree = adding[1]
    names = [f"student-{number:02}" for number in range(12)]
    refused = Judged("late", "x", refused="it is no notebook")
    given = tasks(tree, names)
    with FleetPool(tree, "adding", cluster.address, QUIET) as pool:
        assert pool.machine("auto")["device"] == "cpu"
        assert pool.workers == 2
        with pytest.raises(UserError, match="no worker at .* has a GPU"):
            pool.machine("gpu")
        found = list(pool.judge_all([*given[:3], refused, *given[3:]]))
    assert sorted(one.student for one in found) == sorted([*names, "late"])
    by_student = {one.student: one for one in found}
    for task in given:
        judged = by_student[task.student]
        assert judged.device == "cpu"
        assert judged.versions["torch"] == "2"
        assert [one.verdict for one in judged.questions] == [
            verdict_of(task, one.name, one.title, one.graded.id, one.points, number).verdict
            for number, one in enumerate(released_lab(tree, "adding").questions)
        ]


@pytest.mark.proof
def test_a_submission_that_kills_every_worker_costs_itself_only(
    tmp_path: Path, adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "MAX_LOSSES", 2)
    tree = adding[1]
    with closing(Cluster(tmp_path)) as cluster:
        cluster.start_quick_workers(4)
        names = ["kills-it", *(f"student-{number:02}" for number in range(20))]
        with FleetPool(tree, "adding", cluster.address, QUIET) as pool:
            pool.machine("auto")
            found = {one.student: one for one in pool.judge_all(tasks(tree, names))}
    assert sorted(found) == sorted(names)
    assert [name for name, one in found.items() if one.refused] == ["kills-it"]
    assert "2 workers were lost while they judged it" in found["kills-it"].refused
    assert found["kills-it"].failed
    assert sum(worker.returncode == -signal.SIGKILL for worker in cluster.workers[:4]) >= 2


@pytest.mark.proof
def test_a_worker_that_is_cut_off_loses_its_submission_to_another(
    tmp_path: Path, adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLSYS_QUICK_S", "1")
    tree = adding[1]
    with closing(Cluster(tmp_path, within=4.0)) as cluster:
        silent = cluster.start_worker(module=QUICK)
        cluster.start_worker(module=QUICK)
        cluster.wait_for_workers(2)
        with FleetPool(tree, "adding", cluster.address, QUIET) as pool:
            pool.machine("auto")
            found = []
            for judged in pool.judge_all(tasks(tree, list("abcdefgh"))):
                if not found:
                    silent.send_signal(signal.SIGSTOP)  # as behind a cable that is pulled: nothing comes, nothing ends
                found.append(judged.student)
                if len(found) == 6:
                    silent.send_signal(signal.SIGCONT)  # what it then says is late
    assert sorted(found) == list("abcdefgh")


@pytest.mark.proof
def test_a_scheduler_that_is_killed_and_starts_again_loses_nothing(
    tmp_path: Path, adding: tuple[Path, CourseTree, Path]
) -> None:
    tree = adding[1]
    names = [f"student-{number:02}" for number in range(30)]
    with closing(Cluster(tmp_path)) as cluster:
        cluster.start_quick_workers(2)
        with FleetPool(tree, "adding", cluster.address, QUIET) as pool:
            pool.machine("auto")
            found = []
            for judged in pool.judge_all(tasks(tree, names)):
                found.append(judged.student)
                if len(found) == 5:
                    assert cluster.scheduler is not None
                    cluster.kill(cluster.scheduler)
                    cluster.start_scheduler()
    assert sorted(found) == names


@pytest.mark.proof
def test_questions_that_need_a_gpu_go_to_the_workers_that_have_one(
    tmp_path: Path, adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = adding[1]
    names = ["timed", *(f"student-{number:02}" for number in range(6))]
    with closing(Cluster(tmp_path)) as cluster:
        cluster.start_worker(module=QUICK)
        monkeypatch.setenv("MLSYS_QUICK_GPU", "1")
        cluster.start_worker(module=QUICK)
        cluster.wait_for_workers(2)
        with FleetPool(tree, "adding", cluster.address, QUIET) as pool:
            assert pool.machine("auto")["device"] == "gpu"
            found = {one.student: one for one in pool.judge_all(tasks(tree, names))}
            on_cpu = {one.student: one for one in pool.judge_all(tasks(tree, names, device="cpu"))}
            cluster.kill(cluster.workers[0])
            deadline_s = time.monotonic() + 30
            while pool.workers > 1 and time.monotonic() < deadline_s:
                time.sleep(0.1)
                pool._look()
            all_on_gpu = {one.student: one for one in pool.judge_all(tasks(tree, names))}
    assert {name: one.device for name, one in found.items()} == dict.fromkeys(names, "cpu") | {"timed": "gpu"}
    assert [one.question for one in found["timed"].questions] == [one.question for one in found["student-00"].questions]
    assert "needs gpu" not in [one.verdict for one in found["timed"].questions]
    assert [one.verdict for one in on_cpu["timed"].questions][-1] == "needs gpu"
    assert {one.device for one in on_cpu.values()} == {"cpu"}
    assert {one.device for one in all_on_gpu.values()} == {"gpu"}


@pytest.mark.proof
@pytest.mark.alone
def test_four_workers_have_nine_tenths_of_four_times_the_pace(
    tmp_path: Path, adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_s, number = 1.0, 48
    monkeypatch.setenv("MLSYS_QUICK_S", str(each_s))
    tree = adding[1]
    with closing(Cluster(tmp_path)) as cluster:
        cluster.start_quick_workers(4)
        with FleetPool(tree, "adding", cluster.address, QUIET) as pool:
            pool.machine("auto")
            began_s = time.monotonic()
            found = list(pool.judge_all(tasks(tree, [f"student-{index:02}" for index in range(number)])))
            took_s = time.monotonic() - began_s
    assert len(found) == number
    efficiency = each_s * number / 4 / took_s
    print(f"efficiency of four workers: {efficiency:.3f}")
    assert efficiency >= 0.90


def about(**changes: object) -> About:
    return replace(About(HERE, "host", "cpu"), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("worker", "resources", "reason"),
    [
        (about(), {CPU: 1}, ""),
        (about(device="gpu"), {GPU: 1}, ""),
        (about(), {GPU: 1}, "it claims a GPU and has none"),
        (about(), {}, "it carries neither CPU=1 nor GPU=1"),
        (about(problem="no bubblewrap"), {CPU: 1}, "no bubblewrap"),
        (about(state=replace(HERE, package="other")), {CPU: 1}, r"it has mlsys .*\(other\) in place of .*same commit"),
        (about(state=replace(HERE, python="3.9")), {CPU: 1}, r"it has python 3.9 in place of 3"),
        (about(state=replace(HERE, distributed="1")), {CPU: 1}, r"it has distributed 1 in place of"),
    ],
)
def test_a_worker_judges_only_if_it_is_fit_for_what_it_claims(
    worker: About, resources: dict[str, float], reason: str, adding: tuple[Path, CourseTree, Path]
) -> None:
    said = FleetPool(adding[1], "adding", "tcp://127.0.0.1:1", QUIET).objection(worker, resources)
    if reason:
        assert re.search(reason, said)
    else:
        assert said == ""


def test_a_worker_that_claims_a_gpu_gets_nothing(
    cluster: Cluster, adding: tuple[Path, CourseTree, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tree = adding[1]
    pool = FleetPool(tree, "adding", cluster.address, Console(width=200))
    with pool:
        pool.machine("auto")
        pool._refuse(next(iter(pool._workers)), "it claims a GPU and has none")
        found = list(pool.judge_all(tasks(tree, ["ann", "bob", "cid"])))
    assert len(found) == 3
    assert pool.workers == 1
    assert "is refused: it claims a GPU and has none" in capsys.readouterr().out


def test_a_machine_without_a_gpu_starts_no_worker_that_claims_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_worker, "check_sandbox", lambda *_: "")
    monkeypatch.setattr("mlsys.judge.grade_question.torch_sees_gpu", lambda: False)
    with pytest.raises(UserError, match="no CUDA GPU found here"):
        serve("tcp://127.0.0.1:1", "gpu")


def test_a_machine_without_a_sandbox_starts_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_worker, "check_sandbox", lambda *_: "bwrap is not installed")
    with pytest.raises(Exception, match="this machine judges nothing: bwrap is not installed"):
        serve("tcp://127.0.0.1:1", "cpu")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://127.0.0.1:99999", "nowhere", "http://x", ""])
def test_an_address_at_which_no_scheduler_answers_is_named(
    address: str, adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "CONNECT_S", 0.5)
    monkeypatch.setattr(connection, "CONNECT_S", 0.5)
    with pytest.raises(UserError, match=r"no scheduler of dask answers at .*start one with `dask scheduler`"):
        FleetPool(adding[1], "adding", address, QUIET).__enter__()
    with pytest.raises(UserError, match=r"no scheduler of dask answers at"):
        check_head(address)


def test_a_worker_of_another_state_than_the_head_is_refused_when_it_starts(
    cluster: Cluster, adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with FleetPool(adding[1], "adding", cluster.address, QUIET):
        check_head(cluster.address)
        monkeypatch.setattr(State, "here", classmethod(lambda _: replace(HERE, package="changed")))
        with pytest.raises(UserError, match=r"this machine has mlsys .* in place of .*so it is refused"):
            check_head(cluster.address)
    check_head(cluster.address)  # the head has gone


def test_without_a_worker_a_run_ends_with_a_sentence(
    tmp_path: Path, adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "PATIENCE_S", 0.5)
    with (
        closing(Cluster(tmp_path)) as cluster,
        FleetPool(adding[1], "adding", cluster.address, QUIET) as pool,
        pytest.raises(UserError, match=r"no worker has come to .*start some with `mlsys worker tcp"),
    ):
        pool.machine("auto")


def test_a_worker_judges_with_the_lab_that_the_head_has(tmp_path: Path, adding: tuple[Path, CourseTree, Path]) -> None:
    tree = adding[1]
    files = pack(tree, "adding")
    there = unpack(files, tmp_path)
    assert released_lab(there, "adding").version == released_lab(tree, "adding").version
    assert [path.name for path in there.versions("adding")] == [path.name for path in tree.versions("adding")]
    assert unpack(files, tmp_path) == there
    assert isinstance(files, LabFiles)
    assert not (there.root / "secret.txt").exists()


def test_numbers_of_workers_on_one_machine_differ(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    held = [on_worker._number.__wrapped__() for _ in range(3)]
    assert [number for number, _ in held] == [0, 1, 2]
    held[1][1].close()
    assert on_worker._number.__wrapped__()[0] == 1


def test_what_killed_workers_have_left_is_removed_when_the_next_one_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    held = [on_worker._number.__wrapped__() for _ in range(3)]
    folders = [Path(lock.name).with_suffix("") for _, lock in held]
    for folder in folders:
        folder.mkdir()
        (folder / "hidden.py").touch()
    held[0][1].close()
    held[2][1].close()  # these two were killed; the second is still at work
    monkeypatch.setattr(on_worker, "_number", cache(on_worker._number.__wrapped__))
    assert on_worker._folder.__wrapped__() == folders[0]
    assert [folder.is_dir() for folder in folders] == [True, True, False]
    assert not list(folders[0].iterdir())
    assert (folders[1] / "hidden.py").exists()


@pytest.mark.proof
def test_a_worker_of_dasks_own_command_leaves_no_tests_behind(
    adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of dask-jobqueue, on real sandboxes."""
    with tempfile.TemporaryDirectory() as folder, closing(Cluster(Path(folder))) as cluster:
        monkeypatch.setenv("TMPDIR", folder)
        words = [cluster.address, "--no-nanny", "--resources", "CPU=1", "--no-dashboard"]
        worker = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", *words])
        cluster.workers.append(worker)
        with FleetPool(adding[1], "adding", cluster.address, QUIET) as pool:
            pool.machine("cpu")
            kept = list(Path(folder).glob("mlsys-workers-*/*/"))
            assert [path.is_dir() for path in kept if path.suffix != ".lock"] == [True]
        cluster.kill(worker, signal.SIGTERM)
        assert [path.suffix for path in Path(folder).glob("mlsys-workers-*/*")] == [".lock"]


@pytest.mark.proof
def test_a_worker_that_a_batch_system_ends_goes_at_once_and_loses_nothing(
    tmp_path: Path, adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = adding[1]
    with closing(Cluster(tmp_path)) as cluster:
        monkeypatch.setenv("MLSYS_QUICK_S", "100")
        cluster.start_quick_workers(1)
        with FleetPool(tree, "adding", cluster.address, QUIET) as pool:
            pool.machine("auto")
            judging = pool.judge_all(tasks(tree, ["ann", "bob"]))
            found: list[Judged] = []
            thread = threading.Thread(target=lambda: found.extend(judging))
            thread.start()
            time.sleep(3)
            monkeypatch.setenv("MLSYS_QUICK_S", "0.1")
            began_s = time.monotonic()
            cluster.kill(cluster.workers[0], signal.SIGTERM)
            took_s = time.monotonic() - began_s
            cluster.start_worker(module=QUICK)
            thread.join(60)
    assert took_s < 15
    assert cluster.workers[0].returncode == 0
    assert sorted(one.student for one in found if not one.refused) == ["ann", "bob"]
    assert "WARNING" not in cluster.said("worker-0")


ONE, TWO = Gpu("GPU-a", "simulated", "GPU-a"), Gpu("GPU-b", "simulated", "GPU-b")


def test_a_worker_takes_the_gpu_that_the_fewest_have_or_the_one_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    held = []

    def start(number: int | None = None) -> str:
        monkeypatch.setattr(on_worker, "_own_gpu", [])
        gpu = on_worker.take_gpu([ONE, TWO], number)
        held.append(on_worker._own_gpu[0])
        return gpu.uuid

    assert [start(), start(), start()] == ["GPU-a", "GPU-b", "GPU-a"]
    assert start(1) == "GPU-b"
    held[1][1].close()  # a worker on the second has ended
    assert start() == "GPU-b"
    with pytest.raises(UserError, match=r"there is no GPU 2 here: choose --gpu among 0: simulated \(GPU-a\); 1: "):
        start(2)


def test_two_workers_of_one_host_judge_on_two_gpus(
    tmp_path: Path, adding: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scheduler and workers are real; the two GPUs are simulated, and so is judging."""
    monkeypatch.setenv("MLSYS_QUICK_GPUS", "GPU-a,GPU-b")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    tree = adding[1]
    with closing(Cluster(tmp_path)) as cluster:
        cluster.start_quick_workers(2)
        with FleetPool(tree, "adding", cluster.address, QUIET) as pool:
            assert pool.machine("auto")["device"] == "gpu"
            found = list(pool.judge_all(tasks(tree, [f"student-{number:02}" for number in range(8)])))
        said = sorted(cluster.said(f"worker-{number}").splitlines()[0].partition(": ")[2] for number in range(2))
    assert {one.gpu for one in found} == {"simulated (GPU-a)", "simulated (GPU-b)"}
    lab = released_lab(tree, "adding")
    assert [Judged.recorded(one.record(lab)).gpu for one in found] == [one.gpu for one in found]
    assert [line.partition(", python")[0] for line in said] == [
        f"GPU {n} of the 2 here, simulated (GPU-{u})" for n, u in ((0, "a"), (1, "b"))
    ]


def test_a_worker_without_a_gpu_takes_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "tcp://127.0.0.1:1", "--device", "cpu", "--gpu", "0"]) == 2
    assert "--device cpu offers no GPU: leave out --gpu, or --device" in capsys.readouterr().err
