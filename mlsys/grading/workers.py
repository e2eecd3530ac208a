"""Worker processes of a grading run: each judges one submission at a time, and ends with the run.

They are forked from a server process that has imported what judging needs, so that this happens once, and meanwhile.
"""

import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import forkserver

_PRELOAD = ["torch", "mlsys.grading.questions"]
_context = multiprocessing.get_context("forkserver")


def warm_up() -> None:
    """Start the server, if it does not run yet; it imports in the background."""
    _context.set_forkserver_preload(_PRELOAD)
    forkserver.ensure_running()


def worker(index: int) -> ProcessPoolExecutor:
    """One worker, as a pool of one; workers that judge side by side must differ in `index`."""
    warm_up()
    return ProcessPoolExecutor(1, mp_context=_context, initializer=_begin, initargs=(index, dict(os.environ)))


def _begin(index: int, environment: dict[str, str]) -> None:
    # Ctrl-C reaches workers too; the run says what there is to say, and here it would end in a traceback.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    import torch

    from mlsys.grading import runner

    os.environ.clear()  # the server's, as it was when that began
    os.environ.update(environment)
    threading.Thread(target=_end_with_run, daemon=True).start()
    torch.set_num_threads(1)  # more would spin between the small steps of a check, on cores where others judge
    runner.slot_index = index


def _end_with_run() -> None:
    """Else a worker outlives a run that is killed."""
    run = multiprocessing.parent_process()
    assert run is not None
    run.join()
    os.kill(os.getpid(), signal.SIGKILL)
