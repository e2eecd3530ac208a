"""Timing a kernel beside a reference so that no call can have its result from anywhere but its own work.

A kernel sees all the memory of its process on the device, and may write there. So nothing that decides lies there:

- Candidate and reference each have a `Track`, in a process of its own when a class is graded.
- Before every lap, all inputs are new: drawn from a seed that did not exist before. Each call of a lap has inputs and
  an output of its own, and a lap is run once.
- What is right is computed on the reference's side, from the seed, for a part of the output of a call; both are chosen
  after the lap.
- Inputs, gaps between tensors, and the rest of the candidate's memory must be after the lap what they were before it.
- No time may be shorter than the bytes and the arithmetic need at the rates that the device reaches (`least_s`).
"""

import hashlib
import math
import secrets
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from mlsys.grading.checks import assert_close
from mlsys.grading.tolerances import is_close
from mlsys.grading.verdicts import OutOfBounds, Suspicious, WrongAnswer
from mlsys.measure.timing import Pair

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]
Config = Mapping[str, int]
Launch = Callable[..., object]
Candidate = tuple[Any, Config]
"""A kernel and its constants."""

ROUNDS = 5
"""Rounds of candidate, reference, reference, candidate."""

LAP_S = 0.02
"""Seconds that one lap should last, where memory and `MAX_CALLS` allow: long beside the 0.5 us of CUDA's events."""

MAX_CALLS = 64
"""Most calls of one lap, each with inputs and an output of its own."""

LAP_BYTES = 2**30
"""Most bytes that the tensors of one lap take, if they leave room for two calls."""

PART = 2**21
"""Most elements of an output that are compared after a lap; of the first lap, all are."""

GAP_BYTES = 64 * 1024
"""Bytes between two tensors; a stray store lands there."""

FASTER = 1.4
"""How many times faster than the library's product and than a copy a kernel may be before its time is suspicious.

A library reaches at least 0.8 of a device's arithmetic in a large product, a copy at least 0.85 of its bandwidth.
"""

_ALIGNMENT = 512  # bytes: as torch's own tensors on a GPU; a kernel's tensor descriptors need 128
_PAGE = 2**21  # bytes in which torch takes memory from a GPU: a whole number of them leaves no rest behind the buffer
_BLOCK = 32  # elements that stay together when inputs are drawn anew


@dataclass(frozen=True)
class Rates:
    """What the device reaches, measured beside the race: bytes and FLOPs per second, and bytes of its last cache."""

    bytes_per_s: float
    flops_per_s: float
    cache_bytes: int

    def least_s(self, calls: int, bytes_moved: int, flops: float) -> float:
        """Return the least credible seconds per call of a lap: what fits the cache may never have left it."""
        moved = max(0, calls * bytes_moved - 2 * self.cache_bytes) / calls
        return max(moved / (FASTER * self.bytes_per_s), flops / (FASTER * self.flops_per_s))


class Side(Protocol):
    """One of the two sides of a race: here, or in a process of its own."""

    def prepare(self) -> float:
        """Compile, run once, and return about how many seconds a call takes."""

    def load(self, calls: int) -> None:
        """Make room for laps of so many calls."""

    def lap(self, seed: int) -> float:
        """Draw all inputs anew from a seed, run one lap, and return its seconds per call."""

    def output(self, call: int, start: int, stop: int) -> "torch.Tensor":
        """Return what a call of the last lap has written, from one element to another, as one row."""

    def rest(self) -> None:
        """Give back the memory of the laps."""


class Judging(Side, Protocol):
    """The reference's side, which also knows what is right."""

    def agrees(self, seed: int, call: int, start: int, found: "torch.Tensor") -> bool:
        """Whether `found` is the result, from element `start` on, for the inputs that the seed gives to that call.

        Raises:
            WrongAnswer: `found` is a whole output, and wrong; the message says where.
        """

    def rates(self) -> Rates:
        """Measure what the device reaches."""


