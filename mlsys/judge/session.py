"""Processes of one question, and the requests that its tests may send to them.

They run at the same time in one sandbox, and none sees another. Before anything is timed, the student's process ends,
and the kernel gets a new process.
"""

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from mlsys.grading.checks.tolerances import dtype_name
from mlsys.grading.kernels.source import KernelSource, kernel_source
from mlsys.grading.subjects import Outcome, Subject, is_refusal
from mlsys.grading.verdicts import GradingError, Suspicious
from mlsys.judge.gpu_lock import GpuLock
from mlsys.judge.sandbox.host.process import SandboxProcess
from mlsys.judge.sandbox.host.sandbox import Sandbox
from mlsys.judge.sandbox.protocol.ending import ProcessEnded
from mlsys.judge.sandbox.protocol.shared_buffer import Tampered, Tensor
from mlsys.judge.sandbox.protocol.transport import Header, Received
from mlsys.judge.shared.messages import (
    Answer,
    CallFunction,
    CallSubject,
    Cell,
    Done,
    Failure,
    GetValue,
    IsFunction,
    LaunchKernel,
    Message,
    RunCells,
    RunSetup,
    RunTests,
    SubjectCalled,
    TrySubject,
    Value,
    header_of,
    is_failure,
    read_header,
)
from mlsys.judge.shared.run_cells import MAX_LINES
from mlsys.judge.shared.untrusted_text import long_texts
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
"""Longest call or launch on a GPU, compiling included, and longest timing of a race, in seconds.

A kernel compiles in about one second. During a timing, of all shapes together, no other question uses the GPU.
"""

FUNCTION = object()
"""Result of `Session.value` for a function."""

_A_STUDENT_MAY_CLAIM = ("wrong answer", "out of bounds", "not implemented", "error", "out of memory", "crashed")
"""Verdicts that a student's process may claim; none of them gives points."""

_A_REFUSAL = ("wrong answer", "out of bounds", "error")
"""Claims of a student's process that are an exception of tests: they refuse what they were given."""

_THE_LAUNCHER_MAY_CLAIM = (*_A_STUDENT_MAY_CLAIM, "timed out", "needs gpu")
"""Verdicts that a launcher may claim, which runs only our code."""

_SIGNALS = {4: "illegal instruction", 6: "abort", 7: "bus error", 8: "arithmetic error", 11: "segmentation fault"}


_M = TypeVar("_M", bound=Message)
_T = TypeVar("_T")


class StudentFailed(GradingError):
    """A failure of a sandboxed process; `lines` are the student's own lines on the way to it.

    `own_words` says that message and lines come from a process that runs the student's code, which can shape them;
    `lost`, that the process was killed from outside or lost with its sandbox, as far as we can tell, and may be tried
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

    setup: list[Cell]
    all: list[Cell]

    def kernel(self, name: str) -> KernelSource:
        """Return the checked source of a student's kernel."""
        return kernel_source((cell.source for cell in self.all), name)


