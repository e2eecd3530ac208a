"""Speed of a student's kernel, as a ratio to a reference that runs beside it on the same device.

Points by `t_reference / t_student`, at the favourable end of its interval: all of them from `FULL_AT` on, none up to
`NONE_AT`, and in proportion between the two.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsys.grading.checks import assert_close
from mlsys.grading.draws import Draws
from mlsys.grading.proxy import Proxy
from mlsys.grading.verdicts import NeedsGpu, Verdict, WrongAnswer
from mlsys.measure.device import gpu_device, torch_sees_gpu
from mlsys.measure.gpu_users import other_jobs
from mlsys.measure.timing import Pair, time_pair

if TYPE_CHECKING:
    import torch

FULL_AT = 0.8
NONE_AT = 0.1

Shape = tuple[int, ...]
Config = Mapping[str, int]
Inputs = Callable[[Draws, Shape, str], "tuple[torch.Tensor, ...]"]
Launch = Callable[..., object]


def points_fraction(ratio: float) -> float:
    """The part of the points for a ratio `t_reference / t_student`.

    >>> points_fraction(0.9), points_fraction(0.45), points_fraction(0.05)
    (1.0, 0.5, 0.0)
    """
    return round(min(1.0, max(0.0, (ratio - NONE_AT) / (FULL_AT - NONE_AT))), 4)


@dataclass(frozen=True)
class Speed:
    """How fast a kernel is beside its reference, shape by shape."""

    device: str
    reference: str
    pairs: Mapping[Shape, Pair]

    @property
    def fraction(self) -> float:
        """The part of the points: the mean over the shapes."""
        return sum(points_fraction(pair.high) for pair in self.pairs.values()) / len(self.pairs)

    @property
    def ratio(self) -> float:
        """The least ratio `t_reference / t_student` of all shapes."""
        return min(pair.ratio for pair in self.pairs.values())

    @property
    def verdict(self) -> Verdict:
        """Passed with all points, slow with a part of them."""
        return Verdict("passed" if self.fraction == 1 else "slow", self.fraction, str(self))

    def __str__(self) -> str:
        lines = [
            f"{' x '.join(map(str, shape))}: {pair.candidate_s * 1e3:.3f} ms, {self.reference} "
            f"{pair.reference_s * 1e3:.3f} ms, {pair.ratio:.2f} of its speed ({pair.low:.2f} to {pair.high:.2f})"
            for shape, pair in self.pairs.items()
        ]
        return "\n".join([f"On {self.device}, {self.fraction:.0%} of the points:", *lines])

    __repr__ = __str__


def speed(
    kernel: Any,
    config: Callable[[Shape, str], Config],
    *,
    shapes: Sequence[Shape],
    inputs: Inputs,
    launch: Launch,
    expected: Callable[..., "torch.Tensor"],
    dtype: str = "fp32",
    reference: tuple[Any, Callable[[Shape, str], Config]] | None = None,
    capability: tuple[int, int] = (7, 5),
    timed: bool = True,
    waiting: int = 0,
) -> Speed:
    """Check a kernel on each shape, then time it interleaved with a reference.

    Args:
        kernel: a `@triton.jit` function.
        config: `config(shape, dtype)` gives its constants, `num_warps` and `num_stages` as a dict of ints.
        shapes: the shapes to run.
        inputs: `inputs(draws, shape, dtype)` makes the kernel's input tensors.
        launch: `launch(kernel, constants, out, *inputs)` runs it once and writes into `out`.
        expected: the same result by the vendor's library, `expected(*inputs)`; also what is timed without `reference`.
        dtype: name of the format that is handed to `config` and `inputs`.
        reference: another kernel and its config to time against.
        capability: least CUDA compute capability that the question asks for.
        timed: False stops after one call of each kernel, which compiles it; there are no pairs then.
        waiting: how many processes of the same grading wait for their turn, with a context on the GPU.

    Raises:
        NeedsGpu: if there is no GPU of that capability or with that dtype, or another job uses it.
        WrongAnswer: if a config is not a dict of positive ints, or the kernel's result is wrong.
    """
    constants = {shape: checked_config(config(shape, dtype), f"config({shape}, {dtype!r})") for shape in shapes}
    if isinstance(kernel, Proxy):
        race: Speed = kernel.session.race(
            kernel.__name__, constants, inputs, launch, expected, dtype, reference, capability
        )
        return race
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
        raise NeedsGpu(f"{torch.cuda.get_device_name()} has no bf16 arithmetic; this question waits for a GPU with it.")
    others = other_jobs(waiting) if timed else ""
    if others:
        raise NeedsGpu(f"this GPU is in use by {others}, and a timing would measure both; the points wait.")
    torch.backends.cuda.matmul.allow_tf32 = False  # the library must do the same arithmetic
    draws = Draws("speed", "cuda")
    pairs: dict[Shape, Pair] = {}
    for shape in shapes:
        other: tuple[Any, Config] | None = None
        if reference is not None:
            other = reference[0], checked_config(reference[1](shape, dtype), "the reference's config")
        what = f"result for shape {shape} with {dict(constants[shape])}"
        tensors = inputs(draws, shape, dtype)
        if not timed:
            call_once((kernel, constants[shape]), other, tensors, launch, expected)
            continue
        pairs[shape] = time_checked((kernel, constants[shape]), other, tensors, launch, expected, what, on_gpu=True)
    name = "the library" if reference is None else "the reference kernel"
    return Speed(torch.cuda.get_device_name(), name, pairs)


def call_once(
    candidate: tuple[Any, Config],
    reference: tuple[Any, Config] | None,
    tensors: "tuple[torch.Tensor, ...]",
    launch: Launch,
    expected: Callable[..., "torch.Tensor"],
) -> None:
    """Launch both kernels once, so that they are compiled; nothing of the result stays on the device."""
    import torch

    out = torch.empty_like(expected(*tensors))
    for kernel, constants in [candidate, *([reference] if reference else [])]:
        launch(kernel, constants, out, *tensors)
    torch.cuda.synchronize()
    out.fill_(float("nan"))


def time_checked(
    candidate: tuple[Any, Config],
    reference: tuple[Any, Config] | None,
    tensors: "tuple[torch.Tensor, ...]",
    launch: Launch,
    expected: Callable[..., "torch.Tensor"],
    what: str,
    *,
    on_gpu: bool,
) -> Pair:
    """Time a kernel beside a reference so that no call finds its result in memory, and check what it made.

    A kernel sees all of the device's memory, its own output too. So its calls take two sets of inputs in turn, and the
    output holds the result of the other set; the reference works on a third and a fourth set; and no right result
    stays on the device.

    Raises:
        WrongAnswer: a result is wrong, before the timing or after it.
    """
    import torch

    sets = [tensors, *(tuple(_shuffled(tensor) for tensor in tensors) for _ in range(3))]
    likeness = expected(*sets[3])
    out = torch.full_like(likeness, float("nan"))
    mine = _Turns(lambda inputs: launch(candidate[0], candidate[1], out, *inputs), sets[:2])

    def check() -> None:
        found = out.to("cpu", copy=True)  # waits for the device
        right = expected(*mine.last)
        on_host = right.to("cpu", copy=True)
        right.fill_(float("nan"))
        assert_close(found, on_host, what=what)

    for _ in range(3):
        mine()
        check()
    if reference is None:
        theirs = _Turns(lambda inputs: expected(*inputs), sets[2:])
    else:
        theirs = _Turns(lambda inputs: launch(reference[0], reference[1], likeness, *inputs), sets[2:])
    pair = time_pair(mine, theirs, on_gpu=on_gpu)
    check()
    return pair


class _Turns:
    """Work that takes one set of inputs after the other; `last` is the one it took last."""

    def __init__(self, work: Callable[[Any], object], sets: "Sequence[tuple[torch.Tensor, ...]]") -> None:
        self._work = work
        self._sets = sets
        self._next = 0
        self.last = sets[0]

    def __call__(self) -> None:
        self.last = self._sets[self._next]
        self._next = (self._next + 1) % len(self._sets)
        self._work(self.last)


def _shuffled(tensor: "torch.Tensor") -> "torch.Tensor":
    """A tensor of the same values in another order, with the same strides."""
    import torch

    order = torch.randperm(tensor.numel(), device=tensor.device)
    values = tensor.flatten()[order].reshape(tensor.shape)
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).copy_(values)


def checked_config(config: object, what: str) -> Config:
    """`config`, if it is a dict from names to positive ints.

    Raises:
        WrongAnswer: with what is wrong.
    """
    if not isinstance(config, Mapping):
        raise WrongAnswer(f"{what} must be a dict of ints, got {type(config).__name__}")
    for name, value in config.items():
        if not isinstance(name, str) or type(value) is not int or value < 1:
            raise WrongAnswer(f"{what}: {name!r} is {value!r}; every value must be a positive int")
    return config
