"""Worker processes begin from a server that has imported everything, and end with their run."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mlsys.grading import workers

RUN = """
import os, time
from mlsys.grading.workers import worker

if __name__ == "__main__":
    with worker(3) as one:
        print(one.submit(os.getpid).result(), one.submit(os.getppid).result(), flush=True)
        time.sleep(100)
"""


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_worker_and_its_server_end_with_a_run_that_is_killed(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(RUN)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as run:
        worker, server = map(int, run.stdout.readline().split())
        assert worker != server
        assert runs(worker)
        assert runs(server)
        run.kill()
    until_s = time.monotonic() + 60
    while (runs(worker) or runs(server)) and time.monotonic() < until_s:
        time.sleep(0.02)
    assert not runs(worker)
    assert not runs(server)


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
