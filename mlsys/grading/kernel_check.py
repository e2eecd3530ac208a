"""Launching a kernel by the lab's own code, so that the kernel is tested and not what the student wrote around it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsys.grading.checks import assert_close
from mlsys.grading.guard import guarded
from mlsys.grading.proxy import Proxy
from mlsys.grading.verdicts import GradingError, WrongAnswer

if TYPE_CHECKING:
    import torch

Launch = Callable[..., object]
RACE = (
    "A second launch with the same inputs gave other numbers, so it is a race: programs write the same element, or one "
    "reads what another writes. Give each element one program, or add with tl.atomic_add."
)


def check_kernel(
    kernel: Any,
    constants: Mapping[str, int],
    inputs: "Sequence[torch.Tensor]",
    expected: "torch.Tensor",
    *,
    launch: Launch,
    what: str = "result of the kernel",
    tile: tuple[int, int] | None = None,
) -> None:
    """Launch a kernel with guard bands and compare its output.

    Args:
        kernel: a `@triton.jit` function; a judge launches its checked source where no other code of the student's runs.
        constants: what `launch` hands on as the kernel's constants.
        inputs: tensors, of any strides.
        expected: the right output, of the shape and dtype that the output gets.
        launch: `launch(kernel, constants, out, *inputs)`, defined in the lab's setup.
        what: what to call the result in the message.
        tile: rows and columns of one program's tile, for the diagnosis.

    Raises:
        WrongAnswer: the output is wrong.
        OutOfBounds: something else was written.
    """

    def launched() -> Any:
        if isinstance(kernel, Proxy):
            return kernel.session.launch(kernel.__name__, launch, constants, expected, inputs)
        return launch_guarded(kernel, constants, inputs, tuple(expected.shape), expected.dtype, launch)

    out = launched()
    try:
        assert_close(out, expected, what=what, tile=tile)
    except WrongAnswer as error:
        if _differs(out, launched):
            raise WrongAnswer(f"{error}\n  {RACE}", error.picture) from None
        raise


def _differs(out: object, launched: "Callable[[], object]") -> bool:
    """Whether a second launch gives other numbers; what is not a number was never written or read from outside."""
    import torch

    try:
        again = launched()
    except GradingError:
        return False  # such as its time being up: the first result is what counts
    if not (isinstance(out, torch.Tensor) and isinstance(again, torch.Tensor) and out.shape == again.shape):
        return False
    return not torch.equal(out.nan_to_num(), again.nan_to_num())


def launch_guarded(
    kernel: Any,
    constants: Mapping[str, int],
    inputs: "Sequence[torch.Tensor]",
    shape: tuple[int, ...],
    dtype: "torch.dtype",
    launch: Launch,
) -> "torch.Tensor":
    """Launch once into a fresh, poisoned output, with guard bands round all tensors."""
    import torch

    def once(*tensors: torch.Tensor) -> torch.Tensor:
        out = torch.empty(shape, dtype=dtype, device=tensors[0].device)
        launch(kernel, constants, out, *tensors)
        return out

    return guarded(once)(*inputs)
