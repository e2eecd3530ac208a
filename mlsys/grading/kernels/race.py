"""Time a kernel against a reference, so that every call's result can only come from its own work.

A kernel can read and write all the memory of its process on the device. So nothing that decides the race is kept there:

- Candidate and reference each have a `Track`, in separate processes when a class is graded.
- Before every lap, all inputs are new: drawn from a new seed. Each call of a lap has its own inputs and output,
  and a lap is run once.
- The reference's side computes the right result from the seed, for a part of the output of one call; the call and the
  part are chosen after the lap.
- Inputs, gaps between tensors, and the rest of the candidate's memory must be unchanged after the lap.
- No time may be shorter than the bytes and the arithmetic need at the rates that the device reaches (`least_s`).
"""

import math
import secrets
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mlsys.grading.verdicts import NeedsGpu, Suspicious, WrongAnswer
from mlsys.measure.device import gpu_device, torch_sees_gpu
from mlsys.measure.gpu_jobs import other_jobs
from mlsys.measure.timing import Pair

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]
Config = Mapping[str, int]
Launch = Callable[..., object]
ROUNDS = 5
"""Rounds of candidate, reference, reference, candidate."""

LAP_S = 0.02
"""Seconds that one lap should last, if memory and `MAX_CALLS` allow: long compared with the 0.5 us of CUDA events."""

MAX_CALLS = 64
"""Most calls of one lap, each with its own inputs and output."""

LAP_BYTES = 2**29
"""Largest size of the tensors of one lap, in bytes, if it leaves room for two calls."""

MAX_COMPARED_ELEMENTS = 2**21
"""Most elements of an output that are compared after a lap; after the first lap, all are compared."""

MAX_CREDIBLE_SPEEDUP = 1.4
"""Largest credible speedup over the library's product and over a copy; a faster kernel is suspicious.

There is a margin because neither reaches what the device can do: on an H200 a copy moves 4.27 TB/s of the 4.8 in its
data sheet.
"""


@dataclass(frozen=True)
class Rates:
    """Rates that the device reaches, measured while nothing else runs: bytes and FLOPs per second; and its cache."""

    bytes_per_s: float
    flops_per_s: float
    cache_bytes: int

    def least_s(self, calls: int, bytes_moved: int, flops: float) -> float:
        """Return the shortest credible seconds per call of a lap; data that fit in the cache may never have left it."""
        moved = max(0, calls * bytes_moved - 2 * self.cache_bytes) / calls
        return max(moved / (MAX_CREDIBLE_SPEEDUP * self.bytes_per_s), flops / (MAX_CREDIBLE_SPEEDUP * self.flops_per_s))


def size(shape: Shape) -> str:
    """Write a shape, as in "8192 x 4096"."""
    return " x ".join(map(str, shape))


@dataclass(frozen=True)
class RaceSetup:
    """Setup of a race between a kernel and a reference, for one shape.

    Attributes:
        shape: the shape that is run.
        dtype: name of the format.
        constants: the kernel's constants.
        inputs: makes the input tensors; it is called once.
        outlines: makes tensors like them that have no numbers, on the device "meta".
        launch: `launch(kernel, constants, out, *inputs)` runs a kernel once and writes into `out`.
        expected: the result by the vendor's library, `expected(*inputs)`.
        reference: another kernel and its constants to time against; None for the library.
        capability: least CUDA compute capability.
        flops: floating-point operations of one call, where they are known.
    """

    shape: Shape
    dtype: str
    constants: Config
    inputs: "Callable[[], tuple[torch.Tensor, ...]]"
    outlines: "Callable[[], tuple[torch.Tensor, ...]]"
    launch: Launch
    expected: "Callable[..., torch.Tensor]"
    reference: tuple[Any, Config] | None = None
    capability: tuple[int, int] = (7, 5)
    flops: float = 0.0

    @property
    def label(self) -> str:
        """The result's name in messages, such as "result for shape (8, 4) with {'TILE': 16}"."""
        return f"result for shape {self.shape} with {dict(self.constants)}"


@dataclass(frozen=True)
class RaceResult:
    """The device of a race, and the times of both sides for each shape, in the order of the setups."""

    device: str
    pairs: tuple[Pair, ...]


class Side(Protocol):
    """One of the two sides of a race, in this process or in one of its own."""

    def prepare(self) -> float:
        """Compile, run once, and return about how many seconds a call takes."""

    def load(self, calls: int) -> None:
        """Allocate memory for laps of so many calls."""

    def lap(self, seed: int) -> float:
        """Draw new inputs from a seed, run one lap, and return its seconds per call."""

    def output(self, call: int, start: int, stop: int) -> "torch.Tensor":
        """Return what a call of the last lap has written, from one element to another, as one row."""

    def rest(self) -> None:
        """Free the memory of the laps."""


