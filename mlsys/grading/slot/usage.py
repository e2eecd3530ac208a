"""What the processes of a question use, as /proc shows it."""

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_SECONDS_PER_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_TABLES = "VmPTE:"  # reading far apart from a huge mapping takes nothing else
_RESIDENT = ("RssAnon:", "RssShmem:")
_SHARE_OF_RESIDENT = ("Pss_Anon:", "Pss_Shmem:")
_STATE, _PARENT, _SESSION, _USER_TICKS, _SYSTEM_TICKS = 0, 1, 3, 11, 12  # in /proc/PID/stat after the name
_ENDED = ("Z", "X")


@dataclass(frozen=True)
class Usage:
    """CPU time so far and the largest resident size so far of running processes."""

    cpu_s: float = 0.0
    peak_rss_bytes: int = 0


def usage(processes: list[Path]) -> Usage:
    """Of these processes so far; for those killed with their namespace, the kernel keeps no sum."""
    ticks = 0
    for process in processes:
        fields = _fields(process)
        ticks += sum(int(field) for field in fields[_USER_TICKS : _SYSTEM_TICKS + 1])
    peak = max((_sum_bytes(process / "status", ("VmHWM:",)) for process in processes), default=0)
    return Usage(ticks * _SECONDS_PER_TICK, peak)


def memory_bytes(processes: list[Path], limit_bytes: int) -> int:
    """Memory that the processes use together: exact above the limit, at most too high below it.

    Each process counts as its own what it still shares with the one it was forked from, so the sum of resident sizes
    is an upper bound, and quick to get. The exact sum divides shared pages by their users; for it the kernel walks all
    pages, some milliseconds for each process.
    """
    bound = sum(_sum_bytes(process / "status", (*_RESIDENT, _PAGE_TABLES)) for process in processes)
    return bound if bound <= limit_bytes else sum(map(_exact_bytes, processes))


def processes_below(ancestor: int) -> list[Path]:
    """The folders in /proc of the descendants of a process.

    The first process of a PID namespace has all others of it below itself: it adopts those whose parent has ended.
    """
    return [_PROC / str(process) for process in descendants(ancestor)]


def descendants(ancestor: int) -> list[int]:
    """The numbers of the descendants of a process, generation after generation."""
    children, found = children_of_all(), [ancestor]
    for process in found:
        found += children.get(process, [])
    return found[1:]


def children_of_all() -> dict[int, list[int]]:
    """The numbers of all processes, by that of their parent."""
    children: dict[int, list[int]] = {}
    for path in _all_processes():
        if fields := _fields(path):
            children.setdefault(int(fields[_PARENT]), []).append(int(path.name))
    return children


def processes_of_session(leader: int) -> list[Path]:
    """The folders in /proc of the processes of one session that still run, its first one left out."""
    return [path for path in _all_processes() if path.name != str(leader) and _runs_in_session(path, str(leader))]


def _all_processes() -> list[Path]:
    return [path for path in _PROC.iterdir() if path.name.isdecimal()]


def _runs_in_session(process: Path, leader: str) -> bool:
    fields = _fields(process)
    return bool(fields) and fields[_SESSION] == leader and fields[_STATE] not in _ENDED


def _fields(process: Path) -> list[str]:
    """What /proc/PID/stat says after the process's name; nothing if it has ended."""
    return _read(process / "stat").rpartition(")")[2].split()


def _exact_bytes(process: Path) -> int:
    share = _sum_bytes(process / "smaps_rollup", _SHARE_OF_RESIDENT)
    # A process can close its list of pages to us, but not its status.
    return (share or _sum_bytes(process / "status", _RESIDENT)) + _sum_bytes(process / "status", (_PAGE_TABLES,))


def _sum_bytes(path: Path, fields: tuple[str, ...]) -> int:
    lines = [line for line in _read(path).splitlines() if line.startswith(fields)]
    return sum(int(line.split()[1]) * 1024 for line in lines)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended, or it is closed to us
        return ""
