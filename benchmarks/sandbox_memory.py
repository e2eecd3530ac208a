"""Memory of a worker with its sandbox, watched from outside while it grades."""

import subprocess
import time
from pathlib import Path

from mlsys.judge.sandbox.inside.usage import children_of_all, descendants

EVERY_S = 0.1


def peak_sandbox_bytes(command: list[str]) -> int:
    """The most that one worker process and all below it used together, shared pages divided by their users.

    Workers are children of the server that the command starts; run it as root, or pages of the sandbox's user are out
    of sight.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        children = children_of_all()
        for server in children.get(process.pid, []):
            for worker in children.get(server, []):
                peak = max(peak, sum(_pss_bytes(number) for number in (worker, *descendants(worker))))
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
