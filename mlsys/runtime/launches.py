"""Launches of Triton kernels that are repeated without Triton's dispatch.

Before Triton launches a kernel it asks which of its compiled versions the arguments need, and builds tensor descriptors
anew. That can cost the host more than the kernel costs the GPU. Where the arguments are as they were at an earlier
call, all of that ends in the same call of Triton's launcher in C, so `remembered` keeps that call.
"""

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import fields, is_dataclass
from functools import cache, partial, wraps
from threading import RLock, get_ident
from types import CellType, FunctionType
from typing import Any, ParamSpec

MOST_KEPT = 1024
"""Calls that a function remembers; before one more, it forgets them all. Each takes a few kilobytes."""

RECORDING = RLock()
"""Held while launches are recorded, because Triton's launcher is replaced meanwhile."""

Args = ParamSpec("Args")


def remembered(launch: Callable[Args, bool | None]) -> Callable[Args, None]:
    """Have a function that launches Triton kernels repeat its launches when it is called again as before.

    A call is as before if the current device is the same, tensors have the same addresses, shapes, strides and dtypes,
    and all other arguments are equal. Tensors may be in lists, tuples and dataclasses; the rest must be hashable. Then
    the same kernels start on the stream that is now current, also while a CUDA graph is captured, and `launch` itself
    does not run.

    What is kept are numbers, finished tensor descriptors and compiled kernels, but no tensors: their memory may be
    freed, and what lies at the same address later is what the call means. So `launch` must do nothing on the GPU but
    launch Triton kernels on its arguments, or on memory that is never freed. Where it allocates, calls torch or calls
    another remembered function, it must return False; then nothing is kept. Nothing is kept after an exception, either.

    This relies on what Triton 3.6 and 3.7 have: `CudaLauncher` calls its attribute `launch`, a function in C or a
    wrapper that makes descriptors for it; the stream is the fourth argument, and an address may stand for a tensor.
    Where a launcher is of another kind, where a kernel needs scratch memory, which is new for each launch, and in
    Triton's interpreter, nothing is kept and every call is launched as usual.

    Args:
        launch: takes tensors and other arguments, and launches kernels; returns False if that must not be repeated.
    """
    known: dict[tuple[Any, ...], Callable[[], None]] = {}

    @wraps(launch)
    def call(*args: Args.args, **kwargs: Args.kwargs) -> None:
        key = (current_device(), *described(args), *described(kwargs.items()))
        again = known.get(key)
        if again is not None:
            again()
            return
        launches = Launches()
        repeatable = launches.record(partial(launch, *args, **kwargs)) is not False
        if repeatable and launches.complete and launches.calls:
            if len(known) >= MOST_KEPT:
                known.clear()
            known[key] = launches.again()

    return call


def current_device() -> int:
    """Number of the current CUDA device; -1 before torch uses one."""
    import torch

    return torch.cuda.current_device() if torch.cuda.is_initialized() else -1


def described(values: Iterable[object]) -> list[Any]:
    """What decides how arguments are launched: of a tensor all but its numbers, and other values themselves."""
    import torch

    found: list[Any] = []
    for value in values:
        kind: Any = type(value)
        if isinstance(value, torch.Tensor):
            found += (value.data_ptr(), value.shape, value.stride(), value.dtype)
        elif isinstance(value, (tuple, list)):
            found.append(tuple(described(value)))
        elif names := names_beside_tensors(kind):
            found.append((kind, *described(getattr(value, name) for name in names)))
        else:
            found.append(value)
    return found


@cache
def names_beside_tensors(kind: type) -> tuple[str, ...]:
    """Names of a dataclass's fields if some are tensors, which must not be kept; none for any other class."""
    named = fields(kind) if is_dataclass(kind) else ()
    return tuple(field.name for field in named) if any("Tensor" in str(field.type) for field in named) else ()


class Launches:
    """What ran through Triton's launcher while a function was called.

    Attributes:
        calls: the launcher's functions in C, and what each was given before and behind the stream.
        complete: whether all of it can be launched again.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., None], tuple[Any, ...], tuple[Any, ...]]] = []
        self.complete = True

    def record(self, work: Callable[[], bool | None]) -> bool | None:
        """Call `work`, keep what this thread launches meanwhile, and return its result."""
        from triton.backends.nvidia.driver import CudaLauncher

        thread = get_ident()
        with RECORDING:
            launch = CudaLauncher.__call__

            def recorded(launcher: Any, *args: Any) -> None:
                launch(self.recorder(launcher) if get_ident() == thread else launcher, *args)

            CudaLauncher.__call__ = recorded
            try:
                return work()
            finally:
                CudaLauncher.__call__ = launch

    def recorder(self, launcher: Any) -> Any:
        """A copy of a launcher that keeps what it launches; the launcher itself if that cannot be repeated."""
        code = getattr(launcher.launch, "__code__", None)
        known = code is None or code.co_freevars.count("launcher") == 1
        if not known or launcher.global_scratch_size or launcher.profile_scratch_size:
            self.complete = False
            return launcher
        made = copy(launcher)
        if code is None:
            made.launch = partial(self.launch, launcher.launch)
        else:  # Triton makes descriptors, and hands them to the `launcher` that the function has from outside
            cells = dict(zip(code.co_freevars, launcher.launch.__closure__, strict=True))
            cells["launcher"] = CellType(partial(self.launch, cells["launcher"].cell_contents))
            made.launch = FunctionType(code, launcher.launch.__globals__, closure=tuple(cells.values()))
        return made

    def launch(self, function: Callable[..., None], *args: Any) -> None:
        """Launch, and keep how."""
        function(*args)
        self.calls.append((function, args[:STREAM], addressed(args[STREAM + 1 :])))

    def again(self) -> Callable[[], None]:
        """A function that launches all of it on the stream that is current when it is called."""
        from triton.runtime import driver

        stream = partial(driver.active.get_current_stream, driver.active.get_current_device())
        if len(self.calls) > 1:
            calls = self.calls

            def launch_all() -> None:
                now = stream()
                for function, before, behind in calls:
                    function(*before, now, *behind)

            return launch_all
        [(function, before, behind)] = self.calls
        return lambda: function(*before, stream(), *behind)


STREAM = 3
"""Place of the stream among the arguments of a launcher's function, behind the three sides of the grid."""


def addressed(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same arguments with addresses instead of tensors, also in lists and tuples."""
    import torch

    return tuple(
        value.data_ptr()
        if isinstance(value, torch.Tensor)
        else type(value)(addressed(tuple(value)))
        if type(value) in (tuple, list)
        else value
        for value in values
    )
