"""Memory of a worker with its sandbox, watched from outside while it grades."""

import subprocess
import time
from collections import defaultdict
from pathlib import Path

EVERY_S = 0.1


def peak_slot_bytes(command: list[str]) -> int:
    """The most that one worker process and all below it used together, shared pages divided by their users.

    A worker is a child of the command that has children of its own; run it as root, or pages of the slot's user are
    out of sight.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        children = _children()
        for worker in children[process.pid]:
            if below := _below(worker, children):
                peak = max(peak, sum(_pss_bytes(number) for number in (worker, *below)))
        time.sleep(EVERY_S)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    return peak


def _pss_bytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            found[parent].append(int(path.name))
    return found


def _below(process: int, children: dict[int, list[int]]) -> list[int]:
    return [found for child in children[process] for found in (child, *_below(child, children))]
