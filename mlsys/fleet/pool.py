"""Judge submissions on the workers of a cluster, in place of processes of this machine.

Dask runs a task at least once, and counts a worker's death against every task that waits there. So the head counts
itself: a worker holds the submission that it judges and the next one, which it begins while the head still writes down
the last. When a worker is gone, both are taken back, only the one that it judged is counted as tried, and a late result
of an earlier try is not asked for any more.

Workers without a GPU judge all questions; those that then wait for a GPU are judged by workers that have one, with the
same inputs. In a fleet of GPUs only, the workers judge everything on them, as one machine with a GPU does.
"""

import logging
import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import distributed
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker
from rich.console import Console

from mlsys.classroom.batch.device_times import DeviceTime
from mlsys.classroom.batch.task import Judged, Task
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.fleet import worker as on_worker
from mlsys.fleet.connection import CONNECT_S, connect
from mlsys.fleet.lab_files import pack
from mlsys.fleet.worker import CPU, GPU, PACKAGE, About, State

MAX_LOSSES = 4
"""How many workers may be lost with one submission before it is refused."""
AT_A_WORKER = 2
"""Submissions that a worker holds while more of them wait: the one that it judges, and the next."""
PATIENCE_S = 120.0
"""Longest wait for a scheduler, for a first worker, or for another one when all are lost, in seconds."""
_LOOK_S = 0.5
_LOST = (OSError, TimeoutError, FutureCancelledError)


@dataclass(frozen=True)
class _Step:
    """A submission to be judged on workers of a kind; `first` is what those without a GPU found."""

    task: Task
    kind: str
    first: Judged | None = None
    losses: int = 0


