"""Whether a process still runs."""

import time
from collections.abc import Collection
from pathlib import Path


def alive(process: int) -> bool:
    """False for one that has ended, also while nobody has asked how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_end(processes: Collection[int], within_s: float) -> None:
    """Return once none of them runs; a failure if one does for longer."""
    deadline_s = time.monotonic() + within_s
    while any(map(alive, processes)):
        assert time.monotonic() < deadline_s, "something outlives its run"
        time.sleep(0.02)
