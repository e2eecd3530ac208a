"""Worker processes of a grading run: each judges one submission at a time, and ends with the run.

They are forked from a server process that has imported what judging needs, so that this happens once, and meanwhile.
"""

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import forkserver

_PRELOAD = ["torch", "mlsys.classroom.batch.submission"]
_context = multiprocessing.get_context("forkserver")


def warm_up() -> None:
    """Start the server, if it does not run yet; it imports in the background."""
    _context.set_forkserver_preload(_PRELOAD)
    forkserver.ensure_running()


def worker(index: int, side_by_side: int = 1, first_sandbox: int = 0, visible: str = "") -> ProcessPoolExecutor:
    """Return one worker, as a pool of one.

    Args:
        index: of this worker, from 0; workers that judge side by side must differ in it.
        side_by_side: how many workers share the machine; each keeps to cores of its own.
        first_sandbox: number of the sandbox of the worker with index 0; no two on this machine may be the same.
        visible: what CUDA_VISIBLE_DEVICES is for this worker; when empty, what it is for this process.
    """
    warm_up()
    from mlsys.judge.gpus import VISIBLE

    environment = dict(os.environ) | ({VISIBLE: visible} if visible else {})
    arguments = index, side_by_side, first_sandbox + index, environment
    return ProcessPoolExecutor(1, mp_context=_context, initializer=_begin, initargs=arguments)


def share_of_cores(index: int, side_by_side: int, cores: Collection[int]) -> set[int]:
    """Return the cores of one worker: no other has them, unless there are more workers than cores.

    >>> share_of_cores(1, 3, range(8))
    {1, 4, 7}
    >>> share_of_cores(5, 6, range(4))
    {1}
    """
    ordered = sorted(cores)
    return set(ordered[index % len(ordered) :: max(side_by_side, 1)])


def _begin(index: int, side_by_side: int, sandbox: int, environment: dict[str, str]) -> None:
    # Ctrl-C reaches workers too; the run says what there is to say, and here it would end in a traceback.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    gc.freeze()  # what the server has imported stays: else collections walk all of it
    # What this process starts inherits its cores, and student code cannot leave them: however many processes it runs, a
    # neighbor's code keeps its time.
    os.sched_setaffinity(0, share_of_cores(index, side_by_side, os.sched_getaffinity(0)))
    import torch

    from mlsys.judge.grade_question import Grader, use_grader

    os.environ.clear()  # the server's, as it was when that began
    os.environ.update(environment)
    threading.Thread(target=end_with_run, daemon=True).start()
    torch.set_num_threads(1)  # more would spin between the small steps of a check, on cores where others judge
    use_grader(Grader(sandbox))


def end_with_run() -> None:
    """End this process when the run that started it ends: it would outlive one that is killed."""
    run = multiprocessing.parent_process()
    assert run is not None
    run.join()
    os.kill(os.getpid(), signal.SIGKILL)
