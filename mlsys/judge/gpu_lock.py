"""GPU lock: questions share a GPU, and a timing has it exclusively.

Each GPU has a lock of its own. Processes that grade on one GPU use the same lock: every question there holds it
together with others, and a timing holds it exclusively. A timing first lets new questions begin, since a GPU that runs
empty for each timing would idle for much of a class. Once as many timings wait as questions run, or `PATIENCE_S` have
passed, it keeps new questions out and waits only for those that already run. Waiting timings run one after the other.
Questions on another GPU are not concerned.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PATIENCE_S = 60.0
"""Longest time for which a timing lets new questions begin, in seconds."""

_LOOK_AGAIN_S = 0.05


class GpuLock:
    """Lock on one GPU, kept as files of a folder; a process that ends releases what it holds.

    Args:
        folder: the same for all that grade on this GPU.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._in_use = -1
        self._is_alone = False

    @classmethod
    def of(cls, uuid: str) -> "GpuLock":
        """Return the lock on the GPU with this UUID, in a folder of this user in the temporary folder."""
        return cls(Path(tempfile.gettempdir()) / f"mlsys-{os.getuid()}-{uuid}")

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the GPU together with other questions."""
        with self._mark("runs"), self._file("use") as self._in_use:
            self._wait_for_timings()
            try:
                yield
            finally:
                self._in_use = -1

    @contextmanager
    def exclusive(self, held_bytes: int = 0) -> Iterator[int]:
        """Hold the GPU exclusively, inside `shared`, once the questions that run now have ended.

        Yields how many bytes of the GPU's memory others may hold that wait for the same, or to go on after it: their
        processes do nothing. A timing inside a question that already has the GPU to itself goes on at once.

        Args:
            held_bytes: what this question may hold, for others to know.
        """
        if self._is_alone:
            yield sum(self._others("waits"))
            return
        with self._mark("waits", held_bytes):
            # A part of the lock, held while waiting for all others to give theirs back, would be a deadlock of two.
            fcntl.flock(self._in_use, fcntl.LOCK_UN)
            try:
                self._wait_for_a_good_time()
                with self._file("timings") as timings:
                    fcntl.flock(timings, fcntl.LOCK_SH)
                    fcntl.flock(self._in_use, fcntl.LOCK_EX)
                    self._is_alone = True
                    try:
                        yield sum(self._others("waits"))
                    finally:
                        self._is_alone = False
                        fcntl.flock(self._in_use, fcntl.LOCK_UN)
            finally:
                self._wait_for_timings()

    def _wait_for_a_good_time(self) -> None:
        """Wait until no more questions run than timings wait, another timing begins, or `PATIENCE_S` have passed."""
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            with self._file("looks") as looks:
                fcntl.flock(looks, fcntl.LOCK_EX)  # who looks must not see the locks of another who looks
                if self._is_timing_under_way():
                    return
                all_questions, waiting = (1 + len(self._others(kind)) for kind in ("runs", "waits"))
                if waiting >= all_questions - waiting:
                    return
            time.sleep(_LOOK_AGAIN_S)

    def _wait_for_timings(self) -> None:
        with self._file("timings") as timings:
            fcntl.flock(timings, fcntl.LOCK_EX)  # behind all timings that wait
            fcntl.flock(self._in_use, fcntl.LOCK_SH)

    @contextmanager
    def _mark(self, kind: str, number: int = 0) -> Iterator[None]:
        """Show others, by a locked file, that this process is one of a kind, and a number."""
        path = self._folder / f"{kind}-{os.getpid()}"
        with self._file(path.name) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.ftruncate(descriptor, 0)  # a process of the same number may have been killed
            os.pwrite(descriptor, f"{number:d}".encode(), 0)
            try:
                yield
            finally:
                path.unlink()

    def _others(self, kind: str) -> list[int]:
        """Return the numbers that all other processes of a kind show."""
        found = []
        for path in self._folder.glob(f"{kind}-*"):
            if path.name == f"{kind}-{os.getpid()}":
                continue
            with suppress(FileNotFoundError), path.open("rb") as file:  # it may just have ended
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    found.append(int(file.read() or 0))  # nothing is in it yet where it has just begun
        return found

    def _is_timing_under_way(self) -> bool:
        """Return whether a timing has begun, or has stopped being patient."""
        with self._file("timings") as timings:
            try:
                fcntl.flock(timings, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    @contextmanager
    def _file(self, name: str) -> Iterator[int]:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with ExitStack() as stack:
            descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, descriptor)
            yield descriptor