class Session:
    """The processes of one question in a sandbox; `device` is where kernels run there, "cpu" or "cuda".

    On "cuda", make it inside `gpu_lock.shared()`.

    Attributes:
        guarded_calls: the calls with guard bands so far.
        keeps_words: whether `words` grows; a judge sets it when hidden tests begin.
        words: texts that values of the student's process have since had room for, with what each is, such as "a dict".
    """

    def __init__(self, sandbox: Sandbox, cells: QuestionCells, device: str, gpu_lock: GpuLock | None = None) -> None:
        self.cells = cells
        self.device = device
        self._gpu_lock = gpu_lock
        self.guarded_calls: list[GuardedCall] = []
        self.keeps_words = False
        self.words: dict[str, str] = {}
        self._sandbox = sandbox
        # For all processes of the question together, from the first one on: the judge's own imports take no time of it.
        self._deadline_s: float | None = None
        self._processes: dict[str, SandboxProcess] = {}
        self._raced = False  # whether the launcher has raced, and nothing else

    def close(self) -> None:
        """End all processes of the question."""
        for entry in list(self._processes):
            self.end(entry)

    def run(self) -> None:
        """Run the student's cells, unless they have run already.

        Raises:
            StudentFailed: they fail.
        """
        if STUDENT not in self._processes:
            self._start(STUDENT, RunCells(self.cells.all, self.device))

    def value(self, name: str) -> Any:
        """Return the plain value that the student's cells bind to `name`, or FUNCTION.

        Raises:
            StudentFailed: the cells do not bind the name, or bind it to a value that cannot be sent.
        """
        self.run()
        reply, arrays = self._ask(STUDENT, GetValue(name), IsFunction, Value)
        return self._kept(decode(reply.value, arrays, strided=False)) if isinstance(reply, Value) else FUNCTION

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], guarded: bool) -> Any:
        """Call one of the student's functions; guarded calls are kept, to be repeated without kernels."""
        self.run()
        result = self._call(name, args, kwargs, guarded)
        if guarded:
            self.guarded_calls.append(GuardedCall(name, args, kwargs, result))
        return result

    def call_without_kernels(self, calls: Sequence[GuardedCall]) -> Iterator[Any]:
        """Repeat calls in a new process in which kernel launches do nothing, and yield their results."""
        self._start(STUDENT, RunCells(self.cells.all, self.device, without_kernels=True))
        try:
            for call in calls:
                yield self._call(call.name, call.args, dict(call.kwargs), guarded=True)
        finally:
            self.end(STUDENT)

    def launch(
        self,
        kernel: KernelSource | str,
        launch: Callable[..., object],
        constants: Mapping[str, int],
        like: Any,
        inputs: Sequence[Any],
    ) -> Any:
        """Launch a kernel in the launcher, into an output like `like`, and return that output.

        The kernel is the student's of a name, or one that the judge has checked already.
        """
        if self._raced:
            self.end(LAUNCHER)
            self._raced = False
        arrays: list[Tensor] = []
        request = LaunchKernel(
            kernel if isinstance(kernel, KernelSource) else self.cells.kernel(kernel),
            dict(constants),
            launch.__name__,
            encode(tuple(inputs), arrays),
            shape=list(like.shape),
            dtype=dtype_name(like),
            device=self.device,
        )
        reply, results = self.ask_kernel_process(LAUNCHER, request, Value, arrays=arrays)
        return decode(reply.value, results, strided=False)

    def try_tests(self, name: str, subject: Subject, right: Subject) -> Outcome:
        """Run a student's tests on a function in a new process of the student's, which ends afterwards.

        The function's work is done in the launcher, which sees the arguments of a call and nothing else of the tests.

        Raises:
            StudentFailed: the tests do not end, end their process, use too much memory, or are not written yet.
            Suspicious: the process says something else than tests do.
        """
        self._start(STUDENT, RunCells(self.cells.all, self.device))
        could_tell = False
        request: Message = RunTests(name)
        arrays: list[Tensor] = []
        try:
            while True:
                reply, sent = self._ask(STUDENT, request, CallSubject, Value, arrays=arrays)
                if isinstance(reply, Value):
                    refused = is_refusal(decode(reply.value, sent, strided=False))
                    return Outcome(refused, could_tell, "they returned False" if refused else "")
                assert isinstance(reply, CallSubject)
                found, arrays = self._try_subject(reply, sent, subject, right)
                could_tell = could_tell or found.differs
                request = Answer(found.value, found.error, found.is_bad_input)
        except StudentFailed as error:
            if error.own_words and error.verdict in _A_REFUSAL:
                return Outcome(True, could_tell, str(error))
            raise
        finally:
            self.end(STUDENT)

    def _try_subject(
        self, asked: CallSubject, sent: list[Tensor], subject: Subject, right: Subject
    ) -> tuple[SubjectCalled, list[Tensor]]:
        args, kwargs = (decode(one, sent, strided=False) for one in (asked.args, asked.kwargs))
        if not (isinstance(args, tuple) and isinstance(kwargs, dict) and all(type(key) is str for key in kwargs)):
            raise Suspicious("The process called the function under test in a way that an honest one does not.")
        request = TrySubject(
            subject.call.__name__, subject.kernel, right.call.__name__, right.kernel, asked.args, asked.kwargs
        )
        try:
            return self.ask_kernel_process(LAUNCHER, request, SubjectCalled, arrays=sent)
        except StudentFailed as error:
            raise StudentFailed(error.verdict, f"A call of the function under test: {error}", lost=error.lost) from None

    def prepare_timing(self) -> None:
        """End the student's process, and the launcher if it has launched anything outside a race."""
        self.end(STUDENT)
        if not self._raced:
            self.end(LAUNCHER)  # with all that earlier launches left in its memory
        self._raced = True

    @contextmanager
    def alone_on_gpu(self, held_bytes: int) -> Iterator[int]:
        """Hold the GPU exclusively; the time of waiting for it counts for no process.

        Yields how many bytes of the GPU's memory other questions may hold, which wait for their own timing.

        Args:
            held_bytes: what the processes of this question may hold.
        """
        assert self._gpu_lock is not None, "on a CPU nothing is timed alone"
        asked_s = time.monotonic()
        with self._gpu_lock.exclusive(held_bytes) as others_bytes:
            self._allow(time.monotonic() - asked_s)
            try:
                yield others_bytes
            finally:
                done_s = time.monotonic()
        self._allow(time.monotonic() - done_s)  # other timings come first before this question goes on

    def _allow(self, waited_s: float) -> None:
        """Give all processes the time for which they have waited for others."""
        if self._deadline_s is not None:  # else nothing runs yet
            self._deadline_s += waited_s
        for process in self._processes.values():
            process.allow(waited_s)

    def ask_kernel_process(
        self, role: str, request: Message, kind: type[_M], *, arrays: Sequence[Tensor] = (), limit_s: float = math.inf
    ) -> tuple[_M, list[Tensor]]:
        """Send a request to the launcher or the reference, which is started if it does not run."""
        if role not in self._processes:
            self._start(role, RunSetup(self.cells.setup))
        return self._ask(role, request, kind, arrays=arrays, limit_s=limit_s)

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], guarded: bool) -> Any:
        arrays: list[Tensor] = []
        request = CallFunction(name, encode(args, arrays), encode(kwargs, arrays), guarded)
        reply, results = self._ask(STUDENT, request, Value, arrays=arrays)
        return self._kept(decode(reply.value, results, strided=False))

    def _kept(self, value: _T) -> _T:
        if self.keeps_words:
            self.words |= long_texts(value)
        return value

    def _start(self, role: str, request: RunCells | RunSetup) -> None:
        self.end(role)
        self._processes[role] = self._sandbox.open(ENTRIES[role])
        if self._deadline_s is None:
            self._deadline_s = time.monotonic() + self._sandbox.limits.wall_s
        self._ask(role, request, Done)

    def end(self, role: str) -> None:
        """End one process of the question, if it runs."""
        if process := self._processes.pop(role, None):
            process.close()

    def _ask(
        self,
        role: str,
        request: Message,
        *kinds: type[_M],
        arrays: Sequence[Tensor] = (),
        limit_s: float = math.inf,
    ) -> tuple[_M, list[Tensor]]:
        """Send a request to a process and return its reply, which must be of one of these kinds."""
        try:
            reply = self._exchange(role, header_of(request), arrays, limit_s)
            if is_failure(reply.header):
                _raise(read_header(reply.header, Failure), own_words=role == STUDENT)
            return read_header(reply.header, *kinds), reply.tensors
        except Tampered as error:
            raise Suspicious(f"The process answered in a way that an honest one does not: {error}.") from None

    def _exchange(self, role: str, header: Header, arrays: Sequence[Tensor], limit_s: float) -> Received:
        """Send a header to a process and return its answer, within the time of the question and of this request."""
        assert self._deadline_s is not None
        if self.device == "cuda":  # on a CPU, the question's own limit on computing is tighter
            limit_s = min(limit_s, MAX_CALL_S)
        left_s = self._deadline_s - time.monotonic()
        try:
            return self._processes[role].request(header, arrays, timeout_s=max(0.0, min(left_s, limit_s)))
        except ProcessEnded as error:
            if error.ending.kind == "timed out" and limit_s < left_s:
                raise StudentFailed(
                    "timed out",
                    f"Stopped after {MAX_CALL_S:g} s on the GPU, the longest that a call or a race may take.",
                ) from None
            raise _ended(error, self._sandbox) from None


