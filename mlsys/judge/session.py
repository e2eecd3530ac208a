"""The processes of one question, and what its tests may ask of them.

They run side by side in one sandbox, and none sees another. Before anything is timed, the student's process ends, and
the kernel gets a fresh process of its own.
"""

import inspect
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from mlsys.grading.checks.tolerances import dtype_name
from mlsys.grading.draws import Draws
from mlsys.grading.kernels.race import Rates, run_race
from mlsys.grading.kernels.source import KernelSource, kernel_source
from mlsys.grading.verdicts import GradingError, NeedsGpu, Suspicious
from mlsys.judge.gpu_lock import GpuLock
from mlsys.judge.sandbox.host.process import SandboxProcess
from mlsys.judge.sandbox.host.sandbox import Sandbox
from mlsys.judge.sandbox.protocol.ending import ProcessEnded
from mlsys.judge.sandbox.protocol.shared_buffer import Tampered, Tensor
from mlsys.judge.shared.run_cells import MAX_LINES
from mlsys.judge.shared.values import decode, encode

STUDENT, LAUNCHER, REFERENCE = "student", "launcher", "reference"
"""Roles of the processes of a question: the student's code, the student's kernels, and the reference in a race."""

ENTRIES = {
    STUDENT: "mlsys.judge.inside.student:serve",
    LAUNCHER: "mlsys.judge.inside.launcher:serve",
    REFERENCE: "mlsys.judge.inside.launcher:serve",
}
"""Entry function of each process."""

MAX_CALL_S = 30.0
"""Longest call or launch on a GPU, in seconds, compiling included; a kernel compiles in about one."""

MAX_EXCLUSIVE_S = 30.0
"""Longest timing of one shape, in seconds, for which everybody else is kept from the GPU."""

FUNCTION = object()
"""Result of `Session.value` for a function."""

_A_STUDENT_MAY_CLAIM = ("wrong answer", "out of bounds", "not implemented", "error", "out of memory", "crashed")
"""Verdicts that a student's process may claim; none of them gives points."""

_THE_LAUNCHER_MAY_CLAIM = (*_A_STUDENT_MAY_CLAIM, "needs gpu")
"""Verdicts that a launcher may claim, which runs our code alone."""

_SIGNALS = {4: "illegal instruction", 6: "abort", 7: "bus error", 8: "arithmetic error", 11: "segmentation fault"}


class StudentFailed(GradingError):
    """A failure of a sandboxed process; `lines` are the student's own lines on the way to it.

    `own_words` says that message and lines come from a process that runs the student's code, which can shape them;
    `lost`, that the process was killed from outside or lost with its sandbox, as far as one can tell, and may be tried
    again.
    """

    def __init__(
        self, verdict: str, message: str, lines: Sequence[str] = (), *, own_words: bool = False, lost: bool = False
    ) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.lines = tuple(lines)
        self.own_words = own_words
        self.lost = lost


@dataclass(frozen=True)
class GuardedCall:
    """A call of a student's function with guard bands, and what it returned."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any


@dataclass(frozen=True)
class QuestionCells:
    """Cells of a question: the trusted setup cells, and all cells of the student's process in order."""

    setup: Sequence[Mapping[str, Any]]
    all: Sequence[Mapping[str, Any]]

    def kernel(self, name: str) -> KernelSource:
        """Return the checked source of a student's kernel."""
        return kernel_source((cell["source"] for cell in self.all), name)


