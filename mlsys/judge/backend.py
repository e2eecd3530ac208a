"""The judge's backend: a student's functions and kernels run in the processes of a session.

In the judge, a test gets a student's functions as `StudentFunction`s, which the judge makes. Before a race the
student's process ends. Kernel and reference then run in one process each, and the reference's side computes the right
result.
"""

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from mlsys.errors import a_kind
from mlsys.grading.kernels.race import Launch, RaceResult, RaceSetup, Rates, run_race
from mlsys.grading.kernels.source import KernelSource, kernel_source
from mlsys.grading.subjects import Outcome, Subject
from mlsys.grading.verdicts import NeedsGpu, NotAKernel, WrongAnswer
from mlsys.judge.sandbox.protocol.shared_buffer import Tensor
from mlsys.judge.session import LAUNCHER, MAX_CALL_S, REFERENCE, Session
from mlsys.judge.shared.messages import (
    CandidatePrepared,
    CompareOutput,
    Comparison,
    DeviceRates,
    Done,
    EndLaps,
    LapTime,
    LoadLaps,
    LookAtMemory,
    MeasureRates,
    Message,
    PrepareCandidate,
    PrepareReference,
    ReadOutput,
    ReferencePrepared,
    RunLap,
    TakenMemory,
    Value,
)
from mlsys.judge.shared.values import decode, encode
from mlsys.measure.gpu_jobs import CONTEXT_BYTES
from mlsys.measure.timing import Pair

if TYPE_CHECKING:
    import torch

_M = TypeVar("_M", bound=Message)

known_rates: dict[tuple[str, str], Rates] = {}
"""What this process has found out about its GPU, by its name and the name of a format."""

SETTLE_S = 5.0
"""Longest time for which memory may come back that a process has just held, in seconds."""


class StudentFunction:
    """A function that only the student's cells define, as a test sees it; a call runs in the student's process."""

    def __init__(self, name: str, session: Session) -> None:
        self.__name__ = name
        self._session = session

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the student's function and return its result."""
        return self._session.call(self.__name__, args, kwargs, guarded=False)

    def __getitem__(self, grid: object) -> Any:
        """Refuse a launch, which only the student's own function or `grading.check_kernel` may do."""
        raise TypeError(f"a test cannot launch {self.__name__}; it calls functions only")


class SessionBackend:
    """The backend of a judge, which asks the processes of one question."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """See `Backend`."""
        if not isinstance(function, StudentFunction):  # a plain value of the student's
            raise TypeError(f"{type(function).__name__!r} object is not callable")
        return self._session.call(function.__name__, args, dict(kwargs), guarded=True)

    def launch(
        self,
        kernel: Any,
        constants: Mapping[str, int],
        inputs: "Sequence[torch.Tensor]",
        like: "torch.Tensor",
        launch: Launch,
    ) -> "torch.Tensor":
        """See `Backend`."""
        # A test makes a `KernelSource` of a text that it has; nothing that a student's process sends becomes one.
        source = kernel if isinstance(kernel, KernelSource) else _name_of(kernel)
        out: torch.Tensor = self._session.launch(source, launch, constants, like, inputs)
        return out

    def race(self, kernel: Any, setups: Sequence[RaceSetup]) -> RaceResult:
        """See `Backend`.

        All shapes are compiled and run once first, so that the GPU is held exclusively once, and for the timing alone.
        """
        session = self._session
        source = session.cells.kernel(_name_of(kernel))  # refused on any machine
        references = [_reference_of(setup) for setup in setups]  # so that a lab's fault shows on any machine, too
        if session.device != "cuda":
            raise NeedsGpu("graded without a CUDA GPU, so nothing was timed; these points wait for one.")
        session.prepare_timing()
        shapes = [
            self._prepare_shape(number, source, setup, *reference)
            for number, (setup, reference) in enumerate(zip(setups, references, strict=True))
        ]
        held_bytes = 2 * CONTEXT_BYTES + shapes[-1].prepared.held_bytes + shapes[-1].started.held_bytes
        with session.alone_on_gpu(held_bytes) as others_bytes:
            until_s = time.monotonic() + MAX_CALL_S
            try:
                pairs = tuple(shape.timed(until_s, held_bytes + others_bytes) for shape in shapes)
            except BaseException:
                session.end(LAUNCHER)  # others wait for the memory that they hold
                session.end(REFERENCE)
                raise
        return RaceResult(shapes[0].prepared.device, pairs)

    def _prepare_shape(
        self,
        number: int,
        source: KernelSource,
        setup: RaceSetup,
        reference: KernelSource | None,
        constants: dict[str, int],
    ) -> "_Shape":
        """Have both sides of a race compile and run their kernels once."""
        session = self._session
        arrays: list[Tensor] = []
        inputs = encode(tuple(setup.inputs()), arrays)
        prepared, _ = session.ask_kernel_process(
            REFERENCE,
            PrepareReference(
                number,
                inputs,
                setup.expected.__name__,
                setup.label,
                setup.dtype,
                setup.capability,
                setup.launch.__name__,
                reference,
                constants,
            ),
            ReferencePrepared,
            arrays=arrays,
        )
        started, _ = session.ask_kernel_process(
            LAUNCHER,
            PrepareCandidate(
                number,
                inputs,
                source,
                dict(setup.constants),
                setup.launch.__name__,
                setup.dtype,
                setup.capability,
                prepared.out_shape,
                prepared.out_dtype,
            ),
            CandidatePrepared,
            arrays=arrays,
        )
        return _Shape(session, number, setup, prepared, started)

    def try_tests(self, tests: Any, subject: Subject, right: Subject) -> Outcome:
        """See `Backend`."""
        if not isinstance(tests, StudentFunction):
            raise WrongAnswer(f"the tests must be a function, and this is {a_kind(tests)}")
        return self._session.try_tests(tests.__name__, subject, right)


def _reference_of(setup: RaceSetup) -> tuple[KernelSource | None, dict[str, int]]:
    """Return the source of the lab's reference kernel and its constants; no source for the library."""
    if setup.reference is None:
        return None, {}
    kernel, constants = setup.reference
    return kernel_source([inspect.getsource(kernel.fn)], kernel.__name__), dict(constants)


