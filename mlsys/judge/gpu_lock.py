"""GPU lock: questions share a GPU, and a timing has it exclusively.

Each GPU has a lock of its own. Processes that grade on one GPU use the same lock: every question there holds it
together with others, and a timing holds it exclusively. A waiting timing keeps new questions out, so that it waits only
for questions that already run, and waiting timings run one after the other. Questions on another GPU are not concerned.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


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
        with self._file("use") as self._in_use:
            self._wait_for_timings()
            try:
                yield
            finally:
                self._in_use = -1

    @contextmanager
    def exclusive(self) -> Iterator[int]:
        """Hold the GPU exclusively, inside `shared`, once the questions that run now have ended.

        Yields how many others wait for that, or to go on after it: their processes do nothing, but hold memory of the
        GPU. A timing inside a question that already has the GPU to itself goes on at once.
        """
        mark = self._folder / f"waits-{os.getpid()}"
        if self._is_alone:
            yield self._waiting(mark)
            return
        with self._file(mark.name) as waiting:
            fcntl.flock(waiting, fcntl.LOCK_EX)
            # A part of the lock, held while waiting for all others to give theirs back, would be a deadlock of two.
            fcntl.flock(self._in_use, fcntl.LOCK_UN)
            try:
                with self._file("timings") as timings:
                    fcntl.flock(timings, fcntl.LOCK_SH)
                    fcntl.flock(self._in_use, fcntl.LOCK_EX)
                    self._is_alone = True
                    try:
                        yield self._waiting(mark)
                    finally:
                        self._is_alone = False
                        fcntl.flock(self._in_use, fcntl.LOCK_UN)
            finally:
                self._wait_for_timings()
                mark.unlink()

    def _wait_for_timings(self) -> None:
        with self._file("timings") as timings:
            fcntl.flock(timings, fcntl.LOCK_EX)  # behind all timings that wait
            fcntl.flock(self._in_use, fcntl.LOCK_SH)

    def _waiting(self, own: Path) -> int:
        return sum(self._is_locked(path.name) for path in self._folder.glob("waits-*") if path != own)

    def _is_locked(self, name: str) -> bool:
        with self._file(name) as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
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