class Session:
    """The processes of one question in a sandbox; `device` is where kernels run there, "cpu" or "cuda".

    On "cuda", whoever makes it is inside `gpu_lock.shared()`.
    """

    def __init__(self, sandbox: Sandbox, cells: QuestionCells, device: str, gpu_lock: GpuLock | None = None) -> None:
        self.cells = cells
        self.device = device
        self._gpu_lock = gpu_lock or GpuLock()
        self.guarded_calls: list[GuardedCall] = []
        self._sandbox = sandbox
        # For all processes of the question together, from the first one on: the judge's own imports take no time of it.
        self._deadline_s: float | None = None
        self._processes: dict[str, SandboxProcess] = {}
        self._raced = False  # whether the launcher has raced, and nothing else

    def close(self) -> None:
        """End all processes of the question."""
        for entry in list(self._processes):
            self._end(entry)

    def run(self) -> None:
        """Run the student's cells, unless they have run already.

        Raises:
            StudentFailed: they fail.
        """
        if STUDENT not in self._processes:
            self._start(STUDENT, {"run": self.cells.all, "noop": False, "device": self.device})

    def value(self, name: str) -> Any:
        """Return the plain value that the student's cells bind to `name`, or FUNCTION.

        Raises:
            StudentFailed: the cells do not bind the name, or to something that cannot pass.
        """
        self.run()
        reply, arrays = self._ask(STUDENT, {"get": name})
        return FUNCTION if reply.get("kind") == "function" else decode(reply.get("value"), arrays, strided=False)

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], guarded: bool) -> Any:
        """Call a function of the student's; guarded calls are kept, to be made again without kernels."""
        self.run()
        result = self._call(name, args, kwargs, guarded)
        if guarded:
            self.guarded_calls.append(GuardedCall(name, args, kwargs, result))
        return result

    def call_without_kernels(self, calls: Sequence[GuardedCall]) -> Iterator[Any]:
        """Make calls again in one fresh process in which kernel launches do nothing, and yield their results."""
        self._start(STUDENT, {"run": self.cells.all, "noop": True, "device": self.device})
        try:
            for call in calls:
                yield self._call(call.name, call.args, dict(call.kwargs), guarded=True)
        finally:
            self._end(STUDENT)

    def launch(
        self, name: str, launch: Callable[..., object], constants: Mapping[str, int], like: Any, inputs: Sequence[Any]
    ) -> Any:
        """Launch the student's kernel in the launcher, into an output like `like`, and return that output."""
        arrays: list[Tensor] = []
        if self._raced:
            self._end(LAUNCHER)
            self._raced = False
        request = self._kernel_request(name, launch, constants, inputs, arrays)
        request |= {"shape": list(like.shape), "dtype": dtype_name(like)}
        reply, results = self._ask_kernel_process(LAUNCHER, request, arrays)
        return decode(reply.get("value"), results, strided=False)

    def race(
        self,
        name: str,
        constants: Mapping[tuple[int, ...], Mapping[str, int]],
        inputs: Callable[..., Any],
        launch: Callable[..., object],
        expected: Callable[..., Any],
        dtype: str,
        reference: tuple[Any, Callable[..., Mapping[str, int]]] | None,
        capability: tuple[int, int],
        op: Callable[..., Any] | None,
    ) -> Any:
        """Time the student's kernel beside a reference, each in a process of its own; see `kernels.speed`."""
        from mlsys.grading.kernels.speed import Speed, beside, race_label

        kernel = self.cells.kernel(name)  # refused on any machine
        if self.device != "cuda":
            raise NeedsGpu("graded without a CUDA GPU, so nothing was timed; these points wait for one.")
        draws, pairs, device = Draws("speed"), {}, ""
        self._end(STUDENT)
        if not self._raced:
            self._end(LAUNCHER)  # with all that earlier launches left in its memory
        self._raced = True
        for shape, chosen in constants.items():
            tensors = inputs(draws, shape, dtype)
            arrays: list[Tensor] = []
            common = {"race": "prepare", "inputs": encode(tuple(tensors), arrays), "launch": launch.__name__}
            common |= {"capability": list(capability), "dtype": dtype, "expected": expected.__name__}
            theirs: dict[str, Any] = {"kernel": None, "what": race_label(shape, chosen)}
            if reference is not None:
                source = kernel_source([inspect.getsource(reference[0].fn)], reference[0].__name__)
                theirs |= {"kernel": source.text, "name": source.name, "constants": dict(reference[1](shape, dtype))}
            prepared, _ = self._ask_kernel_process(REFERENCE, common | theirs, arrays)
            mine = {"kernel": kernel.text, "name": kernel.name, "constants": dict(chosen), "what": None}
            mine |= {key: prepared[key] for key in ("out_shape", "out_dtype")}
            started, _ = self._ask_kernel_process(LAUNCHER, common | mine, arrays)
            with self._alone_on_gpu() as waiting:
                until_s = time.monotonic() + MAX_EXCLUSIVE_S
                sides = [
                    _RemoteSide(self, role, told["call_s"], waiting, until_s)
                    for role, told in ((LAUNCHER, started), (REFERENCE, prepared))
                ]
                flops = float(op(shape, dtype).flop_count) if op else 0.0
                about = {key: prepared[key] for key in ("elements", "bytes_moved")}
                try:
                    pairs[shape] = run_race(*sides, **about, flops=flops)
                except BaseException:
                    self._end(LAUNCHER)  # others wait for the memory that they hold
                    self._end(REFERENCE)
                    raise
            device = prepared["device"]
        return Speed(device, beside(reference), pairs)

    @contextmanager
    def _alone_on_gpu(self) -> Iterator[int]:
        """Hold the GPU alone; the time of waiting for it counts for no process.

        Yields how many processes wait for their own timing.
        """
        asked_s = time.monotonic()
        with self._gpu_lock.exclusive() as waiting:
            waited_s = time.monotonic() - asked_s
            if self._deadline_s is not None:  # else nothing runs yet
                self._deadline_s += waited_s
            for process in self._processes.values():
                process.allow(waited_s)
            yield waiting

    def _kernel_request(
        self,
        name: str,
        launch: Callable[..., object],
        constants: Mapping[str, int],
        inputs: Sequence[Any],
        arrays: list[Tensor],
    ) -> dict[str, Any]:
        source = self.cells.kernel(name)
        about = {"kernel": source.text, "name": source.name, "launch": launch.__name__, "device": self.device}
        return {**about, "constants": dict(constants), "inputs": encode(tuple(inputs), arrays)}

    def _ask_kernel_process(
        self, role: str, request: dict[str, Any], arrays: Sequence[Tensor]
    ) -> tuple[dict[str, Any], list[Tensor]]:
        if role not in self._processes:
            self._start(role, {"setup": self.cells.setup})
        return self._ask(role, request, arrays)

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], guarded: bool) -> Any:
        arrays: list[Tensor] = []
        encoded = {"args": encode(args, arrays), "kwargs": encode(kwargs, arrays)}
        reply, results = self._ask(STUDENT, {"call": name, "guarded": guarded, **encoded}, arrays)
        return decode(reply.get("value"), results, strided=False)

    def _start(self, role: str, header: dict[str, Any]) -> None:
        self._end(role)
        self._processes[role] = self._sandbox.open(ENTRIES[role])
        if self._deadline_s is None:
            self._deadline_s = time.monotonic() + self._sandbox.limits.wall_s
        self._ask(role, header)

    def _end(self, role: str) -> None:
        if process := self._processes.pop(role, None):
            process.close()

    def _ask(
        self, role: str, header: dict[str, Any], arrays: Sequence[Tensor] = (), limit_s: float = math.inf
    ) -> tuple[dict[str, Any], list[Tensor]]:
        """Send a request to a process and return its reply, within the time of the question and of this request."""
        assert self._deadline_s is not None
        if self.device == "cuda":  # on a CPU, the question's own limit on computing is tighter
            limit_s = min(limit_s, MAX_CALL_S)
        left_s = self._deadline_s - time.monotonic()
        try:
            message = self._processes[role].request(header, arrays, timeout_s=max(0.0, min(left_s, limit_s)))
        except Tampered as error:
            raise Suspicious(f"The process answered as no honest one does: {error}.") from None
        except ProcessEnded as error:
            if error.ending.kind == "timed out" and limit_s < left_s:
                raise StudentFailed(
                    "timed out", f"Stopped after {MAX_CALL_S:g} s of one call, which is all that it has on a GPU."
                ) from None
            raise _ended(error, self._sandbox) from None
        if "error" in message.header:
            _raise(message.header["error"], own_words=role == STUDENT)
        return message.header, message.tensors


