"""Sandboxed process that launches and times checked kernels with the lab's own code, and runs nothing else.

Entry point of a process in a sandbox. It gets the lab's setup, kernels as text that `mlsys.grading.kernels.source` has
checked, and inputs. It allocates, poisons and guards every buffer itself. In a race the student's kernel has one such
process and the reference another: see `mlsys.grading.kernels.race`.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from types import ModuleType
from typing import Any, assert_never, get_args

from mlsys.core.cells import run_cell
from mlsys.grading.kernels.guard import launch_guarded
from mlsys.grading.kernels.race import check_gpu
from mlsys.grading.kernels.source import KernelSource
from mlsys.grading.kernels.track import Reference, Track, launching
from mlsys.grading.subjects import Called, Subject, called, compared
from mlsys.judge.inside.checked_kernel import define, files_of
from mlsys.judge.sandbox.protocol.channel import Channel
from mlsys.judge.sandbox.protocol.shared_buffer import Tensor
from mlsys.judge.shared.messages import (
    CandidatePrepared,
    Cell,
    CompareOutput,
    Comparison,
    DeviceRates,
    Done,
    EndLaps,
    Failure,
    LapTime,
    LauncherRequest,
    LaunchKernel,
    LoadLaps,
    LookAtMemory,
    MeasureRates,
    Message,
    PrepareCandidate,
    PrepareReference,
    ReadOutput,
    ReferencePrepared,
    RunLap,
    RunSetup,
    SubjectCalled,
    TakenMemory,
    TrySubject,
    Value,
    header_of,
    read_header,
)
from mlsys.judge.shared.run_cells import describe_failure
from mlsys.judge.shared.values import decode, encode
from mlsys.measure.device import gpu_device
from mlsys.measure.gpu_jobs import taken_bytes

KERNEL = "your kernel"
REFERENCE_KERNEL = "the reference kernel"
KERNEL_UNDER_TEST = "the kernel under test"
RACE_DEVICE = "cuda"
MAX_KEPT = 400
"""Most results of functions under test that are kept: tests call each function twice with the same arguments."""
MAX_KEPT_BYTES = 2**20
"""Largest result that is kept, in bytes."""


def serve(channel: Channel) -> None:
    """Answer requests until the judge closes the process."""
    launcher = Launcher()
    with suppress(EOFError):
        while True:
            header, arrays = channel.receive()
            results: list[Tensor] = []
            reply: Message
            try:
                reply = launcher.answer(read_header(header, *get_args(LauncherRequest)), arrays, results)
            except Exception as error:
                verdict, lines = describe_failure(error, files_of(KERNEL))
                reply, results = Failure(verdict.name, verdict.message, lines), []
            channel.reply(header_of(reply), results)


class Launcher:
    """State of a launcher: the names of the lab's setup, and its side of a race, a track for each shape."""

    def __init__(self) -> None:
        self.setup: dict[str, Any] = {}
        self._tracks: dict[int, Track] = {}
        self._number = 0  # of the shape that is timed
        self._called: dict[tuple[str, str, KernelSource | None, str], Called] = {}

    def answer(self, request: LauncherRequest, arrays: list[Tensor], results: list[Tensor]) -> Message:
        """Carry out one request; tensors of the reply go into `results`."""
        match request:
            case RunSetup():
                self.setup.update(trusted_names(request.cells))
                give_descriptors_room()
                return Done()
            case LaunchKernel():
                return Value(encode(launch(self.setup, request, arrays), results))
            case TrySubject():
                return self._try_subject(request, arrays, results)
            case PrepareReference():
                return self._prepare_reference(request, arrays)
            case PrepareCandidate():
                return self._prepare_candidate(request, arrays)
            case LookAtMemory():
                return TakenMemory(taken_bytes())
            case LoadLaps():
                self._number = request.number
                self.track.load(request.calls)
                return Done()
            case RunLap():
                return LapTime(self.track.lap(request.seed))
            case ReadOutput():
                return Value(encode(self.track.output(request.call, request.start, request.stop), results))
            case CompareOutput():
                found = decode(request.found, arrays)
                return Comparison(self.reference.agrees(request.seed, request.call, request.start, found))
            case EndLaps():
                self.track.rest()
                return Done()
            case MeasureRates():
                return DeviceRates(**asdict(self.reference.rates(anew=request.anew)))
            case _:
                assert_never(request)

    @property
    def track(self) -> Track:
        """The side of a race, for the shape that is timed."""
        return self._tracks[self._number]

    @property
    def reference(self) -> Reference:
        """The side of a race, which is the reference's, for the shape that is timed."""
        track = self.track
        assert isinstance(track, Reference)
        return track

    def _try_subject(self, request: TrySubject, arrays: list[Tensor], results: list[Tensor]) -> SubjectCalled:
        asked = digest_of((request.args, request.kwargs), arrays)
        args, kwargs = decode(request.args, arrays), decode(request.kwargs, arrays)

        def result(role: str, call: str, kernel: KernelSource | None) -> Called:
            # A right copy is called anew for each of its roles: it must not take less time than a mutant.
            key = role, call, kernel, asked
            if key in self._called:
                return self._called[key]
            found = called(Subject(self.setup[call], kernel), args, kwargs, partial(define, label=KERNEL_UNDER_TEST))
            if getattr(found.value, "nbytes", 0) <= MAX_KEPT_BYTES:
                self._called[key] = found
                if len(self._called) > MAX_KEPT:
                    del self._called[next(iter(self._called))]
            return found

        expected = result("right", request.right_call, request.right_kernel)
        found = compared(result("tested", request.call, request.kernel), expected)
        return SubjectCalled(encode(found.value, results), found.error, found.is_bad_input, found.differs)

    def _prepare_reference(self, request: PrepareReference, arrays: list[Tensor]) -> ReferencePrepared:
        import torch

        check_gpu(request.capability, request.dtype)
        kernel = request.kernel and define(request.kernel, REFERENCE_KERNEL)
        work = launching(self.setup[request.launch], kernel, request.constants) if kernel else None
        expected = self.setup.get(request.expected) or getattr(torch, request.expected)
        about = {"expected": expected, "what": request.what, "dtype": request.dtype}
        self._tracks[request.number] = made = Reference(work, decode(request.inputs, arrays), RACE_DEVICE, **about)
        call_s = made.prepare()
        shape, dtype = made.like
        return ReferencePrepared(
            call_s,
            list(shape),
            str(dtype).removeprefix("torch."),
            made.elements,
            made.bytes_moved,
            gpu_device().name,
            held_bytes(),
        )

    def _prepare_candidate(self, request: PrepareCandidate, arrays: list[Tensor]) -> CandidatePrepared:
        import torch

        check_gpu(request.capability, request.dtype)
        work = launching(self.setup[request.launch], define(request.kernel, KERNEL), request.constants)
        like = tuple(request.out_shape), getattr(torch, request.out_dtype)
        self._tracks[request.number] = made = Track(work, decode(request.inputs, arrays), like, RACE_DEVICE)
        return CandidatePrepared(made.prepare(), held_bytes())