def _name_of(kernel: object) -> str:
    """Return the name of a student's kernel.

    Raises:
        NotAKernel: the student's name is bound to a plain value.
    """
    if not isinstance(kernel, StudentFunction):
        raise NotAKernel(f"a kernel must be a function with @triton.jit, and this is {a_kind(kernel)}.")
    return kernel.__name__


@dataclass(frozen=True)
class _Shape:
    """A shape of a race that both sides have prepared: the reference, and then the candidate."""

    session: Session
    number: int
    setup: RaceSetup
    prepared: ReferencePrepared
    started: CandidatePrepared

    def timed(self, until_s: float, held_bytes: int) -> Pair:
        """Time the candidate against the reference, while this grading may hold so much of the GPU's memory."""
        session, kind = self.session, (self.prepared.device, self.setup.dtype)
        candidate = _RemoteSide(session, LAUNCHER, self.number, kind, self.started.call_s, until_s)
        candidate.check_unused(held_bytes)
        reference = _RemoteSide(session, REFERENCE, self.number, kind, self.prepared.call_s, until_s)
        elements, bytes_moved = self.prepared.elements, self.prepared.bytes_moved
        return run_race(candidate, reference, elements=elements, bytes_moved=bytes_moved, flops=self.setup.flops)


@dataclass(frozen=True)
class _RemoteSide:
    """One side of a race in a separate process, which has already run the work once; `kind` is of the known rates."""

    session: Session
    role: str
    number: int
    kind: tuple[str, str]
    call_s: float
    until_s: float

    def check_unused(self, held_bytes: int) -> None:
        """Make sure that nothing but this grading holds much of the GPU's memory: so another job shows in a sandbox.

        Args:
            held_bytes: what the questions of this grading may hold, this one and those that wait for the GPU.

        Raises:
            NeedsGpu: there is another job.
        """
        settled_s = time.monotonic() + SETTLE_S
        while (taken := self._taken_bytes()) > held_bytes:
            if time.monotonic() > settled_s:
                raise NeedsGpu(
                    f"{taken / 2**30:.1f} GiB of this GPU's memory are in use, and this grading can hold "
                    f"{held_bytes / 2**30:.1f} GiB: a timing would measure another job too; the points wait."
                )
            time.sleep(SETTLE_S / 50)

    def _taken_bytes(self) -> int:
        return self._ask(LookAtMemory(), TakenMemory)[0].taken_bytes

    def prepare(self) -> float:
        return self.call_s

    def load(self, calls: int) -> None:
        self._ask(LoadLaps(self.number, calls), Done)

    def lap(self, seed: int) -> float:
        return self._ask(RunLap(seed), LapTime)[0].call_s

    def output(self, call: int, start: int, stop: int) -> Any:
        reply, results = self._ask(ReadOutput(call, start, stop), Value)
        return decode(reply.value, results, strided=False)

    def agrees(self, seed: int, call: int, start: int, found: Any) -> bool:
        arrays: list[Tensor] = []
        return self._ask(CompareOutput(seed, call, start, encode(found, arrays)), Comparison, arrays)[0].agrees

    def rest(self) -> None:
        self._ask(EndLaps(), Done)

    def rates(self, *, anew: bool = False) -> Rates:
        if anew or self.kind not in known_rates:
            rates = self._ask(MeasureRates(anew), DeviceRates)[0]
            known_rates[self.kind] = Rates(rates.bytes_per_s, rates.flops_per_s, rates.cache_bytes)
        return known_rates[self.kind]

    def _ask(self, request: Message, kind: type[_M], arrays: Sequence[Tensor] = ()) -> tuple[_M, list[Tensor]]:
        limit_s = max(0.0, self.until_s - time.monotonic())
        return self.session.ask_kernel_process(self.role, request, kind, arrays=arrays, limit_s=limit_s)
