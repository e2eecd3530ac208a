"""How often shared memory must be read for one load of a warp: banks, and conflicts between lanes.

Shared memory is divided into 32 banks. Successive words of four bytes are in successive banks, and each bank delivers
one word per clock. Lanes that need different words of one bank are served one after the other; lanes that need the same
word are served together (NVIDIA, CUDA C++ Best Practices Guide, "Shared Memory and Memory Banks").

>>> [bank_passes(stride * lane for lane in range(32)) for stride in (1, 2, 32, 33, 0)]
[1, 2, 32, 1, 1]
"""

from collections import defaultdict
from collections.abc import Iterable

from mlsys.core.arguments import non_negative_int, positive_int
from mlsys.errors import InvalidValue
from mlsys.traffic.coalescing import WARP_LANES

BANKS = 32
"""Banks of the shared memory of an SM."""
WORD_BYTES = 4
"""Bytes that a bank delivers per clock."""


def bank_passes(words: Iterable[int], *, banks: int = BANKS) -> int:
    """Return how many passes one load or store of a warp takes: the most different words that one bank must deliver.

    Args:
        words: For each active lane, the number of its word: its byte address in shared memory divided by four.
        banks: Banks of the memory.

    Raises:
        InvalidValue: No lanes or more than 32, or a word that is negative or not an integer.
    """
    needed = [non_negative_int("word", word) for word in words]
    if not 1 <= len(needed) <= WARP_LANES:
        raise InvalidValue(f"a warp has 1 to {WARP_LANES} active lanes, got {len(needed)} words; split them up")
    count = positive_int("banks", banks)
    in_bank: defaultdict[int, set[int]] = defaultdict(set)
    for word in needed:
        in_bank[word % count].add(word)
    return max(len(different) for different in in_bank.values())