def _ended(error: ProcessEnded, sandbox: Sandbox) -> StudentFailed:
    ending, limits = error.ending, sandbox.limits
    if ending.kind == "starved":
        return StudentFailed("timed out", "Other work on this machine left no time for it, in every try.", lost=True)
    if ending.kind == "timed out":
        return StudentFailed("timed out", f"Stopped after {limits.cpu_s} s of CPU time or {limits.wall_s:g} s in all.")
    if ending.kind == "out of memory":
        return StudentFailed("out of memory", f"Stopped when it used more than {limits.memory_bytes >> 20:,} MiB.")
    if ending.kind == "lost" or ending.signal == signal.SIGKILL:  # nobody here sent it
        return StudentFailed("crashed", "The process was killed, in every try.", lost=True)
    if ending.signal:
        return StudentFailed("crashed", f"The process died: {_SIGNALS.get(ending.signal, f'signal {ending.signal}')}.")
    return StudentFailed("crashed", "The process ended before its tests were done.")


def _raise(failure: Failure, own_words: bool) -> NoReturn:
    """Raise the failure that a process reports, as far as it may be believed; `own_words` for the student's process."""
    claims = _A_STUDENT_MAY_CLAIM if own_words else _THE_LAUNCHER_MAY_CLAIM
    verdict = failure.verdict if failure.verdict in claims else "error"
    lines = [line[:300] for line in failure.lines[:MAX_LINES]]
    raise StudentFailed(verdict, failure.message, lines, own_words=True)  # a kernel shapes the launcher's messages too
