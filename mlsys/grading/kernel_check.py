"""Launching a kernel by the lab's own code, so that the kernel is tested and not what the student wrote around it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsys.grading.checks import assert_close
from mlsys.grading.guard import guarded
from mlsys.grading.proxy import Proxy

if TYPE_CHECKING:
    import torch

Launch = Callable[..., object]


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
    if isinstance(kernel, Proxy):
        out = kernel.session.launch(kernel.__name__, launch, constants, expected, inputs)
    else:
        out = launch_guarded(kernel, constants, inputs, tuple(expected.shape), expected.dtype, launch)
    assert_close(out, expected, what=what, tile=tile)


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
