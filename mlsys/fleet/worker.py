"""A worker of a fleet: judges one submission at a time on its machine, in a sandbox of its own, and on one GPU.

`describe`, `open_sandbox` and `judge` are what a head calls here. What judges is a pool of one process, as on one
machine: a submission that ends that process, or takes too long, does not end the worker.
"""

import asyncio
import atexit
import fcntl
import logging
import multiprocessing
import os
import platform
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import distributed

import mlsys
from mlsys.classroom.batch.pool import Pool
from mlsys.classroom.batch.task import Judged, Task
from mlsys.course.digest import package_digest
from mlsys.errors import UserError
from mlsys.fleet.connection import CONNECT_S, WORKER, connect
from mlsys.fleet.lab_files import LabFiles, unpack
from mlsys.judge.gpus import Gpu, visible_gpus
from mlsys.judge.grade_question import device_and_versions
from mlsys.judge.sandbox.check import check_sandbox
from mlsys.judge.sandbox.protocol.places import SandboxError
from mlsys.judge.site import site

CPU, GPU = "CPU", "GPU"
"""Names of the resource that a worker carries, one of it."""
PACKAGE = "mlsys-package"
"""Where a head leaves the state of its package in the scheduler, for workers that start later."""
PATIENCE_S = 120.0
"""Longest time for which a worker looks for a scheduler that it had and has lost, in seconds."""
_MAX_WORKERS = 1000


@dataclass(frozen=True)
class State:
    """What must be the same on head and workers: versions of Python and dask, and all files of this package."""

    version: str
    package: str
    python: str
    distributed: str

    @classmethod
    def here(cls) -> "State":
        """Return the state of this process."""
        python = ".".join(platform.python_version_tuple()[:2])
        return cls(mlsys.__version__, package_digest(), python, version("distributed"))

    def differs(self, other: "State") -> str:
        """Say in which ways another state differs from this one; nothing if it does not."""
        found = []
        for name in ("python", "distributed"):
            if getattr(self, name) != getattr(other, name):
                found.append(f"{name} {getattr(other, name)} in place of {getattr(self, name)}")
        if self.package != other.package:
            found.append(f"mlsys {other.version} ({other.package}) in place of {self.version} ({self.package})")
        return ", ".join(found)


@dataclass(frozen=True)
class About:
    """What a worker says of itself: its state, its machine, and why it cannot judge, if it cannot."""

    state: State
    host: str
    device: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def describe(state: State, files: LabFiles) -> About:
    """Look around on this worker before it gets any work, and take over the lab's files.

    Args:
        state: of the head's package; another one here is all that is then said.
        files: those of the lab.
    """
    own, host = State.here(), socket.gethostname()
    if state.differs(own):
        return About(own, host)
    if multiprocessing.current_process().daemon:
        return About(own, host, problem="its nanny lets it start no process: add --no-nanny")
    try:
        tree = unpack(files, _folder())
        machine = _machine()
    except (UserError, OSError) as error:
        return About(own, host, problem=str(error))
    return About(own, host, machine["device"], machine["versions"], check_sandbox(site(), (tree.root,)))


def open_sandbox(name: str, device: str, cpu_limit_s: int, lab: str) -> None:
    """Open the sandbox in which this worker will judge a lab; `lab` is the digest of its files."""
    with _one_at_a_time:
        _pool(lab, device).prepare(name, device, cpu_limit_s)


def judge(task: Task, lab: str) -> Judged:
    """Judge one submission.

    Args:
        task: the submission.
        lab: digest of the lab's files, which this worker has got.

    Raises:
        UserError: this machine lacks something, which no submission can help.
    """
    with _one_at_a_time:
        (judged,) = _pool(lab, task.device).judge_all([task])
        return judged


_one_at_a_time = threading.Lock()
"""A worker that has lost its scheduler and found it again may still be judging."""
_pools: dict[tuple[str, Gpu | None], Pool] = {}


def _pool(lab: str, device: str) -> Pool:
    gpu = None if device == "cpu" else own_gpu()
    if (lab, gpu) not in _pools:
        for other in list(_pools):
            _pools.pop(other).__exit__()
        _pools[lab, gpu] = Pool(_folder() / lab, 1, first_sandbox=_number()[0], gpus=(gpu,) if gpu else ())
    return _pools[lab, gpu]


@cache
def _machine() -> dict[str, Any]:
    return device_and_versions("auto")


@cache
def _number() -> tuple[int, IO[str]]:
    """Return the lowest number that no other worker on this machine has, with the lock that holds it."""
    return _first_free(str(number) for number in range(_MAX_WORKERS))


def own_gpu() -> Gpu | None:
    """Return the GPU of this worker, which is taken at the first call; None where there is none."""
    if not _own_gpu and (gpus := visible_gpus()):
        take_gpu(gpus)
    return _own_gpu[0][0] if _own_gpu else None


