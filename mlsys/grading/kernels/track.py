"""One side of a race: a kernel with separate inputs and outputs for every call of a lap; and the reference's side."""

import math
import secrets
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from mlsys.grading.checks.assertions import assert_close
from mlsys.grading.checks.tolerances import is_close
from mlsys.grading.kernels.guard import wait_for_kernels
from mlsys.grading.kernels.race import Config, Launch, Rates, Shape
from mlsys.grading.verdicts import OutOfBounds

if TYPE_CHECKING:
    import torch

GAP_BYTES = 64 * 1024
"""Gap between two tensors, in bytes; a stray store lands there."""

_ALIGNMENT = 512  # bytes: as torch's own tensors on a GPU; a kernel's tensor descriptors need 128
_PAGE = 2**21  # bytes in which torch takes memory from a GPU: a whole number of them leaves no rest behind the buffer


class Track:
    """A kernel with separate inputs and outputs for every call of a lap, in one buffer with random gaps.

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
        there = [one.to(device) for one in base]
        shape, dtype = like
        self._specs = [(tuple(one.shape), one.stride(), one.dtype) for one in there]
        self._specs.append((shape, _contiguous(shape), dtype))
        self._values = [one.reshape(-1).clone() for one in there]
        self._device = device
        self._run: Callable[[], object] = lambda: None
        self._inputs: list[tuple[torch.Tensor, ...]] = []
        self._outputs: list[torch.Tensor] = []
        self._buffer = torch.empty(0, dtype=torch.uint8, device=device)

    @property
    def elements(self) -> int:
        """Elements of the output of one call."""
        return math.prod(self.like[0])

    @property
    def bytes_moved(self) -> int:
        """Bytes of the inputs and the output of one call."""
        shape, dtype = self.like
        return math.prod(shape) * dtype.itemsize + sum(values.nbytes for values in self._values)

    def prepare(self) -> float:
        """See `Side`."""
        self._lay_out(2)
        self._draw(secrets.randbits(62))
        self._call(0)  # compiles
        if self._device == "cuda":
            wait_for_kernels()
        started = time.perf_counter()
        self._call(1)
        self._wait()
        call_s = time.perf_counter() - started
        self._give_back()
        return call_s

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
        """Return the inputs that a seed gives to one call, in separate memory."""
        import torch

        made = tuple(
            torch.empty_strided(shape, stride, dtype=dtype, device=self._device)
            for shape, stride, dtype in self._specs[:-1]
        )
        self._put([made], seed, [call])
        return made

    def _put(self, inputs: "Sequence[tuple[torch.Tensor, ...]]", seed: int, calls: Sequence[int]) -> None:
        """Write the inputs that a seed gives to these calls into their tensors."""
        from mlsys.measure.reorder import put_reordered

        for number, values in enumerate(self._values):
            keys = [f"{seed}/{call}/{number}" for call in calls]
            put_reordered(values, keys, [tensors[number] for tensors in inputs])

    def _lay_out(self, calls: int) -> None:
        """Take one buffer for all tensors of a lap; its end is there to be written right before the clock starts."""
        import torch

        self.rest()  # before the next one is taken
        places: list[list[int]] = []
        end = GAP_BYTES
        for _ in range(calls):
            places.append([])
            for shape, stride, dtype in self._specs:
                places[-1].append(end)
                end += -(-_extent(shape, stride) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT + GAP_BYTES
        self._end_of_tensors = end
        total = end + (2 * _cache_bytes() if self._device == "cuda" else 0)
        self._buffer = torch.empty(-(-total // _PAGE) * _PAGE, dtype=torch.uint8, device=self._device)
        self._places = places
        self._inputs, self._outputs = self._views(self._buffer)

    def _views(self, buffer: "torch.Tensor") -> "tuple[list[tuple[torch.Tensor, ...]], list[torch.Tensor]]":
        tensors = [
            [
                buffer.view(dtype).as_strided(shape, stride, place // dtype.itemsize)
                for place, (shape, stride, dtype) in zip(row, self._specs, strict=True)
            ]
            for row in self._places
        ]
        return [tuple(row[:-1]) for row in tensors], [row[-1] for row in tensors]

    def _draw(self, seed: int) -> None:
        """Fill the whole buffer with random bits, and the inputs with their values in a new order."""
        self._fill(self._buffer, self._inputs, seed)
        self._give_back()

    def _fill(self, buffer: "torch.Tensor", inputs: "list[tuple[torch.Tensor, ...]]", seed: int) -> None:
        import torch

        most = buffer[: self._end_of_tensors].view(torch.int32)  # a whole number of them, by the alignment
        most.random_(generator=_generator(seed, "tensors", self._device))
        self._fill_end(buffer, seed)
        self._put(inputs, seed, range(len(inputs)))

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
        """Make sure that everything except the outputs is as it was before the lap."""
        import torch

        again = torch.empty_like(self._buffer)
        inputs, outputs = self._views(again)
        self._fill(again, inputs, seed)
        for mine, theirs in zip(outputs, self._outputs, strict=True):
            mine.view(torch.uint8).copy_(theirs.view(torch.uint8))
        same = torch.equal(again.view(torch.int64), self._buffer.view(torch.int64))  # 8 bytes at a time
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
        """Make sure that this process has no freed memory: its content is old, and to others it shows as a job."""
        if self._device == "cuda":
            import torch

            torch.cuda.empty_cache()


class Reference(Track):
    """The reference's track, which also computes the right result.

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

    def prepare(self) -> float:
        """See `Side`; it also compares once, so that what a comparison needs is loaded before the GPU is held."""
        call_s = super().prepare()
        seed = secrets.randbits(62)
        self.agrees(seed, 0, 0, self._right(seed, 0).to("cpu"))
        self._give_back()
        return call_s

    def _right(self, seed: int, call: int) -> "torch.Tensor":
        return self._expected(*self.inputs(seed, call)).contiguous()

    def agrees(self, seed: int, call: int, start: int, found: "torch.Tensor") -> bool:
        """See `Judging`."""
        right = self._right(seed, call)
        if found.dtype == right.dtype:
            whole = right.clone()  # what is allowed for an element depends on its row, of which `found` may be a part
            whole.view(-1)[start : start + found.numel()] = found.to(self._device).view(-1)
            if is_close(whole, right):
                return True
        if found.numel() == right.numel():
            assert_close(found.to(self._device).reshape(right.shape), right, what=self._what)
        return False

    def rates(self, *, anew: bool = False) -> Rates:
        """See `Judging`; rates of a CPU are not known, and no time on it is suspicious."""
        if self._device != "cuda":
            return Rates(math.inf, math.inf, 0)
        if anew:
            measured_rates.cache_clear()
        found = measured_rates(self._dtype)
        self._give_back()
        return found


def launching(launch: Launch, kernel: Any, constants: Config | None) -> Callable[..., object]:
    """Return the work of a track, `work(out, *inputs)`: one launch of a kernel."""
    return lambda out, *inputs: launch(kernel, constants, out, *inputs)


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


def _generator(seed: int, part: str, device: str) -> "torch.Generator":
    """Return a stream of random numbers for one part of a lap; the same in every process on the same device."""
    import torch

    from mlsys.measure.reorder import number_of

    return torch.Generator(device).manual_seed(number_of(f"{seed}/{part}") >> 1)


def _extent(shape: Shape, stride: Sequence[int]) -> int:
    """Return the count of elements from the first to the last of a strided tensor."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def _contiguous(shape: Shape) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor.

    >>> _contiguous((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
