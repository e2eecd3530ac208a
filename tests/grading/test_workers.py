"""Worker processes begin from a server that has imported everything, and end with their run."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from alive import alive, wait_for_end

from mlsys.grading import runner, workers
from mlsys.grading.slot.limits import Limits

RUN = """
import os, time
from mlsys.grading.workers import worker

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


@pytest.mark.parametrize("module", ["torch", "mlsys.grading.questions"])
def test_what_judging_needs_is_imported_already(module):
    with workers.worker(0) as one:
        assert one.submit(_is_imported, module).result()


def _is_imported(module: str) -> bool:
    return module in sys.modules


@pytest.mark.parametrize("sandboxed", [True, False])
def test_a_worker_leaves_no_folder_behind(monkeypatch, tmp_path, sandboxed):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with workers.worker(6) as one:
        assert one.submit(_opens_a_slot, sandboxed).result()
    assert list(tmp_path.iterdir()) == []


def _opens_a_slot(sandboxed: bool) -> bool:
    tempfile.tempdir = None  # the server's, as it was when that began
    runner._slot(False, Limits(sandboxed=sandboxed), ())
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
