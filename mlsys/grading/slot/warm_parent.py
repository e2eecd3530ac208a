"""The process inside the sandbox that has imported torch and Triton and forks once per question.

It runs no student code, and no process of a question can see it. The judge commands it over a socket on standard input:
it opens and kills questions, watches their memory and reports their ends.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mlsys.grading.slot import linux
from mlsys.grading.slot.ending import Report
from mlsys.grading.slot.inside import STATUS, Descriptors, Setup, run_first_process
from mlsys.grading.slot.limits import Limits
from mlsys.grading.slot.seccomp import build_filter
from mlsys.grading.slot.usage import Usage, memory_bytes, processes_below, processes_of_session, usage

_NAMESPACES = linux.NEW_PIDS | linux.NEW_MOUNTS | linux.NEW_IPC
_COMMAND_BYTES = 64 * 1024


@dataclass
class Running:
    """A question that runs: its number, its first process, and where that reports."""

    number: int
    process: int
    handle: int
    status: int
    started_s: float
    over_memory: bool = False
    until_kill: Usage = field(default_factory=Usage)


class WarmParent:
    """Opens questions for the judge; several may run side by side."""

    def __init__(self, judge: socket.socket, limits: Limits, gpu: bool) -> None:
        self._judge = judge
        self._limits = limits
        self._gpu = gpu
        self._filter = build_filter(gpu)
        self._running: dict[int, Running] = {}

    def serve(self) -> None:
        """Follow commands until the judge closes the socket; what still runs then ends with the sandbox."""
        self._tell({"ready": 0})
        while True:
            running = list(self._running.values())
            watched = [self._judge.fileno(), *(question.handle for question in running)]
            ready, _, _ = select.select(watched, [], [], self._limits.watch_s if running else None)
            for question in running:
                if question.handle in ready:
                    self._report_end(question)
                else:
                    self._watch_memory(question)
            if self._judge.fileno() in ready and not self._follow_command():
                return

    def _follow_command(self) -> bool:
        text, descriptors, _, _ = socket.recv_fds(self._judge, _COMMAND_BYTES, 3)
        if not text:
            return False
        command = json.loads(text)
        if "open" in command:
            self._open(command["open"], command["entry"], descriptors)
        elif question := self._running.get(command["kill"]):
            self._kill(question)
        return True

    def _open(self, number: int, entry: str, descriptors: list[int]) -> None:
        try:
            importlib.import_module(entry.partition(":")[0])  # once here, instead of in every question
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
            connection, arena, output = descriptors
            run_first_process(setup, Descriptors(connection, arena, output, status_end))
        os.close(status_end)
        self._running[number] = Running(number, process, os.pidfd_open(process), status, time.monotonic())

    def _watch_memory(self, question: Running) -> None:
        limit_bytes = self._limits.memory_bytes
        if not question.over_memory and memory_bytes(self._processes(question), limit_bytes) > limit_bytes:
            question.over_memory = True
            self._kill(question)

    def _kill(self, question: Running) -> None:
        question.until_kill = usage(self._processes(question))
        os.kill(question.process, signal.SIGKILL)

    def _processes(self, question: Running) -> list[Path]:
        if not self._limits.sandboxed:
            return processes_of_session(question.process)
        return processes_below(question.process)

    def _report_end(self, question: Running) -> None:
        if not self._limits.sandboxed:
            self._end_those_left(question)
        _, _, used = os.wait4(question.process, 0)
        wall_s = time.monotonic() - question.started_s
        status = os.read(question.status, STATUS.size)
        os.close(question.status)
        os.close(question.handle)
        del self._running[question.number]
        report = Report(
            wait_status=STATUS.unpack(status)[0] if status else None,
            over_memory=question.over_memory,
            cpu_s=used.ru_utime + used.ru_stime + question.until_kill.cpu_s,
            wall_s=wall_s,
            peak_rss_bytes=max(used.ru_maxrss * 1024, question.until_kill.peak_rss_bytes),
        )
        self._tell({"ended": question.number, "report": asdict(report)})

    def _end_those_left(self, question: Running) -> None:
        """Without a namespace whose end takes them along: kill until none runs, as one may fork before its kill."""
        until_s = time.monotonic() + self._limits.kill_s
        while (left := self._processes(question)) and time.monotonic() < until_s:
            for path in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(path.name), signal.SIGKILL)
            time.sleep(0.001)

    def _tell(self, message: dict[str, object]) -> None:
        self._judge.send(json.dumps(message).encode())


def _empty_folder(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def main() -> None:
    """Import what questions will need, then serve; arguments: limits as JSON, "gpu" or "cpu", modules to import."""
    limits, device, *preload = sys.argv[1:]
    for module in preload:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a collection in a child would write to, and so copy, every page that holds an object
    linux.use_huge_pages()
    WarmParent(socket.socket(fileno=0), Limits(**json.loads(limits)), device == "gpu").serve()
