"""The judge's end of the socket to a warm parent."""

import json
import socket
import time
from typing import Any

from mlsys.judge.sandbox.protocol.transport import wait_for_message

_REPORT_BYTES = 64 * 1024


class ParentLost(Exception):
    """The warm parent has ended."""


class Control:
    """Commands to a warm parent and what it tells; it is trusted."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unheard: list[dict[str, Any]] = []

    def tell(self, command: dict[str, Any], descriptors: list[int] | None = None) -> None:
        """Send a command.

        Raises:
            ParentLost: nobody listens.
        """
        try:
            socket.send_fds(self._connection, [json.dumps(command).encode()], descriptors or [])
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ParentLost from error

    def hear(self, what: set[str], number: int, timeout_s: float) -> dict[str, Any] | None:
        """The next message about question `number` that has one of the keys `what`; None when none comes in time.

        Raises:
            ParentLost: the warm parent has ended.
        """
        for earlier in self._unheard:
            if _is_about(earlier, what, number):
                self._unheard.remove(earlier)
                return earlier
        deadline_s = time.monotonic() + timeout_s
        while wait_for_message(self._connection, deadline_s):
            try:
                text = self._connection.recv(_REPORT_BYTES)
            except ConnectionResetError as error:
                raise ParentLost from error
            if not text:
                raise ParentLost
            message: dict[str, Any] = json.loads(text)
            if _is_about(message, what, number):
                return message
            self._unheard.append(message)  # about the other question that runs
        return None

    def close(self) -> None:
        """The warm parent leaves when it sees this."""
        self._connection.close()


def _is_about(message: dict[str, Any], what: set[str], number: int) -> bool:
    return any(message.get(key) == number for key in what)
