"""The fork server: it has imported torch and Triton, and forks once for each process that the judge asks for.

It runs no student code, and no process of a question can see it. The judge commands it over a socket on standard input:
it starts and kills processes, watches their CPU time and memory, and reports their ends.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

from mlsys.judge.sandbox.inside import linux
from mlsys.judge.sandbox.inside.first_process import STATUS, Descriptors, Setup, run_first_process
from mlsys.judge.sandbox.inside.seccomp import build_filter
from mlsys.judge.sandbox.inside.usage import (
    available_bytes,
    children_of_all,
    cpu_s,
    descendants,
    memory_bytes,
    peak_rss_bytes,
    processes_below,
    waited_for_cpu_s,
)
from mlsys.judge.sandbox.protocol.ending import Limit, Report
from mlsys.judge.sandbox.protocol.limits import Limits

_NAMESPACES = linux.NEW_PIDS | linux.NEW_MOUNTS | linux.NEW_IPC
_COMMAND_BYTES = 64 * 1024


@dataclass(eq=False)
class ProcessTree:
    """A process and all below it: its number, its first process, where that reports, and what the watchdog has seen."""

    number: int
    first: int
    handle: int
    status: int
    started_s: float
    available_bytes: int
    over: Limit | None = None
    cpu_s: float = 0.0
    waited_s: float = 0.0
    peak_rss_bytes: int = 0


class ForkServer:
    """The server that starts, watches and kills processes for the judge; several may run side by side."""

    def __init__(self, judge: socket.socket, limits: Limits, gpu: bool) -> None:
        self._judge = judge
        self._limits = limits
        self._gpu = gpu
        self._filter = build_filter(gpu)
        self._running: dict[int, ProcessTree] = {}
        if not limits.sandboxed:
            linux.adopt_orphans()

    def serve(self) -> None:
        """Follow commands until the judge closes the socket; what still runs then ends with the sandbox."""
        self._tell({"ready": 0})
        while True:
            running = list(self._running.values())
            watched = [self._judge.fileno(), *(tree.handle for tree in running)]
            ready, _, _ = select.select(watched, [], [], self._limits.watch_s if running else None)
            for tree in running:
                if tree.handle in ready:
                    self._report_end(tree)
                else:
                    self._watch(tree)
            if self._judge.fileno() in ready and not self._follow_command():
                return

    def _follow_command(self) -> bool:
        text, descriptors, _, _ = socket.recv_fds(self._judge, _COMMAND_BYTES, 3)
        if not text:
            return False
        command = json.loads(text)
        if "open" in command:
            self._open(command["open"], command["entry"], descriptors)
        elif tree := self._running.get(command["kill"]):
            self._kill(tree)
        return True

    def _open(self, number: int, entry: str, descriptors: list[int]) -> None:
        try:
            importlib.import_module(entry.partition(":")[0])  # once here, instead of in every process
        except Exception:
            self._tell({"refused": number, "why": traceback.format_exc()})
        else:
            self._start(number, Setup(entry, self._limits, self._filter, execute_in_scratch=self._gpu), descriptors)
            self._tell({"opened": number})
        for descriptor in descriptors:
            os.close(descriptor)

    def _start(self, number: int, setup: Setup, descriptors: list[int]) -> None:
        threads = len(list(Path("/proc/self/task").iterdir()))
        if threads != 1:
            raise RuntimeError(f"{threads} threads at a fork: the child would wait for their locks for ever")
        status, status_end = os.pipe()
        if not self._limits.sandboxed and not self._running:
            _empty_folder(Path(os.environ["TMPDIR"]))
        process = linux.fork_into_namespaces(_NAMESPACES) if self._limits.sandboxed else os.fork()
        if process == 0:
            connection, buffer, output = descriptors
            run_first_process(setup, Descriptors(connection, buffer, output, status_end))
        os.close(status_end)
        self._running[number] = ProcessTree(
            number, process, os.pidfd_open(process), status, time.monotonic(), available_bytes()
        )

    def _watch(self, tree: ProcessTree) -> None:
        if tree.over is None:
            tree.over = self._limit_passed(tree)
            if tree.over:
                self._kill(tree)

    def _limit_passed(self, tree: ProcessTree) -> Limit | None:
        limits = self._limits
        processes = processes_below(tree.first)
        tree.cpu_s = max(tree.cpu_s, cpu_s(tree.first, processes))
        if tree.cpu_s >= limits.cpu_s:
            return "cpu"
        used_bytes = memory_bytes(processes, limits.memory_bytes)
        if used_bytes > limits.memory_bytes:
            return "memory"
        available = available_bytes()
        lost_bytes = tree.available_bytes - available - used_bytes
        # Whoever took it: better one process again, alone, than the kernel's choice among all programs here.
        if available < limits.machine_bytes and lost_bytes > limits.memory_bytes:
            return "machine"
        return None

    def _kill(self, tree: ProcessTree) -> None:
        below = {running: processes_below(running.first) for running in self._running.values()}
        tree.cpu_s = max(tree.cpu_s, cpu_s(tree.first, below[tree]))
        tree.peak_rss_bytes = peak_rss_bytes(below[tree])
        # The judge waits for one process of a sandbox after the other, so what they waited adds up.
        tree.waited_s = sum(map(waited_for_cpu_s, below.values()))
        os.kill(tree.first, signal.SIGKILL)

    def _report_end(self, tree: ProcessTree) -> None:
        _, _, used = os.wait4(tree.first, 0)
        del self._running[tree.number]
        if not self._limits.sandboxed:
            self._end_those_left()
        status = os.read(tree.status, STATUS.size)
        os.close(tree.status)
        os.close(tree.handle)
        report = Report(
            wait_status=STATUS.unpack(status)[0] if status else None,
            over=tree.over,
            cpu_s=max(used.ru_utime + used.ru_stime, tree.cpu_s),
            waited_s=tree.waited_s,
            wall_s=time.monotonic() - tree.started_s,
            peak_rss_bytes=max(used.ru_maxrss * 1024, tree.peak_rss_bytes),
        )
        self._tell({"ended": tree.number, "report": asdict(report)})

    def _end_those_left(self) -> None:
        """Kill all descendants where no namespace ends them, until none runs, as one may fork before its kill.

        They have become our children, like whatever else loses its parent here.
        """
        until_s = time.monotonic() + self._limits.kill_s
        while (left := self._orphans()) and time.monotonic() < until_s:
            for orphan in left:
                for process in (orphan, *descendants(orphan)):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                os.waitpid(orphan, os.WNOHANG)
            time.sleep(0.001)

    def _orphans(self) -> set[int]:
        return {*children_of_all().get(os.getpid(), [])} - {running.first for running in self._running.values()}

    def _tell(self, message: dict[str, object]) -> None:
        self._judge.send(json.dumps(message).encode())


def _empty_folder(folder: Path) -> None:
    """Remove the content of a folder as far as possible, also what is nested too deep for Python's own functions."""
    folder.chmod(0o700)
    subprocess.run(
        ["find", str(folder), "-mindepth", "1", "-delete"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def main() -> None:
    """Import what processes will need, then serve; arguments: limits as JSON, "gpu" or "cpu", modules to import."""
    limits, device, *preload = sys.argv[1:]
    for module in preload:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a collection in a child would write to, and so copy, every page that holds an object
    linux.use_huge_pages()
    ForkServer(socket.socket(fileno=0), Limits(**json.loads(limits)), device == "gpu").serve()
