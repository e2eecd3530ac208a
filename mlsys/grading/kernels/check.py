"""Test a kernel by launching it from the lab's own code, apart from what the student wrote around it."""

import inspect
import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsys.grading.checks.assertions import assert_close
from mlsys.grading.kernels.guard import guarded
from mlsys.grading.kernels.source import kernel_source
from mlsys.grading.remote import Proxy
from mlsys.grading.verdicts import GradingError, WrongAnswer

if TYPE_CHECKING:
    import torch

Launch = Callable[..., object]
DATA_RACE = (
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
        NotAKernel: the kernel uses more than Triton's language; a judge says the same.
        WrongAnswer: the output is wrong.
        OutOfBounds: something else was written.
    """
    if not isinstance(kernel, Proxy):
        check_source(kernel)

    def launched() -> Any:
        if isinstance(kernel, Proxy):
            return kernel.session.launch(kernel.__name__, launch, constants, expected, inputs)
        return launch_guarded(kernel, constants, inputs, tuple(expected.shape), expected.dtype, launch)

    out = launched()
    try:
        assert_close(out, expected, what=what, tile=tile)
    except WrongAnswer as error:
        if _differs(out, launched):
            raise WrongAnswer(f"{error}\n  {DATA_RACE}", error.picture) from None
        raise


def check_source(kernel: Any) -> None:
    """Make sure that a kernel in a notebook uses Triton's language alone, as a judge does.

    The judge reads the cells of the notebook that is handed in, this function the cells that were run; where there is
    no notebook, the file that defines the kernel.

    Raises:
        NotAKernel: it is not; the message is the judge's.
    """
    function = _python_function(kernel)
    if function is not None:
        kernel_source(_cells_of(function), _name_of(kernel, function))


def _name_of(kernel: Any, function: Any) -> str:
    """Return the name that the notebook gives to a kernel; with `kernel = triton.jit(f)` it is not the function's."""
    names = [name for name, value in function.__globals__.items() if value is kernel]
    own: str = function.__name__
    return own if own in names or not names else names[-1]


def _python_function(kernel: Any) -> Any:
    """Return the Python function inside a kernel, under its decorators."""
    for _ in range(10):
        if inspect.isfunction(kernel):
            return kernel
        kernel = getattr(kernel, "fn", None)
    return None


def _cells_of(function: Any) -> Sequence[str]:
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    if shell is not None:
        return [str(cell) for cell in shell.user_ns.get("In", ())]
    return ["".join(linecache.getlines(function.__code__.co_filename))]


def _differs(out: object, launched: "Callable[[], object]") -> bool:
    """Return whether a second launch gives other numbers; NaNs, never written or read outside, do not count."""
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
