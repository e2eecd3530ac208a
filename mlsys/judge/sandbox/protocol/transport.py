"""Transport of messages: a short JSON header over a socket, tensors through the shared buffer.

Nothing that arrives is trusted. A header is limited in length, depth and size of integers, tensors are copied before
anything looks at them, and a reply carries the nonce of its request, so that one sent early answers nothing. Whatever
breaks these rules raises `Tampered`.
"""

import json
import re
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.sandbox.protocol.shared_buffer import SharedBuffer, Tampered, Tensor

Header = dict[str, Any]

_MAX_DIGITS = 20  # any 64-bit integer with its sign
_ENVELOPE_DEPTH = 3  # a message adds itself, its list of tensors, and each one's shape
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)  # possessive and open-ended: never tries a second time
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


@dataclass(frozen=True)
class Received:
    """A header and the tensors that came with it; both belong to the receiver alone."""

    header: Header
    tensors: list[Tensor]


def write_message(buffer: SharedBuffer, nonce: str, header: Header, tensors: Sequence[Tensor], limits: Limits) -> bytes:
    """Put the tensors into the shared buffer and make the message for the socket.

    Raises:
        ValueError: the header or the tensors are beyond the limits.
        TypeError: the header holds something that JSON cannot say.
    """
    if len(tensors) > limits.tensors:
        raise ValueError(f"{len(tensors)} tensors in one message; the limit is {limits.tensors}")
    message = {"nonce": nonce, "tensors": buffer.write(tensors), "header": header}
    written = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    try:
        parse_json(written, limits)
    except Tampered as error:
        raise ValueError(f"this message cannot be sent: {error}") from error
    return written


def read_message(
    buffer: SharedBuffer, received: bytes, limits: Limits, nonce: str | None = None
) -> tuple[str, Received]:
    """Read a message and return its nonce and content.

    Args:
        buffer: where its tensors are.
        received: the bytes from the socket.
        limits: what it may hold.
        nonce: that of the request, if this must answer one.

    Raises:
        Tampered: it breaks a rule.
    """
    match parse_json(received, limits):
        case {"nonce": str(carried), "tensors": list(described), "header": dict(header), **others} if not others:
            pass
        case _:
            raise Tampered("a message that is not a nonce, tensors and a header")
    if nonce is not None and carried != nonce:
        raise Tampered("a message that answers another request")
    if len(described) > limits.tensors:
        raise Tampered(f"{len(described)} tensors in one message; the limit is {limits.tensors}")
    return carried, Received(header, buffer.read(described))


def parse_json(text: bytes, limits: Limits) -> object:
    """Parse JSON of limited length, depth and integers.

    Raises:
        Tampered: it is beyond a limit, or not JSON.
    """
    if len(text) > limits.header_bytes:
        raise Tampered(f"a message of {len(text)} bytes without its tensors; the limit is {limits.header_bytes}")
    depth = nesting(text)
    if depth > limits.header_depth + _ENVELOPE_DEPTH:
        raise Tampered(f"a message nested {depth} deep; the limit is {limits.header_depth}")
    try:
        value: object = json.loads(text.decode("utf-8"), parse_int=_parse_int)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # fails on half a surrogate pair, which no file can hold
    except ValueError as error:
        raise Tampered(f"a message that is not JSON: {error}") from error
    return value


def nesting(text: bytes) -> int:
    """Return how deep the lists and dicts of a JSON text are nested.

    >>> nesting(b'{"a": [[1], "[[[["]}')
    3
    """
    depth = deepest = 0
    for bracket in _STRING.sub(b"", text).translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def wait_for_message(connection: socket.socket, deadline_s: float) -> bool:
    """Wait until a point of the monotonic clock for a message or the closing of the other side; False if none comes."""
    poll = select.poll()  # unlike select it takes descriptors above 1023
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(max(deadline_s - time.monotonic(), 0) * 1000))


def receive_bytes(connection: socket.socket, limits: Limits) -> bytes:
    """Receive one message from a socket; empty when the other side is closed.

    Raises:
        Tampered: it is too long, or came with descriptors; the kernel has dropped those.
    """
    received, _, flags, _ = connection.recvmsg(limits.header_bytes)
    if flags & socket.MSG_TRUNC:
        raise Tampered(f"a message longer than {limits.header_bytes} bytes")
    if flags & socket.MSG_CTRUNC:
        raise Tampered("a message with descriptors attached")
    return received


def _parse_int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"an integer of {len(text)} digits; the limit is {_MAX_DIGITS}")
    return int(text)
