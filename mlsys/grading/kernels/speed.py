"""Speed of a student's kernel, as a ratio to a reference that is timed in the same race on the same device.

Points follow from `t_reference / t_student`, at the favorable end of its interval: all of them from `FULL_AT` on, none
up to `NONE_AT`, and a share in between.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from mlsys.grading.draws import Draws
from mlsys.grading.kernels.backend import current_backend
from mlsys.grading.kernels.race import Config, Launch, RaceSetup, Shape, size
from mlsys.grading.timed import Timed
from mlsys.grading.verdicts import Verdict, WrongAnswer
from mlsys.measure.timing import Pair

if TYPE_CHECKING:
    import torch

    from mlsys.ops import Op

FULL_AT = 0.8
NONE_AT = 0.1

Inputs = Callable[[Draws, Shape, str], "tuple[torch.Tensor, ...]"]
Operation = Callable[[Shape, str], "Op"]


def points_fraction(ratio: float) -> float:
    """Return the share of the points for a ratio `t_reference / t_student`.

    >>> points_fraction(0.9), points_fraction(0.45), points_fraction(0.05)
    (1.0, 0.5, 0.0)
    """
    return round(min(1.0, max(0.0, (ratio - NONE_AT) / (FULL_AT - NONE_AT))), 4)


@dataclass(frozen=True)
class Speed:
    """Speed of a kernel compared with its reference, shape by shape; `work` is the operation, where it is known."""

    device: str
    reference: str
    pairs: Mapping[Shape, Pair]
    dtype: str = ""
    work: Mapping[Shape, "Op"] = field(default_factory=dict)

    @property
    def fraction(self) -> float:
        """Share of the points: the mean over the shapes."""
        return sum(points_fraction(pair.high) for pair in self.pairs.values()) / len(self.pairs)

    @property
    def ratio(self) -> float:
        """Smallest ratio `t_reference / t_student` of all shapes."""
        return min(pair.ratio for pair in self.pairs.values())

    @property
    def verdict(self) -> Verdict:
        """Verdict: passed with all points, slow with a share of them."""
        return Verdict("passed" if self.fraction == 1 else "slow", self.fraction, str(self), timed=self.timed)

    @property
    def timed(self) -> tuple[Timed, ...]:
        """The times, as records keep them."""
        return tuple(
            Timed(
                self.device,
                size(shape),
                self.dtype,
                pair.candidate_s,
                pair.reference_s,
                pair.ratio,
                float(self.work[shape].flop_count) if shape in self.work else 0.0,
                float(self.work[shape].read_count + self.work[shape].write_count) if shape in self.work else 0.0,
            )
            for shape, pair in self.pairs.items()
        )

    def __str__(self) -> str:
        lines = [
            f"{size(shape)}: {pair.candidate_s * 1e3:.3f} ms, {self.reference} "
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
    op: Operation | None = None,
) -> Speed:
    """Check a kernel on each shape, then time it interleaved with a reference.

    Args:
        kernel: a `@triton.jit` function.
        config: `config(shape, dtype)` gives its constants, `num_warps` and `num_stages` as a dict of ints.
        shapes: the shapes to run.
        inputs: `inputs(draws, shape, dtype)` makes the kernel's input tensors.
        launch: `launch(kernel, constants, out, *inputs)` runs it once and writes into `out`.
        expected: `expected(*inputs)`, the same result by the vendor's library; timed if there is no `reference`.
        dtype: name of the format, an argument of `config` and `inputs`.
        reference: another kernel and its config to time against.
        capability: least CUDA compute capability that the question needs.
        op: `op(shape, dtype)` is the operation; its FLOPs set the shortest credible time.

    Raises:
        NotAKernel: the kernel uses more than Triton's language; the judge gives the same verdict.
        Suspicious: the time is shorter than the work needs.
        NeedsGpu: if there is no GPU of that capability or with that dtype, or another job uses it; in a notebook it
            then says what the compiled kernel needs.
        UserError: in a notebook, the kernel does not compile with a config.
        WrongAnswer: if a config is not a dict of positive ints, or the kernel's result is wrong.
    """
    constants = {shape: checked_config(config(shape, dtype), f"config({shape}, {dtype!r})") for shape in shapes}
    draws, outlines = Draws("speed"), Draws("speed", device="meta")
    work = {shape: op(shape, dtype) for shape in shapes} if op else {}
    setups = [
        RaceSetup(
            shape,
            dtype,
            chosen,
            inputs=partial(inputs, draws, shape, dtype),
            outlines=partial(inputs, outlines, shape, dtype),
            launch=launch,
            expected=expected,
            reference=None if reference is None else _with_constants(*reference, shape, dtype),
            capability=capability,
            flops=float(work[shape].flop_count) if op else 0.0,
        )
        for shape, chosen in constants.items()
    ]
    result = current_backend().race(kernel, setups)
    return Speed(result.device, beside(reference), dict(zip(constants, result.pairs, strict=True)), dtype, work)


def _with_constants(
    kernel: Any, config: Callable[[Shape, str], Config], shape: Shape, dtype: str
) -> tuple[Any, Config]:
    return kernel, checked_config(config(shape, dtype), "the reference's config")


def beside(reference: object) -> str:
    """Name what a kernel was timed against.

    >>> beside(None)
    'the library'
    """
    return "the library" if reference is None else "the reference kernel"


def checked_config(config: object, what: str) -> Config:
    """Return `config` if it is a dict from names to positive ints.

    Raises:
        WrongAnswer: with what is wrong.
    """
    if not isinstance(config, Mapping):
        raise WrongAnswer(f"{what} must be a dict of ints, got {type(config).__name__}")
    for name, value in config.items():
        if not isinstance(name, str) or type(value) is not int or value < 1:
            raise WrongAnswer(f"{what}: {name!r} is {value!r}; every value must be a positive int")
    return config
