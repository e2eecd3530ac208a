"""Check a tile schedule that a student returns as integers, by replaying it."""

from functools import lru_cache

from mlsys.core.dtypes import bytes_per_element
from mlsys.grading.checks.assertions import shown
from mlsys.grading.verdicts import WrongAnswer
from mlsys.traffic import best_schedule, tiled_matmul

MAX_TRAFFIC_RATIO = 1.1
"""Largest ratio of the bytes that a schedule moves to those of the best one known."""
MAX_STEPS = 1_000_000
"""Most steps of a replay, at about 2 us each; good schedules of products up to 300 a side take 0.2 million."""


@lru_cache(maxsize=1000)  # a class has few answers, and a replay takes longer than the rest of the test
def _bytes_moved(m: int, n: int, k: int, tiles: tuple[int, int, int], memory_bytes: int, dtype: str) -> int:
    return tiled_matmul(m, n, k, *tiles, memory_bytes=memory_bytes, dtype=dtype).total_bytes


@lru_cache(maxsize=1000)
def _least_bytes(m: int, n: int, k: int, memory_bytes: int, dtype: str) -> int:
    return best_schedule(m, n, k, memory_bytes=memory_bytes, dtype=dtype).traffic.total_bytes


def assert_schedule(tiles: object, m: int, n: int, k: int, memory_bytes: int, dtype: str = "fp32") -> None:
    """Raise `WrongAnswer` unless `tiles` fit the memory and move no more than `MAX_TRAFFIC_RATIO` allows.

    Args:
        tiles: (tile_m, tile_n, tile_k), what the student's function returned.
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        memory_bytes: size of the near memory.
        dtype: format of all three matrices.
    """
    problem = f"m={m}, n={n}, k={k} in {memory_bytes:,} bytes"
    if not isinstance(tiles, tuple | list) or len(tiles) != 3 or any(type(tile) is not int for tile in tiles):
        raise WrongAnswer(f"{problem}: return three ints (tile_m, tile_n, tile_k), got {shown(tiles)}")
    tile_m, tile_n, tile_k = tiles
    if min(tiles) < 1:
        raise WrongAnswer(f"{problem}: every tile size must be 1 or more, got {tiles}")
    tile_m, tile_n, tile_k = min(tile_m, m), min(tile_n, n), min(tile_k, k)
    parts = {"A": tile_m * tile_k, "B": tile_k * tile_n, "C": tile_m * tile_n}
    parts = {name: int(bytes_per_element(dtype)) * elements for name, elements in parts.items()}
    needed = sum(parts.values())
    if needed > memory_bytes:
        listed = ", ".join(f"{name} {size:,}" for name, size in parts.items())
        raise WrongAnswer(f"{problem}: tiles {tiles} do not fit; they take {needed:,} bytes ({listed})")
    steps = -(-m // tile_m) * -(-n // tile_n) * -(-k // tile_k)
    if steps > MAX_STEPS:
        raise WrongAnswer(
            f"{problem}: tiles {tiles} make {steps:,} steps, and a replay stops at {MAX_STEPS:,}. "
            "A larger tile of C moves fewer bytes in fewer steps."
        )
    moved = _bytes_moved(m, n, k, (tile_m, tile_n, tile_k), memory_bytes, dtype)
    least = _least_bytes(m, n, k, memory_bytes, dtype)
    if moved > MAX_TRAFFIC_RATIO * least:
        passes = f"A is read {-(-n // tile_n)} times and B {-(-m // tile_m)} times"
        share = parts["C"] / memory_bytes
        raise WrongAnswer(
            f"{problem}: tiles {tiles} move {moved:,} bytes, {moved / least:.2f} times the best known; the limit is "
            f"{MAX_TRAFFIC_RATIO} times. {passes}, and the tile of C fills {share:.0%} of the memory."
        )