@dataclass(frozen=True)
class _RemoteSide:
    """One side of a race in a process of its own, which has run the work once already."""

    session: Session
    role: str
    call_s: float
    waiting: int
    until_s: float

    def prepare(self) -> float:
        return self.call_s

    def load(self, calls: int) -> None:
        # Of each question that waits, two processes hold memory of the GPU; of this one, the other side's.
        idle = {"waiting": 2 * self.waiting + 1} if self.role == LAUNCHER else {}
        self._ask({"race": "load", "calls": calls, **idle})

    def lap(self, seed: int) -> float:
        return float(self._ask({"race": "lap", "seed": seed})[0]["call_s"])

    def output(self, call: int, start: int, stop: int) -> Any:
        reply, results = self._ask({"race": "output", "call": call, "start": start, "stop": stop})
        return decode(reply.get("value"), results, strided=False)

    def agrees(self, seed: int, call: int, start: int, found: Any) -> bool:
        arrays: list[Tensor] = []
        about = {"seed": seed, "call": call, "start": start, "found": encode(found, arrays)}
        return self._ask({"race": "agrees", **about}, arrays)[0]["agrees"] is True

    def rest(self) -> None:
        self._ask({"race": "rest"})

    def rates(self) -> Rates:
        return Rates(**self._ask({"race": "rates"})[0])

    def _ask(self, header: dict[str, Any], arrays: Sequence[Tensor] = ()) -> tuple[dict[str, Any], list[Tensor]]:
        return self.session._ask(self.role, header, arrays, max(0.0, self.until_s - time.monotonic()))


def _ended(error: ProcessEnded, sandbox: Sandbox) -> StudentFailed:
    ending, limits = error.ending, sandbox.limits
    if ending.kind == "starved":
        return StudentFailed("timed out", "Other work on this machine left it no time, and so in every try.", lost=True)
    if ending.kind == "timed out":
        return StudentFailed("timed out", f"Stopped after {limits.cpu_s} s of computing or {limits.wall_s:g} s in all.")
    if ending.kind == "out of memory":
        return StudentFailed("out of memory", f"Stopped when it took more than {limits.memory_bytes >> 20:,} MiB.")
    if ending.kind == "lost" or ending.signal == signal.SIGKILL:  # nobody here sent it
        return StudentFailed("crashed", "The process was killed, and so was every other try.", lost=True)
    if ending.signal:
        return StudentFailed("crashed", f"The process died: {_SIGNALS.get(ending.signal, f'signal {ending.signal}')}.")
    return StudentFailed("crashed", "The process ended before its tests were done.")


def _raise(error: object, own_words: bool) -> NoReturn:
    """Raise the failure that a process tells of itself, as far as it may be believed; `own_words` for the student's."""
    match error:
        case {"verdict": str(verdict), "message": str(message), "lines": list(lines), **rest} if not rest:
            claims = _A_STUDENT_MAY_CLAIM if own_words else _THE_LAUNCHER_MAY_CLAIM
            known = verdict if verdict in claims else "error"
            kept = [line[:300] for line in lines[:MAX_LINES] if isinstance(line, str)]
            raise StudentFailed(known, message, kept, own_words=True)  # a kernel shapes the launcher's messages too
    raise Suspicious("The process described its failure as no honest one does.")
