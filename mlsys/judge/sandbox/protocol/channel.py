"""The sandboxed process's end of the transport."""

import socket
from collections.abc import Sequence

from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.sandbox.protocol.shared_buffer import SharedBuffer, Tensor
from mlsys.judge.sandbox.protocol.transport import Header, read_message, receive_bytes, write_message


class Channel:
    """A channel on which a process receives requests and replies to them, one at a time."""

    def __init__(self, connection: socket.socket, buffer: SharedBuffer, limits: Limits) -> None:
        self.connection = connection
        self.buffer = buffer
        self._limits = limits
        self._nonce = ""

    def receive(self) -> tuple[Header, list[Tensor]]:
        """Wait for the next request and return it; its tensors are writable and this process's own.

        Raises:
            EOFError: the judge has closed the process.
        """
        received = receive_bytes(self.connection, self._limits)
        if not received:
            raise EOFError("the judge has closed this process")
        self._nonce, message = read_message(self.buffer, received, self._limits)
        return message.header, message.tensors

    def reply(self, header: Header, tensors: Sequence[Tensor] = ()) -> None:
        """Answer the last request.

        Raises:
            ValueError: the header or the tensors are beyond the limits.
            TypeError: the header holds something that JSON cannot say.
        """
        self.connection.send(write_message(self.buffer, self._nonce, header, tensors, self._limits))
