"""The first process of a PID namespace, which is ours, and its child, which runs student code.

When the first ends, the kernel kills every process of the namespace; its mounts and what was written there go with it.
"""

import contextlib
import faulthandler
import importlib
import io
import os
import resource
import signal
import socket
import struct
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from mlsys.judge.sandbox.inside import linux
from mlsys.judge.sandbox.inside.seccomp import install_filter
from mlsys.judge.sandbox.protocol.channel import Channel
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.sandbox.protocol.places import SCRATCH
from mlsys.judge.sandbox.protocol.shared_buffer import SharedBuffer

STATUS = struct.Struct("i")
_FIRST_TO_BE_KILLED = "1000"
"""Score by which the kernel kills a process first when the machine has no memory left."""


@dataclass(frozen=True)
class Setup:
    """Arguments of both processes."""

    entry: str
    limits: Limits
    system_call_filter: bytes
    execute_in_scratch: bool


@dataclass(frozen=True)
class Descriptors:
    """Descriptors that the judge has passed in, and the one for the wait status of the student's process."""

    connection: int
    buffer: int
    output: int
    status: int


def run_first_process(setup: Setup, descriptors: Descriptors) -> NoReturn:
    """Build the file system, start the student's process, wait for its end and report it."""
    try:
        os.setsid()  # else kill(0) from inside would reach the fork server's process group
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would lose the CPU time of those it waits for
        if setup.limits.sandboxed:
            linux.mount("proc", "/proc")
            size, files = setup.limits.scratch_bytes, setup.limits.scratch_files
            linux.mount("tmpfs", SCRATCH, f"size={size},nr_inodes={files},mode=0700", setup.execute_in_scratch)
            os.chdir(SCRATCH)
        else:
            linux.die_with_parent()
            linux.adopt_orphans()
            linux.forbid_new_privileges()
            os.chdir(os.environ["TMPDIR"])
        linux.drop_capabilities()
        linux.set_readable_by_others(False)
        student = os.fork()
        if student == 0:
            run_student_process(setup, descriptors)
        for descriptor in (descriptors.connection, descriptors.buffer, descriptors.output):
            os.close(descriptor)
        ended, status = 0, 0
        while ended != student:
            ended, status = os.wait()
        os.write(descriptors.status, STATUS.pack(status))
    except BaseException:
        os.write(descriptors.output, traceback.format_exc().encode())
    finally:
        os._exit(0)


def run_student_process(setup: Setup, descriptors: Descriptors) -> NoReturn:
    """Take on the limits and run the entry function until the judge closes the channel."""
    status = 1
    try:
        if not setup.limits.sandboxed:
            linux.die_with_parent()
        linux.set_readable_by_others(True)  # or its own /proc/self would be closed to it
        connection, buffer = take_descriptors(descriptors)
        set_limits(setup.limits)
        with contextlib.suppress(OSError):  # without a sandbox, /proc may be read-only
            Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_BE_KILLED)
        module, _, function = setup.entry.partition(":")
        serve = getattr(importlib.import_module(module), function)
        limits = setup.limits
        channel = Channel(socket.socket(fileno=connection), SharedBuffer(buffer, limits.buffer_bytes), limits)
        install_filter(setup.system_call_filter)
        with contextlib.suppress(EOFError):
            serve(channel)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status & 0xFF)


def take_descriptors(descriptors: Descriptors) -> tuple[int, int]:
    """Keep standard input (empty), output and error (the pipe), the socket and the shared buffer; close all others."""
    empty = os.open(os.devnull, os.O_RDONLY)
    for kept, target in ((empty, 0), (descriptors.output, 1), (descriptors.output, 2)):
        os.dup2(kept, target)
    low, high = sorted((descriptors.connection, descriptors.buffer))
    os.closerange(3, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = LossyStream(1)
    sys.stderr = LossyStream(2)
    faulthandler.enable(2)
    return descriptors.connection, descriptors.buffer


def set_limits(limits: Limits) -> None:
    """Set the limits that the kernel keeps; hard ones, which only root can raise again."""
    file_bytes = max(limits.scratch_bytes, limits.buffer_bytes)  # the shared buffer is a file too
    for which, soft, hard in (
        (resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1),  # the soft one names its signal, the hard one kills
        (resource.RLIMIT_DATA, limits.data_bytes, limits.data_bytes),
        (resource.RLIMIT_FSIZE, file_bytes, file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes, limits.processes),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
        (resource.RLIMIT_MEMLOCK, limits.locked_bytes, limits.locked_bytes),
        (resource.RLIMIT_SIGPENDING, limits.signals, limits.signals),
    ):
        resource.setrlimit(which, (soft, hard))


class LossyStream(io.TextIOWrapper):
    """A text stream to a pipe that nobody reads meanwhile: what no longer fits is dropped, nothing waits or fails."""

    def __init__(self, descriptor: int) -> None:
        pipe = cast("Any", _LossyPipe(descriptor))  # a buffer between would lose its content in a crash
        super().__init__(pipe, encoding="utf-8", errors="backslashreplace", write_through=True)


class _LossyPipe(io.RawIOBase):
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        with contextlib.suppress(BlockingIOError):
            os.write(self._descriptor, content)
        return memoryview(content).nbytes
