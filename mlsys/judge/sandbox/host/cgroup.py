"""A memory cgroup around each sandbox, where this user may make one, for memory that /proc does not show.

It is a second line behind the watchdog, which ends a process for its memory and says so.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_JOIN = 'echo $$ > "$0" && exec "$@"'
_PREFIX = "mlsys-sandbox"
_LIMITS_V1 = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")  # the second with swap, where that is counted
_LIMITS_V2 = ("memory.max",)


@dataclass(frozen=True)
class MemoryCgroup:
    """A cgroup of its own for the processes of one sandbox."""

    folder: Path

    @classmethod
    def create(cls, index: int, limit_bytes: int) -> "MemoryCgroup | None":
        """Make a cgroup for sandbox `index` of this process; None where that is not possible.

        Whether it is depends on the kernel, the container and the user, so this tries to enter it.
        """
        parent = _parent()
        if parent is None:
            return None
        cgroup = cls(parent / f"{_PREFIX}-{os.getpid()}-{index}-{time.monotonic_ns()}")
        try:
            _remove_left_over(parent)
            cgroup.folder.mkdir()
        except OSError:
            return None
        try:
            for name in _limit_files(cgroup.folder):
                (cgroup.folder / name).write_text(str(limit_bytes))
            subprocess.run(cgroup.command(["true"]), check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            cgroup.folder.rmdir()
            return None
        return cgroup

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs another one inside the cgroup."""
        return ["/bin/sh", "-c", _JOIN, str(self.folder / "cgroup.procs"), *command]

    def remove(self, within_s: float) -> None:
        """Remove the cgroup once its processes have ended; a later grader of this user removes one that is left."""
        until_s = time.monotonic() + within_s
        while True:
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > until_s:
                    return
                time.sleep(0.005)
            else:
                return


def _parent() -> Path | None:
    """Return the folder in which this process can make a cgroup that limits memory; None if there is none."""
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, options, *_ = line.split()
        if kind == "cgroup" and "memory" in options.split(","):
            folder = Path(point + next((path for names, path in own.items() if "memory" in names.split(",")), ""))
            if folder.is_dir():
                return folder
        elif kind == "cgroup2" and "" in own:
            # Version 2 has processes in leaves only: beside our own cgroup, not below it.
            folder = Path(point + own[""].rstrip("/"))
            folder = folder.parent if folder != Path(point) else folder
            with contextlib.suppress(OSError):
                if "memory" in (folder / "cgroup.subtree_control").read_text().split():
                    return folder
    return None


def _limit_files(folder: Path) -> list[str]:
    names = _LIMITS_V2 if (folder / _LIMITS_V2[0]).exists() else _LIMITS_V1
    return [name for name in names if (folder / name).exists()]


def _remove_left_over(parent: Path) -> None:
    """Remove the cgroups of processes that were killed."""
    for folder in parent.glob(f"{_PREFIX}-*"):
        if not Path("/proc", folder.name.removeprefix(f"{_PREFIX}-").split("-")[0]).exists():
            with contextlib.suppress(OSError):  # something still ends in there
                folder.rmdir()
