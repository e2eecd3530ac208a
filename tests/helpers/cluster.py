"""A real cluster of dask on this machine for tests: a scheduler and workers, each a process that can be killed."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
QUICK = "helpers.quick_judge"
SCHEDULER = "distributed.cli.dask_scheduler"
_context = multiprocessing.get_context("forkserver")
_IMPORTED_FIRST = (
    QUICK,
    SCHEDULER,
    "mlsys.fleet.pool",
    "mlsys.classroom.store.move",
    "mlsys.classroom.gradebook.nbgrader_plugin",
    "mlsys.classroom.overview.class_page",
    "mlsys.cli.grade",
    "mlsys.cli.grade_output",
)


class Forked:
    """A command in a process that is forked from one with all imports: it starts at once, and can be killed.

    Args:
        module: QUICK for a command of `mlsys` with the quick judge, or SCHEDULER.
        arguments: of the command.
        folder: in which it runs.
        log: to which it writes.
    """

    def __init__(self, module: str, arguments: list[str], folder: Path, log: Path) -> None:
        _context.set_forkserver_preload([*_IMPORTED_FIRST])  # without effect where that process runs already
        self._process = _context.Process(target=_run, args=(module, arguments, folder, log, dict(os.environ)))
        self._process.start()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, how: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, how)


def _run(module: str, arguments: list[str], folder: Path, log: Path, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = ["mlsys", *arguments]
    import dask

    dask.config.refresh()  # it was imported with another environment
    if module == SCHEDULER:
        sys.exit(import_module(SCHEDULER).main(arguments))
    import_module(QUICK).be_quick()
    sys.exit(import_module("mlsys.cli.main").main(arguments))


class Cluster:
    """A scheduler on a free port, and `mlsys worker` processes that judge for it.

    Args:
        folder: where they write what they say.
        within: seconds after which the scheduler gives up a worker that is silent.
        scheme: tls for a cluster whose certificates dask's configuration names.
    """

    def __init__(self, folder: Path, within: float = 60.0, scheme: str = "tcp") -> None:
        pytest.importorskip("distributed", reason="distributed is not installed: mlsys[fleet] has it")
        self._folder, self._within = folder, within
        folder.mkdir(parents=True, exist_ok=True)
        self.workers: list[Any] = []
        self.scheduler: Any = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.scheme = scheme
        self.address = f"{scheme}://127.0.0.1:{self.port}"
        self.start_scheduler()

    def start_scheduler(self) -> None:
        """Start the scheduler, at the same address as before."""
        words = ["--host", f"{self.scheme}://127.0.0.1", "--port", str(self.port)]
        words += ["--dashboard-address", "127.0.0.1:0"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", f"{self._within}s")
            self.scheduler = Forked(SCHEDULER, words, ROOT, self._folder / "scheduler.log")
        for _ in range(1200):
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the scheduler does not start")

    def start_worker(self, *words: str, module: str = "mlsys.cli.main") -> Any:
        """Start a worker; with QUICK, one that runs no code."""
        log = self._folder / f"worker-{len(self.workers)}.log"
        if module == QUICK:
            self.workers.append(Forked(QUICK, ["worker", self.address, *words], ROOT, log))
        else:
            command = [sys.executable, "-m", module, "worker", self.address, *words]
            with log.open("ab") as file:
                self.workers.append(subprocess.Popen(command, stdout=file, stderr=file))
        return self.workers[-1]

    def start_quick_workers(self, number: int) -> None:
        """Start workers that run no code, and return when they are connected."""
        for _ in range(number):
            self.start_worker(module=QUICK)
        self.wait_for_workers(number)

    def kill(self, process: Any, how: int = signal.SIGKILL) -> None:
        """Kill a process, and wait for its end."""
        process.send_signal(how)
        process.wait()

    def wait_for_workers(self, number: int, within_s: float = 120.0) -> None:
        """Return when so many workers are connected."""
        import distributed

        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=within_s)

    def close(self) -> None:
        """End all processes."""
        for process in [*self.workers, self.scheduler]:
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()

    def said(self, name: str) -> str:
        """What a process has written."""
        return (self._folder / f"{name}.log").read_text()
