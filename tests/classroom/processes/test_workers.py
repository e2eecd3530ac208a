"""Worker processes begin from a server that has imported everything, and end with their run."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from helpers.alive import alive, wait_for_end
from helpers.judging import SETUP, question_cells

from mlsys.classroom.processes import workers
from mlsys.judge import grade_question
from mlsys.judge.run_tests import judge
from mlsys.judge.sandbox.host.sandbox import Sandbox
from mlsys.judge.sandbox.inside.usage import descendants
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.site import site

pytestmark = pytest.mark.alone

RUN = """
import os, time
from mlsys.classroom.processes.workers import worker

if __name__ == "__main__":
    with worker(3) as one:
        print(one.submit(os.getpid).result(), one.submit(os.getppid).result(), flush=True)
        time.sleep(100)
"""


def test_a_worker_and_its_server_end_with_a_run_that_is_killed(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(RUN)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as run:
        worker, server = map(int, run.stdout.readline().split())
        assert worker != server
        assert alive(worker)
        assert alive(server)
        run.kill()
    wait_for_end((worker, server), within_s=60)


def _variable(name: str) -> str | None:
    return os.environ.get(name)


def test_a_worker_has_the_environment_of_its_own_start(monkeypatch):
    workers.warm_up()
    monkeypatch.setenv("MLSYS_TEST_LATER", "here")
    with workers.worker(0) as one:
        assert one.submit(_variable, "MLSYS_TEST_LATER").result() == "here"
    monkeypatch.delenv("MLSYS_TEST_LATER")
    with workers.worker(0) as one:
        assert one.submit(_variable, "MLSYS_TEST_LATER").result() is None


@pytest.mark.parametrize("module", ["torch", "mlsys.classroom.batch.submission"])
def test_what_judging_needs_is_imported_already(module):
    with workers.worker(0) as one:
        assert one.submit(_is_imported, module).result()


def _is_imported(module: str) -> bool:
    return module in sys.modules


@pytest.mark.parametrize("sandboxed", [True, False])
def test_a_worker_leaves_no_folder_behind(monkeypatch, sandboxed):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # below pytest's own folder the sandbox's user could read nothing
        monkeypatch.setenv("TMPDIR", folder)
        with workers.worker(6) as one:
            assert one.submit(_opens_a_sandbox, sandboxed).result()
        assert list(Path(folder).iterdir()) == []


def _opens_a_sandbox(sandboxed: bool) -> bool:
    tempfile.tempdir = None  # the server's, as it was when that began
    grade_question._grader.sandbox(False, Limits(sandboxed=sandboxed), (), ())
    return any(Path(tempfile.gettempdir()).iterdir())


def test_ctrl_c_ends_an_idle_worker_without_a_traceback(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(RUN)
    with subprocess.Popen([sys.executable, script], stdout=-1, stderr=-1, text=True) as run:
        worker, _ = map(int, run.stdout.readline().split())
        os.kill(worker, signal.SIGINT)
        until_s = time.monotonic() + 60
        while alive(worker) and time.monotonic() < until_s:
            time.sleep(0.02)
        run.kill()
        assert "Traceback" not in run.communicate()[1]


BUSY = """
import os, time
def answer():
    for _ in range(48):
        if os.fork() == 0:
            os.setsid()
            while True: pass
    time.sleep(100)
"""
SLOW = """
import time
def answer():
    while time.process_time() < 2: pass
    return 4
"""


def _start_sandbox(wall_s: float = 10.0) -> int:
    global _sandbox
    limits = Limits(cpu_s=5, wall_s=wall_s, kill_s=60.0, open_s=60.0, start_s=120.0)
    _sandbox = Sandbox(site(), limits, index=grade_question._grader.index)
    _sandbox.start()
    return os.getpid()


def _judged(answer: str) -> str:
    verdict = judge(_sandbox, question_cells(answer, SETUP), "assert answer() == 4", "tests of q", device="cpu", seed=3)
    _sandbox.close()
    return verdict.name


def test_a_slow_answer_passes_beside_one_that_fills_the_machine():
    with workers.worker(0, 2) as one, workers.worker(1, 2) as other:
        attacker = one.submit(_start_sandbox, 40.0).result()
        other.submit(_start_sandbox).result()
        attack = one.submit(_judged, BUSY)
        until_s = time.monotonic() + 60
        while len(descendants(attacker)) < 40 and not attack.done():
            assert time.monotonic() < until_s
            time.sleep(0.02)
        assert other.submit(_judged, SLOW).result() == "passed"
        assert attack.result() == "timed out"


def _cores() -> list[set[int]]:
    _start_sandbox()
    found = [os.sched_getaffinity(process) for process in (os.getpid(), *descendants(os.getpid()))]
    _sandbox.close()
    return found


def test_a_worker_and_all_that_it_starts_keep_to_cores_of_their_own():
    here = os.sched_getaffinity(0)
    if len(here) < 2:
        pytest.skip("one core")
    with workers.worker(0, 2) as one, workers.worker(1, 2) as other, workers.worker(2) as alone:
        of_one, of_other, of_all = (worker.submit(_cores).result() for worker in (one, other, alone))
    assert all(cores == of_one[0] for cores in of_one)
    assert of_one[0] | of_other[0] == here
    assert not of_one[0] & of_other[0]
    assert of_all[0] == here


@pytest.mark.parametrize("count", [1, 2, 4, 7])
@pytest.mark.parametrize("side_by_side", [1, 2, 3, 5, 8, 19])
def test_cores_are_shared_out_evenly(count, side_by_side):
    shares = [workers.share_of_cores(index, side_by_side, range(10, 10 + count)) for index in range(side_by_side)]
    assert set().union(*shares) == set(range(10, 10 + count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    used = [sum(core in share for share in shares) for core in range(10, 10 + count)]
    assert max(used) - min(used) <= 1
