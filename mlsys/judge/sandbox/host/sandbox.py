"""A sandbox with its fork server, in which the processes of questions run, as the judge sees it."""

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
from mlsys.judge.sandbox.host.control import Control, ForkServerLost
from mlsys.judge.sandbox.host.process import Ends, SandboxProcess
from mlsys.judge.sandbox.protocol.ending import LOST, Report
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.sandbox.protocol.places import FIRST_SANDBOX_UID, SITE, SandboxError
from mlsys.judge.sandbox.protocol.shared_buffer import SharedBuffer

# A folder that its user cannot read is passed over by Python, which would import the installed package instead.
_BOOT = """
import sys
sys.path.insert(0, {0!r})
import mlsys
if mlsys.__path__[0] != {0!r} + "/mlsys":
    sys.exit({0!r} + " cannot be read by the user of the sandbox; open it and the folders above it: chmod go+rX")
from mlsys.judge.sandbox.inside.fork_server import main
main()
"""
WARM_UP = "mlsys.judge.sandbox.inside.warm_up"
_SET_PIPE_SIZE = 1031  # fcntl.F_SETPIPE_SZ, which not every Python has
_READY = 0

MAX_OPEN_PROCESSES = 3
"""Most processes open in a sandbox at once: a student's code, that student's kernels, and their reference."""


def sandbox_memory_bytes(limits: Limits) -> int:
    """Return the memory that a sandbox can honestly take: all of its processes at their limits, and the fork server."""
    each_bytes = limits.memory_bytes + limits.buffer_bytes + limits.scratch_bytes
    return MAX_OPEN_PROCESSES * each_bytes + limits.fork_server_bytes


class Sandbox:
    """A place where student code runs, with a fork server that starts each process in namespaces of its own.

    Use a sandbox in the thread that made it: the sandbox ends with that thread.

    Args:
        site: folder to import from besides the virtual environment; it must hold `mlsys`, and nothing that students
            must not read.
        limits: of each process.
        gpu: show the NVIDIA devices and compile kernels for them, instead of running Triton's interpreter.
        visible: which of the GPUs CUDA shows inside, as in CUDA_VISIBLE_DEVICES; all of them when empty.
        index: number of the sandbox; sandboxes that run side by side must differ in it.
        preload: modules that the fork server imports before the first process starts.

    Raises:
        SandboxError: bubblewrap is missing.
    """

    def __init__(
        self,
        site: Path,
        limits: Limits | None = None,
        *,
        gpu: bool = False,
        visible: str = "",
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
            self._command = sandbox_command(
                site, index=index, gpu=gpu, visible=visible, scratch_bytes=scratch_bytes, command=python
            )
        else:
            python += [_BOOT.format(str(site.absolute())), *arguments]
            self._scratch = tempfile.TemporaryDirectory(prefix="mlsys-unsafe-", ignore_cleanup_errors=True)
            # One level down: who owns a folder in /tmp could give it another name, and then no process could start.
            Path(self._scratch.name).chmod(0o755)
            scratch = Path(self._scratch.name) / "scratch"
            scratch.mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(scratch, FIRST_SANDBOX_UID + index, FIRST_SANDBOX_UID + index)
            self._command = unsandboxed_command(index=index, gpu=gpu, visible=visible, scratch=scratch, command=python)
        self._index = index
        self._cgroup: MemoryCgroup | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Control | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - what bubblewrap and the fork server complain about
        self._opened: list[SandboxProcess] = []
        self._number = _READY

    def start(self) -> Control:
        """Build the sandbox and wait until its fork server is ready.

        Raises:
            SandboxError: it cannot be built, or is not ready in time.
        """
        self.stop()
        outer, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with inner:
            environment = {"PATH": os.defpath}
            self._cgroup = MemoryCgroup.create(self._index, sandbox_memory_bytes(self.limits))
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
        except ForkServerLost:
            ready = None
        if not ready:
            self.stop()
            raise SandboxError(f"the sandbox did not start: {explain(self._complaint())}")
        return control

    def open(self, entry: str) -> SandboxProcess:
        """Start a process: a fork of the fork server in which a function serves requests.

        Args:
            entry: "module:function" of the site; the function is called with a `Channel`. The fork server imports the
                module, so it must hold no student code.

        Raises:
            ValueError: `MAX_OPEN_PROCESSES` processes are open here, or the module cannot be imported.
            SandboxError: the sandbox cannot be built, or ends at once.
        """
        self._opened = [process for process in self._opened if not process.ended]
        if len(self._opened) >= MAX_OPEN_PROCESSES:
            raise ValueError(f"{len(self._opened)} processes are open in this sandbox: close one first")
        for _ in range(2):
            control = self._control or self.start()
            try:
                process = self._open(entry, control)
            except ForkServerLost:
                self.stop()
            else:
                self._opened.append(process)
                return process
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
        """Stop the sandbox for good, and give back everything that it holds."""
        for process in self._opened:
            process.close()
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

    def _open(self, entry: str, control: Control) -> SandboxProcess:
        self._number += 1
        number = self._number
        with ExitStack() as ours, ExitStack() as theirs:
            connection, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.enter_context(connection)
            theirs.enter_context(inner)
            buffer = SharedBuffer.create(self.limits.buffer_bytes)
            ours.callback(os.close, buffer.descriptor)
            buffer_inner = buffer.open_again()
            theirs.callback(os.close, buffer_inner)
            output, output_inner = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            ours.callback(os.close, output)
            theirs.callback(os.close, output_inner)
            fcntl.fcntl(output, _SET_PIPE_SIZE, self.limits.output_bytes)

            control.tell({"open": number, "entry": entry}, [inner.fileno(), buffer_inner, output_inner])
            answer = control.hear({"opened", "refused"}, number, self.limits.open_s)
            if answer is None:
                raise ForkServerLost
            if "refused" in answer:
                raise ValueError(f"{entry} cannot be opened: {answer['why']}")
            ends = Ends(connection, buffer, output, ours.pop_all())
        wait_for_end, kill = partial(self._wait_for_end, control, number), partial(self._kill, control, number)
        return SandboxProcess(ends, self.limits, wait_for_end, kill)

    def _wait_for_end(self, control: Control, number: int, timeout_s: float) -> Report | None:
        if self._control is not control:  # its sandbox has ended
            return LOST
        try:
            message = control.hear({"ended"}, number, timeout_s)
        except ForkServerLost:
            self.stop()
            return LOST
        return Report(**message["report"]) if message else None

    def _kill(self, control: Control, number: int) -> Report:
        """Kill a process, or the whole sandbox if that is not confirmed in time."""
        if self._control is not control:
            return LOST
        try:
            control.tell({"kill": number})
        except ForkServerLost:
            self.stop()
            return LOST
        report = self._wait_for_end(control, number, self.limits.kill_s)
        if report is None:
            self.stop()
        return report or LOST

    def _complaint(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")[-2000:]
