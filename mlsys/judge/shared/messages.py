"""Messages between the judge and the processes of a question: requests, and the replies to them.

A message travels as the header of `mlsys.judge.sandbox.protocol.transport`, which limits its length and depth; its
tensors travel with it. A field that is called encoded holds the output of `values.encode`. A header that does not have
exactly the fields of its message, in the right types, is tampered with.
"""

from contextlib import suppress
from typing import Any, Literal, TypeVar

import msgspec

from mlsys.grading.kernels.source import KernelSource
from mlsys.judge.sandbox.protocol.shared_buffer import Tampered
from mlsys.judge.sandbox.protocol.transport import Header


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """A message; "type" in its header says which."""


class Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cell that runs, as plain Python.

    Attributes:
        kind: a cell of the lab's setup, an answer, or statements of another cell.
        label: what messages call it.
        source: its text.
        keep: numbers of the statements that run, of an "added" cell.
    """

    kind: Literal["setup", "answer", "added"]
    label: str
    source: str
    keep: list[int] = []


class RunCells(Message, frozen=True, tag="run"):
    """Ask the student's process to run cells in order.

    Attributes:
        cells: all cells of the question.
        device: where tensors of later calls go, "cpu" or "cuda".
        without_kernels: whether kernels that are launched after the cells do nothing.
    """

    cells: list[Cell]
    device: str
    without_kernels: bool = False


class GetValue(Message, frozen=True, tag="get"):
    """Ask the student's process for the value that its cells bind to a name."""

    name: str


class CallFunction(Message, frozen=True, tag="call"):
    """Ask the student's process to call a function; `args` and `kwargs` are encoded."""

    name: str
    args: Any
    kwargs: Any
    guarded: bool


class RunTests(Message, frozen=True, tag="tests"):
    """Ask the student's process to run tests: to call its function `name` with a function to test."""

    name: str


class Answer(Message, frozen=True, tag="answer"):
    """Answer a `CallSubject`, in a request of its own: an encoded value, or the words of an error.

    Attributes:
        value: the result, encoded.
        error: what went wrong; empty if nothing did.
        is_bad_input: the lab's own function refuses the arguments.
    """

    value: Any
    error: str = ""
    is_bad_input: bool = False


class RunSetup(Message, frozen=True, tag="setup"):
    """Ask a launcher to run the lab's setup cells."""

    cells: list[Cell]


class LaunchKernel(Message, frozen=True, tag="launch"):
    """Ask a launcher to launch a checked kernel once.

    Attributes:
        kernel: its source.
        constants: the kernel's, as the test gives them.
        launch: name of the lab's function that launches.
        inputs: tensors, encoded.
        shape: of the output.
        dtype: torch's name of the output's.
        device: "cpu" or "cuda".
    """

    kernel: KernelSource
    constants: dict[str, Any]
    launch: str
    inputs: Any
    shape: list[int]
    dtype: str
    device: str


class TrySubject(Message, frozen=True, tag="subject"):
    """Ask a launcher to call a function under test, and the right one with the same arguments.

    Attributes:
        call: name of the lab's function that tests are given.
        kernel: source of the kernel behind it, if there is one.
        right_call: name of the lab's function for the right result.
        right_kernel: source of the right kernel.
        args: encoded.
        kwargs: encoded.
    """

    call: str
    kernel: KernelSource | None
    right_call: str
    right_kernel: KernelSource | None
    args: Any
    kwargs: Any


class PrepareReference(Message, frozen=True, tag="prepare reference"):
    """Ask a launcher to prepare the reference's side of a race for one shape.

    Attributes:
        number: of the shape in its race.
        inputs: tensors, encoded.
        expected: name of the function that gives the right result: of the lab's setup, or else of torch.
        what: the result's name in messages.
        dtype: name of the format.
        capability: least CUDA compute capability.
        launch: name of the lab's function that launches.
        kernel: the reference kernel's source; None for the library.
        constants: of the reference kernel.
    """

    number: int
    inputs: Any
    expected: str
    what: str
    dtype: str
    capability: tuple[int, int]
    launch: str
    kernel: KernelSource | None = None
    constants: dict[str, int] = {}


class PrepareCandidate(Message, frozen=True, tag="prepare candidate"):
    """Ask a launcher to prepare the student's side of a race for one shape.

    Attributes:
        number: of the shape in its race.
        inputs: tensors, encoded.
        kernel: its source.
        constants: of the kernel.
        launch: name of the lab's function that launches.
        dtype: name of the format.
        capability: least CUDA compute capability.
        out_shape: of the reference's output.
        out_dtype: torch's name of the reference's output's.
    """

    number: int
    inputs: Any
    kernel: KernelSource
    constants: dict[str, int]
    launch: str
    dtype: str
    capability: tuple[int, int]
    out_shape: list[int]
    out_dtype: str