class Judging(Side, Protocol):
    """The reference's side, which also computes the right result."""

    def agrees(self, seed: int, call: int, start: int, found: "torch.Tensor") -> bool:
        """Return whether `found` is the result, from element `start` on, for the inputs that `seed` gives to that call.

        Raises:
            WrongAnswer: `found` is a whole output, and wrong; the message says where.
        """

    def rates(self, *, anew: bool = False) -> Rates:
        """Return the rates that the device reaches, as measured now or, unless `anew`, before."""


def check_gpu(capability: tuple[int, int], dtype: str) -> None:
    """Make sure that a question can be timed here, and that the library uses the same arithmetic as kernels.

    Raises:
        NeedsGpu: there is no GPU of that capability or with that dtype.
    """
    if not torch_sees_gpu():
        raise NeedsGpu("no CUDA GPU here, so nothing was timed; these points wait for one.")
    import torch

    found = torch.cuda.get_device_capability()
    if found < capability:
        raise NeedsGpu(
            f"{torch.cuda.get_device_name()} has compute capability {found[0]}.{found[1]}; this question needs "
            f"{capability[0]}.{capability[1]} or more, so it waits for such a device."
        )
    if dtype == "bf16" and not gpu_device().has_bf16:
        raise NeedsGpu(
            f"{torch.cuda.get_device_name()} has no bf16 arithmetic; this question waits for a GPU that has it."
        )
    torch.backends.cuda.matmul.allow_tf32 = False


def check_unused() -> None:
    """Make sure that no other job uses the GPU.

    Raises:
        NeedsGpu: naming the other job.
    """
    if others := other_jobs():
        raise NeedsGpu(f"this GPU is in use by {others}, so a timing would measure that work too; the points wait.")


def run_race(candidate: Side, reference: Judging, *, elements: int, bytes_moved: int, flops: float = 0.0) -> Pair:
    """Time a candidate against a reference, in rounds of ABBA, and check the result of every lap.

    Args:
        candidate: what is timed.
        reference: what it is compared with.
        elements: of one call's output.
        bytes_moved: bytes of one call's inputs and output.
        flops: floating-point operations of one call, where they are known.

    Raises:
        WrongAnswer: a result is wrong.
        OutOfBounds: a kernel wrote something other than an output.
        Suspicious: the time is shorter than the work needs.
    """
    call_s = max(candidate.prepare(), reference.prepare())
    calls = calls_of_a_lap(call_s, bytes_moved)
    candidate.load(calls)
    reference.load(calls)

    def checked_lap(part: int = MAX_COMPARED_ELEMENTS) -> float:
        seed = secrets.randbits(62)
        seconds = candidate.lap(seed)
        # Chosen when nothing can be changed any more.
        call, start = secrets.randbelow(calls), secrets.randbelow(max(1, elements - part + 1))
        if not reference.agrees(seed, call, start, candidate.output(call, start, min(start + part, elements))):
            reference.agrees(seed, call, 0, candidate.output(call, 0, elements))  # says what is wrong, and where
            raise WrongAnswer(
                "A part of the result was wrong, but the whole result was right when it was checked again."
            )
        return seconds

    checked_lap(part=elements)
    reference.lap(secrets.randbits(62))
    times = []
    for _ in range(ROUNDS):
        a1, b1 = checked_lap(), reference.lap(secrets.randbits(62))
        b2, a2 = reference.lap(secrets.randbits(62)), checked_lap()
        times.append(((a1 + a2) / 2, (b1 + b2) / 2))
    ratios = sorted(b_s / a_s for a_s, b_s in times)
    pair = Pair(
        candidate_s=statistics.median(a_s for a_s, _ in times),
        reference_s=statistics.median(b_s for _, b_s in times),
        ratio=statistics.median(ratios),
        low=ratios[0],
        high=ratios[-1],
    )
    candidate.rest()
    reference.rest()
    for anew in (False, True):  # nobody is suspicious by rates of another minute
        least_s = reference.rates(anew=anew).least_s(calls, bytes_moved, flops)
        if pair.candidate_s >= least_s:
            return pair
    raise Suspicious(
        f"{pair.candidate_s * 1e6:.1f} us is faster than possible here: the bytes and the arithmetic of this work "
        f"take at least {least_s * 1e6:.1f} us. A person will look at it."
    )


def calls_of_a_lap(call_s: float, bytes_moved: int) -> int:
    """Return how many calls a lap has.

    >>> calls_of_a_lap(0.001, 10_000), calls_of_a_lap(0.001, 2**27), calls_of_a_lap(1.0, 10_000)
    (20, 4, 2)
    """
    wanted = math.ceil(LAP_S / max(call_s, 1e-9))
    return max(2, min(wanted, MAX_CALLS, LAP_BYTES // max(bytes_moved, 1)))
