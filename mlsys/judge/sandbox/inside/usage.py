"""CPU time and memory of the processes of a question, as /proc shows them.

Sums are over all processes of a question, the ended ones too. Nothing that student code does to its own processes may
make a sum too small: threads that have ended, processes that nobody waits for, pages that lie in swap.
"""

import os
from pathlib import Path

_PROC = Path("/proc")
_SECONDS_PER_TICK = 1 / os.sysconf("SC_CLK_TCK")
_STATE, _PARENT = 0, 1  # in /proc/PID/stat after the name
_TICKS = slice(11, 15)  # user and system time of the process, then of the children that it has waited for
_ENDED = ("Z", "X")

_HAS_MEMORY = "RssAnon:"
_RESIDENT = (_HAS_MEMORY, "RssShmem:")
# Reading far apart from a huge mapping takes page tables alone.
_NOT_SHARED = ("VmPTE:", "VmSwap:", "HugetlbPages:")
_SHARE_OF_RESIDENT = ("Pss_Anon:", "Pss_Shmem:")
_TRIES = 20
_HIDDEN_BYTES = 1 << 60


def cpu_s(first: int, below: list[Path]) -> float:
    """Return the CPU time so far of all processes below `first` and its own, the ended ones too.

    Whoever waits for a process takes over its time, and the first process adopts and awaits all whose parent has ended.
    The system-call filter keeps everybody from having children that nobody waits for. So all time is that of a process
    which can be seen, or has gone to its parent. Parents are read before their children: what passes to a parent
    meanwhile is missed until the next look, and never counted twice.

    Args:
        first: number of the question's first process.
        below: the folders in /proc of its descendants, generation after generation.
    """
    return _SECONDS_PER_TICK * sum(sum(map(int, _fields(process)[_TICKS])) for process in (_PROC / str(first), *below))


def peak_rss_bytes(processes: list[Path]) -> int:
    """Return the largest resident size so far of one of the processes."""
    return max((_sum_bytes(_memory_status(process), ("VmHWM:",)) for process in processes), default=0)


def waited_for_cpu_s(processes: list[Path]) -> float:
    """Return the longest time that one thread was ready to run while other threads had the CPUs.

    Not the sum over threads: sixty of one question that wait for each other are no sign of a neighbor's load.
    Zero where the kernel does not count it.
    """
    tasks = [task for process in processes for task in _tasks(process)]
    waits = (_read(task / "schedstat").split() for task in tasks)
    return max((int(fields[1]) / 1e9 for fields in waits if fields), default=0.0)


def memory_bytes(processes: list[Path], limit_bytes: int) -> int:
    """Return the memory that processes use together: exact above the limit, at most too high below it.

    Each process counts as its own what it still shares with the one it was forked from, so the sum of resident sizes
    is an upper bound, and quick to get. The exact sum divides shared pages by their users; for it the kernel walks all
    pages, some milliseconds for each process. A process that runs and cannot be read counts as above any limit.
    """
    bound = sum(_sum_bytes(_memory_status(process), (*_RESIDENT, *_NOT_SHARED)) for process in processes)
    return bound if bound <= limit_bytes else sum(map(_exact_bytes, processes))


def available_bytes() -> int:
    """Return the memory that the whole machine can still give to programs."""
    return _sum_bytes(_read(_PROC / "meminfo"), ("MemAvailable:",))


def processes_below(ancestor: int) -> list[Path]:
    """Return the folders in /proc of the descendants of a process.

    The first process of a question has all others of it below itself: it adopts those whose parent has ended.
    """
    return [_PROC / str(process) for process in descendants(ancestor)]


def descendants(ancestor: int) -> list[int]:
    """Return the numbers of the descendants of a process, generation after generation."""
    children, found = children_of_all(), [ancestor]
    for process in found:
        found += children.get(process, [])
    return found[1:]


def children_of_all() -> dict[int, list[int]]:
    """Return the numbers of all processes, by that of their parent."""
    children: dict[int, list[int]] = {}
    for path in _numbered(_PROC):
        if fields := _fields(path):
            children.setdefault(int(fields[_PARENT]), []).append(int(path.name))
    return children


def _numbered(folder: Path) -> list[Path]:
    return [folder / name for name in os.listdir(folder) if name.isdecimal()]  # noqa: PTH208 - a third of the time


def _tasks(process: Path) -> list[Path]:
    try:
        return _numbered(process / "task")
    except OSError:  # it has ended
        return []


def _fields(process: Path) -> list[str]:
    """Return what /proc/PID/stat says after the process's name; nothing if it has ended."""
    return _read(process / "stat").rpartition(")")[2].split()


def _memory_status(process: Path) -> str:
    """Return the status of a thread that tells the memory of its process; nothing for a process without memory.

    The first thread can end and leave the memory to others, and those can hand it on faster than they can be read.
    """
    for _ in range(_TRIES):
        text = _read(process / "status")
        if _HAS_MEMORY in text:
            return text
        if not process.exists():
            return ""
        others = [_read(task / "status") for task in _tasks(process) if task.name != process.name]
        for other in others:
            if _HAS_MEMORY in other:
                return other
        if text and all(others):  # it has given its memory back and is about to end, or has ended
            return ""
    return f"{_HAS_MEMORY} {_HIDDEN_BYTES >> 10} kB"


def _exact_bytes(process: Path) -> int:
    status = _memory_status(process)
    share = _sum_bytes(_read(process / "smaps_rollup"), _SHARE_OF_RESIDENT)
    # A process can close its list of pages to us, but not its status; without its first thread it has no list.
    return (share or _sum_bytes(status, _RESIDENT)) + _sum_bytes(status, _NOT_SHARED)


def _sum_bytes(text: str, fields: tuple[str, ...]) -> int:
    lines = [line for line in text.splitlines() if line.startswith(fields)]
    return sum(int(line.split()[1]) * 1024 for line in lines)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended, or it is closed to us
        return ""
