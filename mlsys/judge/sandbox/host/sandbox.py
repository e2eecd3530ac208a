"""The judge's side of a slot: one sandbox with a warm parent, in which questions run."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from mlsys.judge.sandbox.host.bubblewrap import explain, sandbox_command, unsandboxed_command
from mlsys.judge.sandbox.host.cgroup import MemoryCgroup
from mlsys.judge.sandbox.host.control import Control, ParentLost
from mlsys.judge.sandbox.host.process import Ends, Question
from mlsys.judge.sandbox.protocol.ending import LOST, Report
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.sandbox.protocol.places import FIRST_SLOT_UID, SITE, SandboxError
from mlsys.judge.sandbox.protocol.shared_buffer import Arena

_BOOT = "import sys; sys.path.insert(0, {!r}); from mlsys.judge.sandbox.inside.fork_server import main; main()"
WARM_UP = "mlsys.judge.sandbox.inside.warm_up"
_SET_PIPE_SIZE = 1031  # fcntl.F_SETPIPE_SZ, which not every Python has
_READY = 0

SIDE_BY_SIDE = 3
"""Processes that may run at once: a student's code, that student's kernels, and what these are timed beside."""


def slot_memory_bytes(limits: Limits) -> int:
    """Memory that a slot can honestly take: all of its questions at their limits, and the warm parent."""
    return SIDE_BY_SIDE * (limits.memory_bytes + limits.arena_bytes + limits.scratch_bytes) + limits.parent_bytes


class Slot:
    """A place where student code runs: each question in a process and namespaces of its own.

    Use a slot in the thread that made it: the sandbox ends with that thread.

    Args:
        site: folder to import from besides the virtual environment; it must hold `mlsys`, and nothing that students
            must not read.
        limits: of each question.
        gpu: show the NVIDIA devices and compile kernels for them, instead of running Triton's interpreter.
        index: number of the slot; slots that run side by side must differ in it.
        preload: modules that the warm parent imports before the first question.

    Raises:
        SandboxError: bubblewrap is missing.
    """

    def __init__(
        self,
        site: Path,
        limits: Limits | None = None,
        *,
        gpu: bool = False,
        index: int = 0,
        preload: Sequence[str] = (WARM_UP,),
    ) -> None:
        self.limits = limits or Limits()
        self.starts = 0
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        arguments = [json.dumps(asdict(self.limits)), "gpu" if gpu else "cpu", *preload]
        python = [os.path.normpath(sys.executable), "-I", "-B", "-c"]  # called as ../bin/python, it still has the dots
        if self.limits.sandboxed:
            python += [_BOOT.format(SITE), *arguments]
            scratch_bytes = self.limits.scratch_bytes
            self._command = sandbox_command(site, index=index, gpu=gpu, scratch_bytes=scratch_bytes, command=python)
        else:
            python += [_BOOT.format(str(site)), *arguments]
            self._scratch = tempfile.TemporaryDirectory(prefix="mlsys-unsafe-", ignore_cleanup_errors=True)
            # One level down: who owns a folder in /tmp could give it another name, and then no question could start.
            Path(self._scratch.name).chmod(0o755)
            scratch = Path(self._scratch.name) / "scratch"
            scratch.mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(scratch, FIRST_SLOT_UID + index, FIRST_SLOT_UID + index)
            self._command = unsandboxed_command(index=index, gpu=gpu, scratch=scratch, command=python)
        self._index = index
        self._cgroup: MemoryCgroup | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Control | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - what bubblewrap and the warm parent complain about
        self._questions: list[Question] = []
        self._number = _READY

    def start(self) -> Control:
        """Build the sandbox and wait until its warm parent is ready.

        Raises:
            SandboxError: it cannot be built, or is not ready in time.
        """
        self.stop()
        outer, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with inner:
            environment = {"PATH": os.defpath}
            self._cgroup = MemoryCgroup.create(self._index, slot_memory_bytes(self.limits))
            self._process = subprocess.Popen(
                self._cgroup.command(self._command) if self._cgroup else self._command,
                stdin=inner.fileno(),
                stdout=self._log,
                stderr=self._log,
                env=environment,
                cwd="/",
                process_group=0,
            )
        self._control = control = Control(outer)
        self.starts += 1
        try:
            ready = control.hear({"ready"}, _READY, self.limits.start_s)
        except ParentLost:
            ready = None
        if not ready:
            self.stop()
            raise SandboxError(f"the sandbox did not start: {explain(self._complaint())}")
        return control

    def open(self, entry: str) -> Question:
        """Start a question: a fork of the warm parent in which a function serves requests.

        Args:
            entry: "module:function" of the site; the function is called with a `Channel`. The warm parent imports the
                module, so it must hold no student code.

        Raises:
            ValueError: `SIDE_BY_SIDE` questions are open here, or the module cannot be imported.
            SandboxError: the sandbox cannot be built, or ends at once.
        """
        self._questions = [question for question in self._questions if not question.ended]
        if len(self._questions) >= SIDE_BY_SIDE:
            raise ValueError(f"{len(self._questions)} questions are open in this slot: close one first")
        for _ in range(2):
            control = self._control or self.start()
            try:
                question = self._open(entry, control)
            except ParentLost:
                self.stop()
            else:
                self._questions.append(question)
                return question
        raise SandboxError(f"the sandbox ended when {entry} was opened: {explain(self._complaint())}")

    def stop(self) -> None:
        """End the sandbox and everything in it."""
        if self._control:
            self._control.close()
            self._control = None
        if self._process:
            # The group: root's outer bubblewrap has given up the power to end the inner one, which is another user's.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        if self._cgroup:
            self._cgroup.remove(self.limits.kill_s)
            self._cgroup = None

    def close(self) -> None:
        """Stop, and give back what the slot holds besides; it is of no use any more."""
        for question in self._questions:
            question.close()
        self.stop()
        self._log.close()
        if self._scratch:
            # Python's own way to remove a tree fails on one that is nested very deep.
            subprocess.run(["rm", "-rf", self._scratch.name], stderr=subprocess.DEVNULL)
            self._scratch.cleanup()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, entry: str, control: Control) -> Question:
        self._number += 1
        number = self._number
        with ExitStack() as ours, ExitStack() as theirs:
            connection, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.enter_context(connection)
            theirs.enter_context(inner)
            arena = Arena.create(self.limits.arena_bytes)
            ours.callback(os.close, arena.descriptor)
            arena_inner = arena.open_again()
            theirs.callback(os.close, arena_inner)
            output, output_inner = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            ours.callback(os.close, output)
            theirs.callback(os.close, output_inner)
            fcntl.fcntl(output, _SET_PIPE_SIZE, self.limits.output_bytes)

            control.tell({"open": number, "entry": entry}, [inner.fileno(), arena_inner, output_inner])
            answer = control.hear({"opened", "refused"}, number, self.limits.open_s)
            if answer is None:
                raise ParentLost
            if "refused" in answer:
                raise ValueError(f"{entry} cannot be opened: {answer['why']}")
            ends = Ends(connection, arena, output, ours.pop_all())
        wait_for_end, kill = partial(self._wait_for_end, control, number), partial(self._kill, control, number)
        return Question(ends, self.limits, wait_for_end, kill)

    def _wait_for_end(self, control: Control, number: int, timeout_s: float) -> Report | None:
        if self._control is not control:  # its sandbox has ended
            return LOST
        try:
            message = control.hear({"ended"}, number, timeout_s)
        except ParentLost:
            self.stop()
            return LOST
        return Report(**message["report"]) if message else None

    def _kill(self, control: Control, number: int) -> Report:
        """Kill the question, or the whole slot if that is not confirmed in time."""
        if self._control is not control:
            return LOST
        try:
            control.tell({"kill": number})
        except ParentLost:
            self.stop()
            return LOST
        report = self._wait_for_end(control, number, self.limits.kill_s)
        if report is None:
            self.stop()
        return report or LOST

    def _complaint(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")[-2000:]
