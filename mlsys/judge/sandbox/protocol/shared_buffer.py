"""The memory file through which tensors travel between the judge and a sandboxed process."""

import fcntl
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[Any]

DTYPES = {
    dtype.name: dtype
    for dtype in map(np.dtype, ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"))
}
_ALIGNMENT = 64
MAX_DIMENSIONS = 5
"""Most dimensions of a transferred tensor: torch prints all of one with many short sides, and no lab needs more."""


class Tampered(Exception):
    """A message that no honest process sends."""


@dataclass(frozen=True)
class Place:
    """The place of a tensor in the shared buffer: dtype, shape, offset in bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, described: object) -> "Place":
        """Read a place from a message.

        Raises:
            Tampered: it is not the name of a dtype, a shape and an offset.
        """
        match described:
            case [str(name), list(shape), int(offset)] if name in DTYPES and len(shape) <= MAX_DIMENSIONS:
                if all(type(number) is int and number >= 0 for number in (*shape, offset)):
                    return cls(DTYPES[name], tuple(shape), offset)
        raise Tampered(f"not a tensor's dtype, shape and offset: {str(described)[:200]}")

    @property
    def nbytes(self) -> int:
        """Size of the tensor."""
        return math.prod(self.shape) * self.dtype.itemsize


class SharedBuffer:
    """A memory file for the tensors of one message at a time, shared by the judge and one sandboxed process.

    It is read and written by system calls, never mapped, and sealed: no change of its size can harm the other side.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.size = size

    @classmethod
    def create(cls, size: int) -> "SharedBuffer":
        """Make a buffer of `size` zero bytes; memory is taken only where it is written."""
        descriptor = os.memfd_create("shared-buffer", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return cls(descriptor, size)

    def open_again(self) -> int:
        """Open the buffer again for the other side: O_APPEND on a descriptor that is shared would move our writes."""
        return os.open(f"/proc/self/fd/{self.descriptor}", os.O_RDWR | os.O_CLOEXEC)

    def write(self, tensors: Sequence[Tensor]) -> list[list[Any]]:
        """Write tensors into the buffer and return where each is, as `Place.of` reads it.

        Raises:
            ValueError: a dtype that cannot be sent, or too many bytes.
        """
        described: list[list[Any]] = []
        offset = 0
        for tensor in tensors:
            if tensor.dtype.name not in DTYPES:
                raise ValueError(f"a tensor of {tensor.dtype} cannot be sent; known: {', '.join(DTYPES)}")
            if offset + tensor.nbytes > self.size:
                raise ValueError(f"{offset + tensor.nbytes} bytes of tensors in one message; the limit is {self.size}")
            _write_all(self.descriptor, tensor, offset)
            described.append([tensor.dtype.name, list(tensor.shape), offset])
            offset += -(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT
        return described

    def read(self, described: Sequence[object]) -> list[Tensor]:
        """Copy the tensors that a message describes.

        Raises:
            Tampered: a description is none, points outside the shared buffer, or all are together larger than it.
        """
        places = [Place.of(one) for one in described]
        total = sum(place.nbytes for place in places)
        if total > self.size:
            raise Tampered(f"{total} bytes of tensors in one message; the limit is {self.size}")
        return [self._copy(place) for place in places]

    def _copy(self, place: Place) -> Tensor:
        if place.offset + place.nbytes > self.size:
            raise Tampered(f"{place.nbytes} bytes at {place.offset} lie outside the shared buffer of {self.size}")
        content = np.empty(place.nbytes, np.uint8)
        _read_all(self.descriptor, content, place.offset)
        if place.dtype == np.bool_:
            content = (content != 0).view(np.uint8)  # any other byte makes NumPy's booleans misbehave
        try:
            return content.view(place.dtype).reshape(place.shape)
        except ValueError as error:  # an empty tensor whose other sides are too long to multiply
            raise Tampered(f"no tensor has the shape {place.shape}") from error


def _write_all(descriptor: int, tensor: Tensor, offset: int) -> None:
    rest = np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written


def _read_all(descriptor: int, content: NDArray[np.uint8], offset: int) -> None:
    rest = content.data
    while rest:
        count = os.preadv(descriptor, [rest], offset)
        if count == 0:
            raise Tampered("the shared buffer ended early")
        rest, offset = rest[count:], offset + count
