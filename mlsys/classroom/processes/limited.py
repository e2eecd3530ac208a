"""Helper process in which our own code works on a student's text: with a limit on time and one on memory.

Whoever reads JSON, Markdown or program text needs far more time or memory for some texts than for others of the same
length. In the helper such a text costs its own submission a page or a refusal, and the run a few seconds.
"""

import multiprocessing
import resource
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from mlsys.classroom.processes.workers import end_with_run, warm_up
from mlsys.errors import UserError

MAX_MEMORY_BYTES = 1 << 30
"""Most bytes that the helper may use beyond what it starts with; a file of the largest size that is read needs less."""
_MAX_START_S = 120
"""Seconds until the helper must have started; on a busy machine its imports take a few."""

_T = TypeVar("_T")
_pool: ProcessPool | None = None
_imported_first: list[str] = []


class LimitExceeded(Exception):
    """Work on a student's text that needed too much time or memory, or ended its process; the message says which."""


def limited(work: Callable[..., _T], *arguments: object, time_s: float) -> _T:
    """Call `work` in the helper process, which is started if there is none, and return its result.

    Args:
        work: a function of a module.
        arguments: what it takes; they and the result are pickled.
        time_s: seconds that it may take.

    Raises:
        LimitExceeded: it took too long, or more than `MAX_MEMORY_BYTES`, or its process died.
        UserError: the helper process does not start.
        Exception: what `work` itself raises.
    """
    future = _started().schedule(work, args=arguments)
    try:
        _wait_for_start(future)
        # pebble's own limit is measured by the wall clock, which jumps when a machine's time is set.
        return future.result(time_s)
    except TimeoutError as error:
        future.cancel()
        raise LimitExceeded(f"it takes more than {time_s:g} seconds") from error
    except MemoryError as error:
        raise LimitExceeded(f"it takes more than {MAX_MEMORY_BYTES >> 20} MiB of memory") from error
    except (ProcessExpired, BrokenProcessPool) as error:
        raise LimitExceeded("the process that worked on it died") from error


def imported_first(module: str) -> None:
    """Have the helper process import a module before its first text; a module that calls `limited` names itself."""
    _imported_first.append(module)


@contextmanager
def helper_ends() -> Iterator[None]:
    """End the helper process afterwards, if one was started."""
    try:
        yield
    finally:
        _end()


def _started() -> ProcessPool:
    global _pool
    if _pool is not None and _pool.active:
        return _pool
    _end()
    warm_up()
    pool = ProcessPool(
        1, initializer=_begin, initargs=(tuple(_imported_first),), context=multiprocessing.get_context("forkserver")
    )
    try:
        pool.schedule(_ready).result(_MAX_START_S)
    except Exception as error:
        pool.stop()
        pool.join()
        raise _does_not_start() from error
    _pool = pool
    return pool


def _wait_for_start(future: ProcessFuture) -> None:
    """Wait until the process works on `future`: after a text that ended it, it first has to start again."""
    until_s = time.monotonic() + _MAX_START_S
    while not (future.running() or future.done()):
        if time.monotonic() > until_s:
            future.cancel()
            raise _does_not_start()
        time.sleep(0.001)


def _does_not_start() -> UserError:
    return UserError(
        "the process that reads what students wrote does not start: is memory short, or the limit on processes?"
    )


def _end() -> None:
    global _pool
    if _pool is not None:
        _pool.stop()
        _pool.join()
        _pool = None


def _begin(modules: tuple[str, ...]) -> None:
    for name in modules:  # imported here, they count for no text's limit
        import_module(name)
    threading.Thread(target=end_with_run, daemon=True).start()
    used = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData:"))
    limit = int(used.split()[1]) * 1024 + MAX_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _ready() -> None:
    """Do nothing: that this was called says that the helper has started."""