def run_race(candidate: Side, reference: Judging, *, elements: int, bytes_moved: int, flops: float = 0.0) -> Pair:
    """Time a candidate beside a reference, in rounds of ABBA, with every lap's result checked.

    Args:
        candidate: what is timed.
        reference: what it is compared with.
        elements: of one call's output.
        bytes_moved: bytes of one call's inputs and output.
        flops: floating-point operations of one call, where they are known.

    Raises:
        WrongAnswer: a result is wrong.
        OutOfBounds: something else than an output was written.
        Suspicious: the time is shorter than the work needs.
    """
    call_s = max(candidate.prepare(), reference.prepare())
    calls = calls_of_a_lap(call_s, bytes_moved)
    candidate.load(calls)
    reference.load(calls)

    def checked_lap(part: int = PART) -> float:
        seed = secrets.randbits(62)
        seconds = candidate.lap(seed)
        # Chosen when nothing can be changed any more.
        call, start = secrets.randbelow(calls), secrets.randbelow(max(1, elements - part + 1))
        if not reference.agrees(seed, call, start, candidate.output(call, start, min(start + part, elements))):
            reference.agrees(seed, call, 0, candidate.output(call, 0, elements))  # says what is wrong, and where
            raise WrongAnswer(
                "A result that was wrong in a part of it was right as a whole when it was looked at again."
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
    least_s = reference.rates().least_s(calls, bytes_moved, flops)
    if pair.candidate_s < least_s:
        raise Suspicious(
            f"{pair.candidate_s * 1e6:.1f} us is less than this work can take here, {least_s * 1e6:.1f} us by the "
            "bytes that it has to move and its arithmetic; a person will look at it."
        )
    return pair


def calls_of_a_lap(call_s: float, bytes_moved: int) -> int:
    """Return how many calls a lap has.

    >>> calls_of_a_lap(0.001, 10_000), calls_of_a_lap(0.001, 2**28), calls_of_a_lap(1.0, 10_000)
    (20, 2, 2)
    """
    wanted = math.ceil(LAP_S / max(call_s, 1e-9))
    return max(2, min(wanted, MAX_CALLS, LAP_BYTES // max(bytes_moved, 1)))


class Track:
    """A kernel with inputs and outputs of its own for every call of a lap, in one buffer with random gaps.

    Args:
        work: `work(out, *inputs)` runs once and writes into `out`.
        base: inputs; every call gets the same values in another order, with the same strides.
        like: the output's shape and dtype.
        device: where it runs, "cuda" or "cpu".
    """

    def __init__(
        self,
        work: Callable[..., object],
        base: "Sequence[torch.Tensor]",
        like: "tuple[Shape, torch.dtype]",
        device: str,
    ) -> None:
        import torch

        self.like = like
        self._work = work
        self._base = tuple(one.to(device) for one in base)
        self._device = device
        self._run: Callable[[], object] = lambda: None
        self._inputs: list[tuple[torch.Tensor, ...]] = []
        self._outputs: list[torch.Tensor] = []
        self._buffer = torch.empty(0, dtype=torch.uint8, device=device)

    @property
    def bytes_moved(self) -> int:
        """Bytes of the inputs and the output of one call."""
        shape, dtype = self.like
        return math.prod(shape) * dtype.itemsize + sum(tensor.nbytes for tensor in self._base)

    def prepare(self) -> float:
        """See `Side`."""
        self._lay_out(2)
        self._draw(secrets.randbits(62))
        self._call(0)  # compiles
        self._wait()
        started = time.perf_counter()
        self._call(1)
        self._wait()
        return time.perf_counter() - started

    def load(self, calls: int) -> None:
        """See `Side`."""
        self._lay_out(calls)
        self._draw(secrets.randbits(62))
        self._all()  # libraries set themselves up on a first call, which no graph may hold
        self._wait()
        self._run = self._captured() if self._device == "cuda" else self._all

    def lap(self, seed: int) -> float:
        """See `Side`.

        Raises:
            OutOfBounds: something else than an output has changed.
        """
        self._draw(seed)
        seconds = self._timed(seed)
        self._check(seed)
        return seconds

    def output(self, call: int, start: int, stop: int) -> "torch.Tensor":
        """See `Side`."""
        return self._outputs[call].view(-1)[start:stop].to("cpu", copy=True)

    def rest(self) -> None:
        """See `Side`."""
        self._run = lambda: None
        self._inputs, self._outputs, self._buffer = [], [], self._buffer[:0].clone()
        self._give_back()

    def inputs(self, seed: int, call: int) -> "tuple[torch.Tensor, ...]":
        """Return the inputs that a seed gives to one call, in memory of their own."""
        import torch

        generator = _generator(seed, call, self._device)
        return tuple(
            torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=self._device).copy_(
                _in_another_order(one, generator)
            )
            for one in self._base
        )

    def _lay_out(self, calls: int) -> None:
        """Take one buffer for all tensors of a lap; its end is there to be written right before the clock starts."""
        import torch

        self.rest()  # before the next one is taken
        specs = [(tuple(one.shape), one.stride(), one.dtype) for one in self._base]
        shape, dtype = self.like
        specs.append((shape, _contiguous(shape), dtype))
        places: list[list[int]] = []
        end = GAP_BYTES
        for _ in range(calls):
            places.append([])
            for shape, stride, dtype in specs:
                places[-1].append(end)
                end += -(-_extent(shape, stride) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT + GAP_BYTES
        self._end_of_tensors = end
        total = end + (2 * _cache_bytes() if self._device == "cuda" else 0)
        self._buffer = torch.empty(-(-total // _PAGE) * _PAGE, dtype=torch.uint8, device=self._device)
        self._places, self._specs = places, specs
        self._inputs, self._outputs = self._views(self._buffer)

    def _views(self, buffer: "torch.Tensor") -> "tuple[list[tuple[torch.Tensor, ...]], list[torch.Tensor]]":
        tensors = [
            [
                buffer.view(dtype).as_strided(shape, stride, place // dtype.itemsize)
                for place, (shape, stride, dtype) in zip(row, self._specs, strict=True)
            ]
            for row in self._places
        ]
        inputs = len(self._base)
        return [tuple(row[:inputs]) for row in tensors], [row[inputs] for row in tensors]

    def _draw(self, seed: int) -> None:
        """Fill the whole buffer with random bits, and the inputs with their values in a new order."""
        self._fill(self._buffer, self._inputs, seed)
        self._give_back()

    def _fill(self, buffer: "torch.Tensor", inputs: "list[tuple[torch.Tensor, ...]]", seed: int) -> None:
        import torch

        most = buffer[: self._end_of_tensors].view(torch.int32)  # a whole number of them, by the alignment
        most.random_(generator=_generator(seed, "tensors", self._device))
        self._fill_end(buffer, seed)
        for call, tensors in enumerate(inputs):
            generator = _generator(seed, call, self._device)
            for view, values in zip(tensors, self._base, strict=True):
                view.copy_(_in_another_order(values, generator))

    def _fill_end(self, buffer: "torch.Tensor", seed: int) -> None:
        import torch

        end = buffer[self._end_of_tensors :].view(torch.int32)
        end.random_(generator=_generator(seed, "end", self._device))

    def _call(self, call: int) -> None:
        self._work(self._outputs[call], *self._inputs[call])

    def _all(self) -> None:
        for call in range(len(self._inputs)):
            self._call(call)

    def _captured(self) -> Callable[[], object]:
        import torch

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._call(0)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._all()
        return graph.replay

    def _timed(self, seed: int) -> float:
        """Run the lap once and return the seconds per call."""
        calls = len(self._inputs)
        self._wait()
        if self._device != "cuda":
            started = time.perf_counter()
            self._run()
            return (time.perf_counter() - started) / calls
        import torch

        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._fill_end(self._buffer, seed)  # empties the cache, and keeps the GPU busy until all below is queued
        start.record()
        self._run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e-3 / calls

    def _check(self, seed: int) -> None:
        """Make sure that everything but the outputs is what it was before the lap."""
        import torch

        again = torch.empty_like(self._buffer)
        inputs, outputs = self._views(again)
        self._fill(again, inputs, seed)
        for mine, theirs in zip(outputs, self._outputs, strict=True):
            mine.view(torch.uint8).copy_(theirs.view(torch.uint8))
        same = torch.equal(again, self._buffer)
        if same:
            del again, inputs, outputs
            self._give_back()
            return
        changed = next(
            (
                f"it changed its input number {number + 1}"
                for mine, theirs in zip(inputs, self._inputs, strict=True)
                for number, (one, other) in enumerate(zip(mine, theirs, strict=True))
                if not torch.equal(one, other)
            ),
            "it wrote outside its output",
        )
        raise OutOfBounds(f"While the kernel was timed, {changed}. Write only into the result, and mask every store.")

    def _wait(self) -> None:
        if self._device == "cuda":
            import torch

            torch.cuda.synchronize()

    def _give_back(self) -> None:
        """Leave no freed memory with old content to this process."""
        if self._device == "cuda":
            import torch

            torch.cuda.empty_cache()


class Reference(Track):
    """The reference's track, and what is right.

    Args:
        work: as of a `Track`; None for the library's own way to the result.
        base: as of a `Track`.
        device: as of a `Track`.
        expected: the library's result, `expected(*inputs)`.
        what: what to call a result in messages.
        dtype: name of the format whose product the device's arithmetic is measured by.
    """

    def __init__(
        self,
        work: Callable[..., object] | None,
        base: "Sequence[torch.Tensor]",
        device: str,
        *,
        expected: "Callable[..., torch.Tensor]",
        what: str,
        dtype: str = "fp32",
    ) -> None:
        self._expected = expected
        self._what = what
        self._dtype = dtype
        example = expected(*(one.to(device) for one in base))
        like = tuple(example.shape), example.dtype
        super().__init__(work or (lambda _, *inputs: expected(*inputs)), base, like, device)

    def agrees(self, seed: int, call: int, start: int, found: "torch.Tensor") -> bool:
        """See `Judging`."""
        right = self._expected(*self.inputs(seed, call))
        part = right.reshape(-1)[start : start + found.numel()]
        if found.dtype == part.dtype and is_close(found.to(self._device), part):
            return True
        if found.numel() == right.numel():
            assert_close(found.reshape(right.shape), right.to("cpu"), what=self._what)
        return False

    def rates(self) -> Rates:
        """See `Judging`; a CPU's are not known, and no time of it is suspicious."""
        if self._device != "cuda":
            return Rates(math.inf, math.inf, 0)
        return measured_rates(self._dtype)


@cache
def measured_rates(dtype: str) -> Rates:
    """Measure a copy far larger than the cache, and the library's product of large matrices."""
    import torch

    from mlsys.measure.gpu_ceilings import product
    from mlsys.measure.timing import time_kernel

    source = torch.empty(2**28, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    copy_s = time_kernel(lambda: target.copy_(source), on_gpu=True, budget_s=0.02).median_s
    product_s = time_kernel(product(dtype, 4096, 4096, 4096), on_gpu=True, budget_s=0.02).median_s
    return Rates(2 * source.nbytes / copy_s, 2 * 4096**3 / product_s, _cache_bytes())


def _cache_bytes() -> int:
    import torch

    return int(torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size)


def _generator(seed: int, part: object, device: str) -> "torch.Generator":
    """A stream of random numbers for one part of a lap; the same in every process on the same device."""
    import torch

    own = int.from_bytes(hashlib.sha256(f"{seed}/{part}".encode()).digest()[:8], "big") >> 1
    return torch.Generator(device).manual_seed(own)


def _in_another_order(tensor: "torch.Tensor", generator: "torch.Generator") -> "torch.Tensor":
    """A tensor of the same values in another order; short runs stay together, which takes a fraction of the time."""
    import torch

    flat = tensor.reshape(-1)
    block = _BLOCK if flat.numel() >= 64 * _BLOCK else 1
    blocks = flat.numel() // block
    order = torch.randperm(blocks, generator=generator, device=flat.device)
    moved = flat[: blocks * block].view(blocks, block)[order].reshape(-1)
    return torch.cat([flat[blocks * block :], moved]).reshape(tensor.shape)


def _extent(shape: Shape, stride: Sequence[int]) -> int:
    """Elements from the first to the last of a strided tensor."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def _contiguous(shape: Shape) -> tuple[int, ...]:
    """Strides of a contiguous tensor.

    >>> _contiguous((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
