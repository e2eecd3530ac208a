"""A ring all-reduce that really moves chunks between neighbors, step by step."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.errors import InvalidValue


@dataclass(frozen=True)
class Transfer:
    """One chunk that went from a rank to its right neighbor.

    Attributes:
        step: 0 up to 2 (n - 1) - 1; the second half only gathers.
        sender: rank that sent.
        receiver: its right neighbor.
        chunk: index of the chunk.
        nbytes: size of the chunk.
    """

    step: int
    sender: int
    receiver: int
    chunk: int
    nbytes: int


@dataclass(frozen=True)
class RingRun:
    """What a simulated all-reduce left behind.

    Attributes:
        buffers: every rank's result.
        transfers: all that was sent, in order.
    """

    buffers: tuple[NDArray[Any], ...]
    transfers: tuple[Transfer, ...]

    @property
    def bytes_sent(self) -> tuple[int, ...]:
        """Bytes that each rank sent."""
        sent: Counter[int] = Counter()
        for transfer in self.transfers:
            sent[transfer.sender] += transfer.nbytes
        return tuple(sent[rank] for rank in range(len(self.buffers)))

    @property
    def bytes_in_turn(self) -> int:
        """Largest chunk of each step, summed: divided by the bandwidth, the time in which the links are busy."""
        largest: dict[int, int] = {}
        for transfer in self.transfers:
            largest[transfer.step] = max(largest.get(transfer.step, 0), transfer.nbytes)
        return sum(largest.values())


def ring_all_reduce(buffers: Sequence[NDArray[Any]]) -> RingRun:
    """Sum one vector per rank so that every rank holds the sum, by passing chunks around a ring.

    Each vector is cut into n chunks. For n - 1 steps every rank sends a chunk to the right, which adds it to its own:
    each rank then holds one finished chunk. For n - 1 more steps the finished chunks go round. When n divides the
    vectors, each rank sends 2 (n - 1) / n of its bytes.
    Source: Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations, JPDC 2009.

    Args:
        buffers: a vector for each rank, all of one length and dtype; they are left as they are.

    Raises:
        InvalidValue: if there is no vector, or they differ in shape or dtype.

    >>> import numpy as np
    >>> run = ring_all_reduce([np.arange(4) + 10 * rank for rank in range(4)])
    >>> run.buffers[0].tolist(), [sent // 8 for sent in run.bytes_sent]
    ([60, 64, 68, 72], [6, 6, 6, 6])
    """
    n = len(buffers)
    if n == 0 or any(b.ndim != 1 or b.shape != buffers[0].shape or b.dtype != buffers[0].dtype for b in buffers):
        raise InvalidValue("give one vector per rank, all of one length and dtype")
    memory = [[chunk.copy() for chunk in np.array_split(buffer, n)] for buffer in buffers]
    transfers: list[Transfer] = []
    for step in range(2 * (n - 1)):
        reducing = step < n - 1
        # All ranks send at once: what is received was read before anything of this step was written.
        chunks = [(rank - step if reducing else rank + 1 - (step - n + 1)) % n for rank in range(n)]
        in_flight = [memory[rank][chunk].copy() for rank, chunk in enumerate(chunks)]
        for sender, (chunk, payload) in enumerate(zip(chunks, in_flight, strict=True)):
            receiver = (sender + 1) % n
            memory[receiver][chunk] = memory[receiver][chunk] + payload if reducing else payload
            transfers.append(Transfer(step, sender, receiver, chunk, payload.nbytes))
    return RingRun(tuple(np.concatenate(chunks) for chunks in memory), tuple(transfers))