class FleetPool:
    """The workers of a cluster; see `mlsys.classroom.batch.pool.JudgePool`.

    Args:
        tree: the course.
        lab: the lab that is judged.
        address: of the cluster's scheduler.
        console: where workers that come, go and are refused are named.
    """

    elsewhere = True

    def __init__(self, tree: CourseTree, lab: str, address: str, console: Console) -> None:
        for name in list(logging.root.manager.loggerDict):
            if name.startswith("distributed"):  # what it says of lost connections, with tracebacks, is said here
                logging.getLogger(name).setLevel(logging.CRITICAL)
        self._address, self._console = address, console
        self._files, self._state = pack(tree, lab), State.here()
        self._client: distributed.Client | None = None
        self._workers: dict[str, tuple[str, About]] = {}  # by address: the kind, and what it says of itself
        self._asked: dict[str, distributed.Future] = {}
        self._refused: set[str] = set()
        self._done: queue.SimpleQueue[distributed.Future] = queue.SimpleQueue()
        self._looked_s = 0.0
        self._had_s: dict[str, float] = {}
        self._alone_since_s = time.monotonic()

    @property
    def workers(self) -> int:
        """Return how many workers judge side by side now."""
        return len(self._workers)

    def __enter__(self) -> Self:
        self._connect(CONNECT_S)
        assert self._client is not None
        self._console.print(
            f"Cluster {self._address}; its dashboard: {self._client.dashboard_link}", soft_wrap=True, markup=False
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            with suppress(Exception):
                self._client.set_metadata([PACKAGE], None)
            self._close()

    def machine(self, device: str) -> dict[str, Any]:
        """Wait for a worker, and return the device that the fleet judges on for an asked one.

        Raises:
            UserError: no worker comes, or a GPU is asked for and none of them has one.
        """
        until_s = time.monotonic() + PATIENCE_S
        while not self._workers or self._asked:
            self._look()
            if time.monotonic() > until_s:
                raise UserError(self._no_worker())
            if not self._workers or self._asked:
                time.sleep(0.1)
        has_gpu = bool(self._of(GPU))
        if device == "gpu" and not has_gpu:
            raise UserError(f"no worker at {self._address} has a GPU: start one where a GPU is, with `mlsys worker`")
        self._say(f"{len(self._of(CPU))} workers without a GPU, {len(self._of(GPU))} with one")
        kind = GPU if has_gpu and device != "cpu" else next(iter(self._workers.values()))[0]
        about = next(one for one in self._workers.values() if one[0] == kind)[1]
        return {"device": "gpu" if has_gpu and device != "cpu" else "cpu", "versions": about.versions}

    def device_times(self) -> tuple[DeviceTime, ...]:
        """Return nothing: how busy a worker's GPU is shows on the cluster's dashboard."""
        return ()

    def prepare(self, lab: str, device: str, cpu_limit_s: int) -> None:
        """Have every worker open the sandbox in which it will judge a lab."""
        assert self._client is not None
        for address in self._workers:
            future = self._submit(address, on_worker.open_sandbox, lab, device, cpu_limit_s, self._files.digest)
            distributed.fire_and_forget(future)

    def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
        """Judge submissions, and yield each as it is done.

        Args:
            tasks: the submissions, each taken when a worker has room; what is refused already comes back as it is.

        Raises:
            UserError: the scheduler or all workers are gone for too long.
        """
        waiting, more = iter(tasks), True
        steps: dict[str, deque[_Step]] = {CPU: deque(), GPU: deque()}
        running: dict[distributed.Future, tuple[str, _Step]] = {}

        def take() -> Iterator[Judged]:
            """Take the next submission, and yield those before it that are refused already."""
            nonlocal more
            while more:
                found = next(waiting, None)
                more = found is not None
                if isinstance(found, Judged):
                    yield found
                elif found is not None:
                    steps[CPU].append(_Step(found, CPU))
                    return

        while more or running or steps[CPU] or steps[GPU]:
            self._look()
            for address, kind in self._with_room(running, AT_A_WORKER if more else 1):
                source = GPU if kind == GPU and steps[GPU] else CPU
                if source != kind and self._of(source):
                    continue  # it is for those without a GPU
                if source == CPU and not steps[CPU]:
                    yield from take()
                if steps[source]:
                    step = replace(steps[source].popleft(), kind=kind)
                    running[self._start(address, kind, step)] = address, step
            if not steps[CPU]:
                yield from take()  # it is read while others are judged
            for address, step, judged_now in self._lost(running):
                if not judged_now:
                    steps[step.kind].appendleft(step)
                    continue
                self._say(f"worker {address} is gone; what it judged is judged again")
                if step.losses + 1 < MAX_LOSSES:
                    steps[step.kind].append(replace(step, losses=step.losses + 1))
                else:
                    reason = f"{MAX_LOSSES} workers were lost while they judged it; look at it by hand"
                    yield Judged(step.task.student, step.task.submission, refused=reason, failed=True)
            if steps[GPU] and not self._of(GPU) and self._waited_for(GPU):
                yield from (step.first for step in steps[GPU] if step.first)  # its points go on waiting for a GPU
                steps[CPU].extend(replace(step, kind=CPU) for step in steps[GPU] if not step.first)
                steps[GPU].clear()
            for future in self._finished():
                if future not in running:
                    continue
                address, step = running.pop(future)
                judged = self._result(future, address)
                if judged is None:
                    steps[step.kind].append(step)
                elif self._needs_gpu(step, judged):
                    names = tuple(one.question for one in judged.questions if one.verdict == "needs gpu")
                    steps[GPU].append(_Step(replace(step.task, only=names), GPU, judged))
                elif step.first:
                    yield step.first if judged.refused else step.first.with_later(judged)
                else:
                    yield judged

    def _with_room(self, running: dict[distributed.Future, tuple[str, _Step]], most: int) -> list[tuple[str, str]]:
        """Return the workers, with their kinds, that hold fewer than `most` submissions; idle ones come first."""
        held = Counter(address for address, _ in running.values())
        found = [(address, kind) for address, (kind, _) in self._workers.items() if held[address] < most]
        return sorted(found, key=lambda one: held[one[0]])

    def _start(self, address: str, kind: str, step: _Step) -> distributed.Future:
        task = step.task
        if kind == CPU:
            task = replace(task, device="cpu")
        elif step.first:
            task = replace(task, device="gpu")
        future = self._submit(address, on_worker.judge, task, self._files.digest, resources={kind: 1})
        future.add_done_callback(self._done.put)
        return future

    def _submit(self, address: str, function: Callable[..., Any], *arguments: Any, **more: Any) -> distributed.Future:
        assert self._client is not None
        return self._client.submit(
            function, *arguments, workers=[address], allow_other_workers=False, pure=False, **more
        )

    def _needs_gpu(self, step: _Step, judged: Judged) -> bool:
        waits = any(one.verdict == "needs gpu" for one in judged.questions)
        return waits and step.kind == CPU and step.task.device != "cpu" and bool(self._of(GPU))

    def _result(self, future: distributed.Future, address: str) -> Judged | None:
        """Return what a worker found, or None where the submission is to be judged by another one."""
        if future.status == "finished":
            with suppress(*_LOST):
                judged: Judged = future.result(timeout=CONNECT_S)
                return judged
            return None
        error = None
        with suppress(*_LOST):
            error = future.exception(timeout=CONNECT_S) if future.status == "error" else None
        if error is not None and not isinstance(error, KilledWorker):
            self._refuse(address, str(error) or repr(error))
        return None

    def _lost(self, running: dict[distributed.Future, tuple[str, _Step]]) -> list[tuple[str, _Step, bool]]:
        """Take back what was given to workers that are gone, each with whether its worker judged it or held it next."""
        lost = []
        judged: set[str] = set()
        for future in [one for one, (address, _) in running.items() if address not in self._workers]:
            if future.status in ("finished", "error"):
                continue  # its end is in the queue
            address, step = running.pop(future)
            lost.append((address, step, address not in judged))  # what was given first is judged first
            judged.add(address)
            with suppress(*_LOST):
                future.release()
        return lost

    def _finished(self) -> Iterator[distributed.Future]:
        """Yield what has ended, after a short wait for the first one."""
        with suppress(queue.Empty):
            yield self._done.get(timeout=_LOOK_S)
            while True:
                yield self._done.get_nowait()

    def _look(self) -> None:
        """See which workers have come and gone, and ask new ones whether they can judge.

        Raises:
            UserError: there has been none for too long, or the scheduler is gone.
        """
        if time.monotonic() - self._looked_s < _LOOK_S:
            return
        try:
            assert self._client is not None
            present = self._client.scheduler_info(n_workers=-1)["workers"]
            if self._client.status != "running":
                raise OSError("the connection is closed")
        except _LOST:
            self._say(f"the scheduler at {self._address} is gone; looking for it")
            self._workers.clear()
            self._asked.clear()
            self._close()
            self._connect(PATIENCE_S)
            return
        self._looked_s = time.monotonic()
        for address in self._workers.keys() - present.keys():
            del self._workers[address]
        for address in self._asked.keys() - present.keys():
            self._asked.pop(address).release()
        for address in present.keys() - self._workers.keys() - self._asked.keys() - self._refused:
            self._asked[address] = self._submit(address, on_worker.describe, self._state, self._files)
        for address, future in list(self._asked.items()):
            if future.done():
                del self._asked[address]
                self._accept(address, future, present[address]["resources"])
        if self._workers:
            self._alone_since_s = time.monotonic()
        elif time.monotonic() - self._alone_since_s > PATIENCE_S:
            raise UserError(self._no_worker())

    def _accept(self, address: str, future: distributed.Future, resources: dict[str, float]) -> None:
        """Let a worker judge, if it is fit for what it claims."""
        try:
            about = future.result(timeout=CONNECT_S)
        except _LOST:
            return  # asked again if it is still there
        except Exception as error:  # it may lack this package
            self._refuse(address, f"{type(error).__name__}: {error}")
            return
        if reason := self.objection(about, resources):
            self._refuse(address, reason)
        else:
            self._workers[address] = GPU if GPU in resources else CPU, about

    def objection(self, about: About, resources: dict[str, float]) -> str:
        """Return why a worker may not judge; nothing if it may."""
        if fault := self._state.differs(about.state):
            return f"it has {fault}: check out the same commit there"
        if about.problem:
            return about.problem
        if GPU in resources and about.device != "gpu":
            return "it claims a GPU and has none"
        if not resources.keys() & {CPU, GPU}:
            return "it carries neither CPU=1 nor GPU=1: start it with `mlsys worker`, or add --resources CPU=1"
        return ""

    def _refuse(self, address: str, reason: str) -> None:
        self._workers.pop(address, None)
        self._refused.add(address)
        self._say(f"worker {address} is refused: {reason}")

    def _of(self, kind: str) -> list[str]:
        found = [address for address, (one, _) in self._workers.items() if one == kind]
        if found:
            self._had_s[kind] = time.monotonic()
        return found

    def _waited_for(self, kind: str) -> bool:
        return time.monotonic() - self._had_s.get(kind, 0.0) > PATIENCE_S

    def _connect(self, within_s: float) -> None:
        until_s = time.monotonic() + within_s
        while True:
            try:
                client = connect(self._address)
                client.set_metadata([PACKAGE], asdict(self._state))
                break
            except (*_LOST, ValueError) as error:
                if time.monotonic() > until_s:
                    raise UserError(
                        f"no scheduler of dask answers at {self._address!r} ({error}): start one with `dask "
                        "scheduler`, correct --cluster, then run the same command again. What is graded is kept"
                    ) from error
                time.sleep(0.5)
        self._client, self._looked_s, self._alone_since_s = client, 0.0, time.monotonic()

    def _close(self) -> None:
        if self._client is not None:
            with suppress(Exception):
                self._client.close(timeout=2)
            self._client = None

    def _no_worker(self) -> str:
        refused = f", and {len(self._refused)} were refused" if self._refused else ""
        return (
            f"no worker has come to {self._address} for {PATIENCE_S:.0f} s{refused}: start some with `mlsys worker "
            f"{self._address}`, then run the same command again. What is graded is kept"
        )

    def _say(self, text: str) -> None:
        self._console.print(f"Fleet: {text}", soft_wrap=True, markup=False, highlight=False)
