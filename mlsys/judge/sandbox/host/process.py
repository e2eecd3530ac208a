"""One process in a sandbox, as the judge sees it: requests to it, and its end."""

import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from mlsys.judge.sandbox.protocol.ending import Ending, Kind, ProcessEnded, Report
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.sandbox.protocol.shared_buffer import SharedBuffer, Tampered, Tensor
from mlsys.judge.sandbox.protocol.transport import (
    Header,
    Received,
    read_message,
    receive_bytes,
    wait_for_message,
    write_message,
)


@dataclass(frozen=True)
class Ends:
    """The judge's ends of what it shares with a sandboxed process; `closing` closes them."""

    connection: socket.socket
    buffer: SharedBuffer
    output: int
    closing: ExitStack


class SandboxProcess:
    """A process in a sandbox, with everything that it starts; `Sandbox.open` makes it.

    After it has ended, for whatever reason, every request raises the error that the first one raised.
    """

    def __init__(
        self,
        ends: Ends,
        limits: Limits,
        wait_for_end: Callable[[float], Report | None],
        kill: Callable[[], Report],
    ) -> None:
        self._ends = ends
        self._limits = limits
        self._wait_for_end = wait_for_end
        self._kill = kill
        self._deadline_s = time.monotonic() + limits.wall_s
        self._failure: Tampered | ProcessEnded | None = None
        self._ending: Ending | None = None

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self._ending is not None

    def allow(self, seconds: float) -> None:
        """Give the process more wall time, after it has waited for something that is not its own doing."""
        self._deadline_s += seconds

    def request(self, header: Header, tensors: Sequence[Tensor] = (), timeout_s: float | None = None) -> Received:
        """Send a request and wait for its reply.

        Args:
            header: anything that JSON can say.
            tensors: arrays of any strides; they arrive contiguous.
            timeout_s: for this request, within what is left of the process's wall time.

        Raises:
            Tampered: the reply breaks a rule of the transport; the process is killed.
            ProcessEnded: it crashed, left, or ran out of time or memory; its `ending` says which.
            ValueError: this request is beyond the limits; the process goes on.
        """
        if self._failure:
            raise self._failure
        if self._ending:
            raise ProcessEnded(self._ending)
        nonce = secrets.token_hex(16)
        message = write_message(self._ends.buffer, nonce, header, tensors, self._limits)
        deadline_s = min(self._deadline_s, time.monotonic() + (self._limits.wall_s if timeout_s is None else timeout_s))
        try:
            received = self._exchange(message, deadline_s)
            return read_message(self._ends.buffer, received, self._limits, nonce)[1]
        except Tampered as error:
            self._failure = error
            self._finish("tampered", self._kill())
            raise
        except ProcessEnded as error:
            self._failure = error
            raise

    def close(self) -> Ending:
        """Tell the process to leave, kill it if it does not, and return how it ended."""
        if self._ending:
            return self._ending
        with contextlib.suppress(OSError):  # it may have left already
            self._ends.connection.shutdown(socket.SHUT_RDWR)
        report = self._wait_for_end(self._limits.close_s)
        return self._finish(None, report) if report else self._finish("killed", self._kill())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _exchange(self, message: bytes, deadline_s: float) -> bytes:
        connection = self._ends.connection
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a closed end shows in what is received
            connection.send(message)
        if not wait_for_message(connection, deadline_s):
            raise ProcessEnded(self._finish("timed out", self._kill()))
        with contextlib.suppress(ConnectionResetError):
            received = receive_bytes(connection, self._limits)
            if received:
                return received
        report = self._wait_for_end(self._limits.kill_s)
        if report is None:
            raise Tampered("it closed its connection and runs on")
        raise ProcessEnded(self._finish(None, report))

    def _finish(self, reason: Kind | None, report: Report) -> Ending:
        output = b""
        with contextlib.suppress(BlockingIOError):  # a lost sandbox's pipe may still be open elsewhere
            output = os.read(self._ends.output, self._limits.output_bytes)
        self._ends.closing.close()
        self._ending = Ending.of(report, reason, output.decode("utf-8", "replace"), self._limits)
        return self._ending