def held_bytes() -> int:
    """Return how many bytes of the GPU's memory torch holds here; none on a CPU."""
    import torch

    return torch.cuda.memory_reserved() if RACE_DEVICE == "cuda" else 0


def digest_of(header: object, arrays: list[Tensor]) -> str:
    """Return a digest of arguments as they were sent."""
    content = hashlib.sha256(json.dumps(header).encode())
    for array in arrays:
        content.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return content.hexdigest()


def trusted_names(cells: list[Cell]) -> dict[str, Any]:
    """Run the lab's own setup cells and return the names that they define."""
    module = ModuleType("setup")
    for cell in cells:
        run_cell(cell.source, cell.label, module.__dict__)
    return module.__dict__


def give_descriptors_room() -> None:
    """Let kernels make tensor descriptors on a GPU, as a notebook may: Triton asks the caller for memory to keep them.

    Students do so in a cell of theirs, which does not run here.
    """
    import torch
    import triton

    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=RACE_DEVICE))


def launch(setup: dict[str, Any], request: LaunchKernel, arrays: list[Tensor]) -> Any:
    """Launch the kernel once on guarded buffers, and return the output."""
    import torch

    kernel = define(request.kernel, KERNEL)
    inputs = decode(request.inputs, arrays, request.device)
    dtype = getattr(torch, request.dtype)
    return launch_guarded(kernel, request.constants, inputs, tuple(request.shape), dtype, setup[request.launch])
