"""The worker's end of the transport: what a function that answers requests is given."""

import socket
from collections.abc import Sequence

from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.sandbox.protocol.shared_buffer import Arena, Tensor
from mlsys.judge.sandbox.protocol.transport import Header, read_message, receive_bytes, write_message


class Channel:
    """Receives requests and replies to them, one at a time."""

    def __init__(self, connection: socket.socket, arena: Arena, limits: Limits) -> None:
        self.connection = connection
        self.arena = arena
        self._limits = limits
        self._nonce = ""

    def receive(self) -> tuple[Header, list[Tensor]]:
        """The next request; its tensors are writable and this process's own.

        Raises:
            EOFError: the judge has closed the question.
        """
        received = receive_bytes(self.connection, self._limits)
        if not received:
            raise EOFError("the judge has closed this question")
        self._nonce, message = read_message(self.arena, received, self._limits)
        return message.header, message.tensors

    def reply(self, header: Header, tensors: Sequence[Tensor] = ()) -> None:
        """Answer the last request.

        Raises:
            ValueError: the header or the tensors are beyond the limits.
            TypeError: the header holds something that JSON cannot say.
        """
        self.connection.send(write_message(self.arena, self._nonce, header, tensors, self._limits))
