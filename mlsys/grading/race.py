"""Timing a student's kernel beside a reference so that no call can find its result in the device's memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mlsys.grading.checks import assert_close
from mlsys.measure.timing import Pair, time_pair

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]
Config = Mapping[str, int]
Launch = Callable[..., object]
Candidate = tuple[Any, Config]
"""A kernel and its constants."""


@dataclass(frozen=True)
class Result:
    """What a kernel made of its inputs and what is right, both on the host."""

    what: str
    found: "torch.Tensor"
    right: "torch.Tensor"

    def check(self) -> None:
        """Raise `WrongAnswer` unless they agree."""
        assert_close(self.found, self.right, what=self.what)


class Race:
    """A kernel beside a reference on one shape, so that no call finds its result in memory.

    A kernel sees all of the device's memory, its own output too. So its calls take two sets of inputs in turn, and the
    output holds the result of the other set; the reference works on a third and a fourth set; and no right result
    stays on the device.

    Args:
        candidate: the kernel and its constants.
        reference: the same of what it is timed against; None for the library.
        shape: as the question names it.
        tensors: the first set of inputs; the others hold the same values in another order.
        launch: runs a kernel once.
        expected: the library's result.
    """

    def __init__(
        self,
        candidate: Candidate,
        reference: Candidate | None,
        shape: Shape,
        tensors: "tuple[torch.Tensor, ...]",
        launch: Launch,
        expected: Callable[..., "torch.Tensor"],
    ) -> None:
        import torch

        self._what = f"result for shape {shape} with {dict(candidate[1])}"
        sets = [tensors, *(tuple(_shuffled(tensor) for tensor in tensors) for _ in range(3))]
        likeness = expected(*sets[3])
        self._expected = expected
        self._out = out = torch.full_like(likeness, float("nan"))
        self._mine = _Turns(lambda inputs: launch(candidate[0], candidate[1], out, *inputs), sets[:2])
        if reference is None:
            self._theirs = _Turns(lambda inputs: expected(*inputs), sets[2:])
        else:
            self._theirs = _Turns(lambda inputs: launch(reference[0], reference[1], likeness, *inputs), sets[2:])

    def check(self) -> None:
        """Run the kernel on both sets and again on the first, and raise `WrongAnswer` unless each result is right."""
        for _ in range(3):
            self._mine.once()
            self.last_result().check()
        self._out.fill_(float("nan"))  # freed memory keeps what was in it
        self._theirs.once()  # compiled as well

    def time(self, *, on_gpu: bool) -> Pair:
        """Time both, interleaved; on a GPU without what the host needs for a launch."""
        pair = time_pair(self._mine.all, self._theirs.all, on_gpu=on_gpu, graph=on_gpu)
        return replace(pair, candidate_s=pair.candidate_s / 2, reference_s=pair.reference_s / 2)

    def last_result(self) -> Result:
        """Of the kernel's last call; what is right is nowhere on the device then, but in the kernel's own output."""
        found = self._out.to("cpu", copy=True)  # waits for the device
        right = self._expected(*self._mine.last)
        on_host = right.to("cpu", copy=True)
        right.fill_(float("nan"))
        return Result(self._what, found, on_host)


class _Turns:
    """Work that takes one set of inputs after the other; `last` is the one it took last."""

    def __init__(self, work: Callable[[Any], object], sets: "Sequence[tuple[torch.Tensor, ...]]") -> None:
        self._work = work
        self._sets = sets
        self._next = 0
        self.last = sets[0]

    def once(self) -> None:
        self.last = self._sets[self._next]
        self._next = (self._next + 1) % len(self._sets)
        self._work(self.last)

    def all(self) -> None:
        for _ in self._sets:
            self.once()


def _shuffled(tensor: "torch.Tensor") -> "torch.Tensor":
    """A tensor of the same values in another order, with the same strides."""
    import torch

    order = torch.randperm(tensor.numel(), device=tensor.device)
    values = tensor.flatten()[order].reshape(tensor.shape)
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).copy_(values)