def take_gpu(gpus: Sequence[Gpu], number: int | None = None) -> Gpu:
    """Take a GPU for this worker, until its process ends.

    Args:
        gpus: those of this machine.
        number: of the GPU among them; by default, the first of those that the fewest workers have.

    Raises:
        UserError: there is no such number.
    """
    if number is not None and number >= len(gpus):
        found = "; ".join(f"{index}: {gpu}" for index, gpu in enumerate(gpus))
        raise UserError(f"there is no GPU {number} here: choose --gpu among {found}")
    choice = gpus if number is None else [gpus[number]]
    index, lock = _first_free(f"{gpu.uuid}-{others}" for others in range(_MAX_WORKERS) for gpu in choice)
    gpu = choice[index % len(choice)]
    _own_gpu[:] = [(gpu, lock)]
    return gpu


_own_gpu: list[tuple[Gpu, IO[str]]] = []
"""The GPU of this worker, once it is taken, with the lock that holds it."""


def _first_free(names: Iterable[str]) -> tuple[int, IO[str]]:
    """Take the first of these names that no other worker on this machine has; return its index, and the lock."""
    folder = Path(tempfile.gettempdir()) / f"mlsys-workers-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for index, name in enumerate(names):
        lock = (folder / f"{name}.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return index, lock
    raise UserError(f"{_MAX_WORKERS} workers run on this machine already: end some")


@cache
def _folder() -> Path:
    """Return the folder of this worker, which is removed when its process ends."""
    number, lock = _number()
    folder = Path(lock.name).with_name(str(number))
    shutil.rmtree(folder, ignore_errors=True)
    _remove_left(folder.parent)
    folder.mkdir(mode=0o700)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # dask's own command for a worker ends here too
    return folder


def _remove_left(folder: Path) -> None:
    """Remove the folders of workers that were killed: nobody holds their locks."""
    for left in folder.iterdir():
        if left.is_dir():
            with left.with_name(f"{left.name}.lock").open("w") as lock, suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)


def serve(address: str, device: str, say: Any = print, *, gpu: int | None = None) -> None:
    """Be a worker of a cluster until a signal ends it, or its scheduler is gone.

    Args:
        address: of the scheduler.
        device: "cpu", "gpu", or "auto" for the GPU where there is one.
        say: takes a line for the person who started it.
        gpu: number of the GPU that it judges on; by default, the first of those that the fewest workers have.

    Raises:
        UserError: no GPU is here although one is claimed, or none of that number; nothing answers at the address, or
            the head's package is another one.
        SandboxError: the sandbox does not hold here.
    """
    if fault := check_sandbox(site()):
        raise SandboxError(f"the sandbox cannot run here, so this machine judges nothing: {fault}")
    machine = device_and_versions(device)
    resource = GPU if machine["device"] == "gpu" else CPU
    check_head(address)
    number = _number()[0]
    logging.getLogger("distributed").setLevel(logging.WARNING)
    versions = (f"{name} {one}" for name, one in machine["versions"].items())
    say(f"Worker {number}: {', '.join([_place(resource, gpu), *versions])}")
    asyncio.run(_serve(address, {resource: 1}, f"{socket.gethostname()}-{os.getpid()}", say))


def _place(resource: str, number: int | None) -> str:
    """Say on what this worker judges; its GPU is taken first."""
    gpus = visible_gpus() if resource == GPU else ()
    if not gpus:
        return resource
    gpu = take_gpu(gpus, number)
    return f"{GPU} {gpus.index(gpu)} of the {len(gpus)} here, {gpu}"


def check_head(address: str) -> None:
    """Compare this package with that of the head that uses a scheduler, if one does.

    Raises:
        UserError: they differ, or nothing answers at the address.
    """
    own = State.here()
    try:
        with connect(address, WORKER) as client:
            other = client.get_versions()["scheduler"]["packages"]["distributed"]
            head = client.get_metadata([PACKAGE], default=None)
    except (OSError, ValueError) as error:
        raise UserError(
            f"no scheduler of dask answers at {address!r} ({error}): start one with `dask scheduler`, and give the "
            "address that it prints, such as tcp://head:8786"
        ) from error
    if other != own.distributed:
        raise UserError(f"the scheduler has distributed {other}, and this machine {own.distributed}: install the same")
    if head and (fault := State(**head).differs(own)):
        raise UserError(f"this machine has {fault}, so it is refused: check out the head's commit of the repository")


async def _serve(address: str, resources: dict[str, float], name: str, say: Any) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stopped.set)
    seen_s = time.monotonic()
    while not stopped.is_set():
        try:
            worker = await distributed.Worker(
                address,
                nthreads=1,
                resources=resources,
                name=f"{name}-{time.monotonic_ns()}",
                local_directory=str(_folder()),
                memory_limit=0,  # a student's memory is limited by the sandbox
                death_timeout=CONNECT_S,
            )
        except (OSError, TimeoutError, ValueError) as error:
            if time.monotonic() - seen_s > PATIENCE_S:
                raise UserError(f"the scheduler at {address} is gone for {PATIENCE_S:.0f} s: {error}") from error
            await asyncio.sleep(0.5)
            continue
        say(f"Connected to {address}; end with Ctrl-C")
        ends = [asyncio.ensure_future(worker.finished()), asyncio.ensure_future(stopped.wait())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if stopped.is_set():
            logging.getLogger("distributed").setLevel(logging.ERROR)  # that its work is cancelled is no news
        await worker.close(executor_wait=not stopped.is_set())
        seen_s = time.monotonic()
    for pool in list(_pools.values()):  # after the worker: the head must not hear of a submission that failed
        pool.give_up()