class LookAtMemory(Message, frozen=True, tag="look"):
    """Ask how much of the GPU's memory others hold."""


class LoadLaps(Message, frozen=True, tag="load"):
    """Ask for memory for laps of so many calls; what follows, up to `EndLaps`, is about this shape.

    Attributes:
        number: of the shape in its race, as it was prepared.
        calls: of a lap.
    """

    number: int
    calls: int


class RunLap(Message, frozen=True, tag="lap"):
    """Ask for one lap with the inputs of a seed."""

    seed: int


class ReadOutput(Message, frozen=True, tag="output"):
    """Ask for elements of what a call of the last lap has written."""

    call: int
    start: int
    stop: int


class CompareOutput(Message, frozen=True, tag="compare"):
    """Ask the reference's side whether `found`, encoded, is right from element `start` on."""

    seed: int
    call: int
    start: int
    found: Any


class EndLaps(Message, frozen=True, tag="rest"):
    """Ask a side to free the memory of its laps."""


class MeasureRates(Message, frozen=True, tag="rates"):
    """Ask the reference's side for the rates of the device; `anew`, to measure them even if it has."""

    anew: bool


StudentRequest = RunCells | GetValue | CallFunction | RunTests | Answer
LauncherRequest = (
    RunSetup
    | LaunchKernel
    | TrySubject
    | PrepareReference
    | PrepareCandidate
    | LookAtMemory
    | LoadLaps
    | RunLap
    | ReadOutput
    | CompareOutput
    | EndLaps
    | MeasureRates
)


class Done(Message, frozen=True, tag="done"):
    """The request is carried out."""


class TakenMemory(Message, frozen=True, tag="taken"):
    """Bytes of the GPU's memory that torch does not hold in this process: of others, and of CUDA itself."""

    taken_bytes: int


class Value(Message, frozen=True, tag="value"):
    """A result, encoded."""

    value: Any


class CallSubject(Message, frozen=True, tag="call subject"):
    """Tests that run in the student's process call the function under test; `args` and `kwargs` are encoded."""

    args: Any
    kwargs: Any


class SubjectCalled(Message, frozen=True, tag="subject called"):
    """What the function under test gave, as in `Answer`, and whether the right function gives something else."""

    value: Any
    error: str
    is_bad_input: bool
    differs: bool


class IsFunction(Message, frozen=True, tag="function"):
    """The name is bound to a function or a kernel."""


class Failure(Message, frozen=True, tag="failure"):
    """The request failed: a verdict, a message, and the student's own lines on the way to it."""

    verdict: str
    message: str
    lines: list[str]


class ReferencePrepared(Message, frozen=True, tag="reference prepared"):
    """The reference's side is prepared: seconds of a call, the output, bytes moved by a call, and the device.

    `held_bytes` is the memory that torch holds there, for all shapes that are prepared.
    """

    call_s: float
    out_shape: list[int]
    out_dtype: str
    elements: int
    bytes_moved: int
    device: str
    held_bytes: int


class CandidatePrepared(Message, frozen=True, tag="candidate prepared"):
    """The kernel's side is prepared: about how many seconds a call takes, and the memory that torch holds there."""

    call_s: float
    held_bytes: int


class LapTime(Message, frozen=True, tag="lap time"):
    """Seconds of each call of a lap."""

    call_s: float


class Comparison(Message, frozen=True, tag="comparison"):
    """Whether an output is right."""

    agrees: bool


class DeviceRates(Message, frozen=True, tag="device rates"):
    """Rates of the device, as `mlsys.grading.kernels.race.Rates` has them."""

    bytes_per_s: float
    flops_per_s: float
    cache_bytes: int


_M = TypeVar("_M", bound=Message)


def header_of(message: Message) -> Header:
    """Return the header in which a message travels."""
    header: Header = msgspec.to_builtins(message)
    return header


def is_failure(header: Header) -> bool:
    """Return whether a header claims to be a failure."""
    return bool(header.get("type") == "failure")


def read_header(header: Header, *kinds: type[_M]) -> _M:
    """Read a message that must be one of these kinds.

    Raises:
        Tampered: it is none of them, or does not have exactly the fields of its kind, in the right types.
    """
    name = header.get("type")
    kind = next((kind for kind in kinds if kind.__struct_config__.tag == name), None)
    if kind is None:
        raise Tampered(f"a message of the wrong kind: {str(name)[:100]}")
    try:
        return msgspec.convert(header, kind, strict=True)
    except msgspec.ValidationError as error:
        raise Tampered(f"a message of the wrong shape: {error}") from None


# msgspec gathers what it needs to read a kind on the first time: here, before a student's code shares the process.
for _kind in Message.__subclasses__():
    with suppress(msgspec.ValidationError):
        msgspec.convert({}, _kind)
