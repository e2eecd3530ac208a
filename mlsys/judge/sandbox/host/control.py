"""The judge's end of the socket to a sandbox's fork server."""

import json
import socket
import time
from typing import Any

from mlsys.judge.sandbox.protocol.transport import wait_for_message

_REPORT_BYTES = 64 * 1024


class ForkServerLost(Exception):
    """The fork server has ended."""


class Control:
    """Commands to a fork server, and its reports; it is trusted."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unheard: list[dict[str, Any]] = []

    def tell(self, command: dict[str, Any], descriptors: list[int] | None = None) -> None:
        """Send a command.

        Raises:
            ForkServerLost: nobody listens.
        """
        try:
            socket.send_fds(self._connection, [json.dumps(command).encode()], descriptors or [])
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ForkServerLost from error

    def hear(self, what: set[str], number: int, timeout_s: float) -> dict[str, Any] | None:
        """Wait for the next report on process `number` that has one of the keys `what`; None when none comes in time.

        Raises:
            ForkServerLost: the fork server has ended.
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
                raise ForkServerLost from error
            if not text:
                raise ForkServerLost
            message: dict[str, Any] = json.loads(text)
            if _is_about(message, what, number):
                return message
            self._unheard.append(message)  # about another process
        return None

    def close(self) -> None:
        """Close the socket; the fork server then leaves."""
        self._connection.close()


def _is_about(message: dict[str, Any], what: set[str], number: int) -> bool:
    return any(message.get(key) == number for key in what)
