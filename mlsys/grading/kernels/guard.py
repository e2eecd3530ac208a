"""Guard bands: find writes outside a tensor before they do harm, and show elements that were never written.

Triton does not check addresses. In a guarded call, every input tensor, and every tensor that the function allocates, is
a view in the middle of a larger buffer filled with NaNs of random payload:

    | guard band | tensor (gaps between its strided elements are guarded too) | guard band |

A store outside the tensor changes a guard; a load outside brings a NaN into the result; an element of a fresh
tensor that no program wrote is still NaN.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from mlsys.grading.checks.tolerances import dtype_name
from mlsys.grading.hazards.inspection import inspected
from mlsys.grading.verdicts import OutOfBounds, StillRunning

if TYPE_CHECKING:
    import torch

GUARD_BYTES = 256 * 1024
"""Bytes of guard on each side: more than a 128 x 128 tile of float32 at a row stride of up to 500 elements."""

LONGEST_KERNEL_S = 10.0
"""Longest time for which a kernel that is launched by itself may run on a GPU: a thousand times what it should take."""

_INPUT_STEP = 16  # bytes: inputs differ in their alignment to larger powers of two, as slices do
_FRESH_STEP = 512  # bytes: as torch's own tensors on a GPU; a kernel's tensor descriptors need 128
_BLOCK = 4096  # elements; to draw every one of a guard's would take longer than most kernels
_QUIET_NAN = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000, "float64": 0x7FF8 << 48}
_FILLED = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
_ALLOCATING = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "full", "full_like", *_FILLED)


def call_guarded(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a function with guard bands around its tensor arguments and the tensors it allocates; return its result.

    Args:
        function: takes tensors (any strides) and other values; it may allocate with torch.empty, zeros, ones, full,
            their `_like` and `new_` forms.
        args: its positional arguments.
        kwargs: its named arguments.

    Raises:
        OutOfBounds: the call wrote into a guard or changed an argument.
    """
    import torch

    buffers: list[_Guarded] = []

    def protect(what: str, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        buffers.append(_Guarded.around(value, f"{what}, shape {tuple(value.shape)}", is_input=True))
        return buffers[-1].view

    args = tuple(protect(f"argument {index}", value) for index, value in enumerate(args))
    kwargs = {name: protect(f"argument {name}", value) for name, value in kwargs.items()}
    with _guarded_allocations()(buffers):
        result = function(*args, **kwargs)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    for buffer in buffers:
        buffer.check()
    return result


def wait_for_kernels() -> None:
    """Wait until the GPU has run what was launched.

    Others wait for the GPU as long as a kernel runs that does not end, and a plain wait would have no end either.

    Raises:
        StillRunning: it takes longer than `LONGEST_KERNEL_S`.
    """
    import torch

    done = torch.cuda.Event()
    done.record()
    until_s = time.monotonic() + LONGEST_KERNEL_S
    while not done.query():
        if time.monotonic() > until_s:
            raise StillRunning(
                f"The kernel was still running after {LONGEST_KERNEL_S:g} s on the GPU: look for a loop that does not "
                "end. In a notebook, restart the kernel of the notebook now, because the GPU is still busy."
            )
        time.sleep(1e-4)


def launch_guarded(
    kernel: Any,
    constants: Mapping[str, int],
    inputs: "Sequence[torch.Tensor]",
    shape: tuple[int, ...],
    dtype: "torch.dtype",
    launch: Callable[..., object],
) -> "torch.Tensor":
    """Launch once into a fresh, poisoned output, with guard bands around all tensors; inspect it in the interpreter."""
    import torch

    def once(*tensors: torch.Tensor) -> torch.Tensor:
        out = torch.empty(shape, dtype=dtype, device=tensors[0].device)
        launch(inspected(kernel), constants, out, *tensors)
        if out.is_cuda:
            wait_for_kernels()
        return out

    out: torch.Tensor = call_guarded(once, tuple(inputs), {})
    return out


class _Guarded:
    """A tensor inside a larger, poisoned buffer, with a copy to compare with after the call."""

    def __init__(
        self, shape: tuple[int, ...], stride: tuple[int, ...], like: "torch.Tensor", what: str, is_input: bool = False
    ) -> None:
        import torch

        self.what = what
        self.is_input = is_input
        size = like.element_size()
        self.guard = GUARD_BYTES // size
        extent = 1 + sum((n - 1) * abs(step) for n, step in zip(shape, stride, strict=True)) if 0 not in shape else 0
        self.start = self.guard + int(torch.randint(0, 8, ())) * (_INPUT_STEP if is_input else _FRESH_STEP) // size
        self.buffer = _poison(self.start + extent + self.guard, like)
        self.view = self.buffer.as_strided(shape, stride, self.start)
        self.before = self.buffer

    @classmethod
    def around(cls, value: "torch.Tensor", what: str, is_input: bool) -> "_Guarded":
        guarded = cls(tuple(value.shape), value.stride(), value, what, is_input)
        guarded.view.copy_(value)
        guarded.before = guarded.buffer.clone()
        return guarded

    def check(self) -> None:
        """Raise `OutOfBounds` if anything except an output's own elements has changed."""
        import torch

        now, before = _bits(self.buffer), _bits(self.before)
        end = self.buffer.numel() - self.guard
        own = slice(self.start, end) if not self.is_input and self.view.is_contiguous() else slice(0, 0)
        if torch.equal(now[: own.start], before[: own.start]) and torch.equal(now[own.stop :], before[own.stop :]):
            return  # as nearly always; to say what has changed takes several times as long
        changed = now != before
        if not self.is_input:
            changed.as_strided(self.view.shape, self.view.stride(), self.start).fill_(False)
        if not bool(changed.any()):
            return
        where = torch.nonzero(changed).flatten()
        first, last = int(where[0]) - self.start, int(where[-1]) - self.start
        inside = changed.as_strided(self.view.shape, self.view.stride(), self.start)
        if self.is_input and bool(inside.any()):
            index = tuple(int(x) for x in torch.nonzero(inside)[0])
            raise OutOfBounds(
                f"{self.what}: the call changed this input, first at {index}. Write only into the result."
            )
        count = int(changed.sum())
        extent = end - self.start
        side = [
            f"up to {-first} before the start" if first < 0 else "",
            f"up to {last - extent + 1} past the end" if last >= extent else "",
        ]
        reach = " and ".join(part for part in side if part) or "in the gaps between its strided elements"
        size = self.view.element_size()
        by_descriptor = self.view.is_cuda and first >= extent and is_left_by_a_descriptor(extent * size, last * size)
        raise OutOfBounds(
            f"{self.what}: {count} {'elements' if count > 1 else 'element'} outside it changed, "
            f"{reach}. Mask the store in every dimension, and check the strides in its address."
            + (" A GPU masks a store through a tensor descriptor in steps of 16 bytes only." if by_descriptor else "")
        )


def is_left_by_a_descriptor(extent: int, last: int) -> bool:
    """Return whether a store through a tensor descriptor may have written the byte `last` behind so many bytes.

    The tensor memory accelerator writes whole 16 bytes: Triton issue 11583.

    >>> is_left_by_a_descriptor(148, 156), is_left_by_a_descriptor(148, 160), is_left_by_a_descriptor(160, 160)
    (True, False, False)
    """
    return last < -(-extent // 16) * 16


def _poison(count: int, like: "torch.Tensor") -> "torch.Tensor":
    """Make `count` elements like `like`: NaNs with random payload, or random integers, in a block that repeats."""
    import torch

    size = like.element_size()
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    nan = _QUIET_NAN.get(dtype_name(like), 0)
    # All payloads of a NaN, so that what is written seldom is what was there; small integers, which may be offsets.
    limit = nan & -nan if nan else 2 if like.dtype == torch.bool else 63
    block = torch.randint(0, limit, (_BLOCK,), dtype=integer, device=like.device) + nan
    # In memory of just that size: what is behind it would not be compared.
    made = torch.empty(count, dtype=integer, device=like.device)
    whole = count // _BLOCK * _BLOCK
    made[:whole].view(-1, _BLOCK).copy_(block)
    made[whole:] = block[: count - whole]
    return made.view(like.dtype)


def _bits(tensor: "torch.Tensor") -> "torch.Tensor":
    """Return the tensor's bits as integers, because NaNs do not compare equal."""
    import torch

    return tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])


@cache
def _guarded_allocations() -> Any:
    """Return the context in which torch's allocating functions return guarded tensors, collected in a given list.

    It is one class for all calls: a class refers to itself, so one of each call would keep its buffers until a
    collection.
    """
    from torch.overrides import TorchFunctionMode

    class Allocations(TorchFunctionMode):
        def __init__(self, buffers: list[_Guarded]) -> None:
            super().__init__()
            self.buffers = buffers

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            name = getattr(function, "__name__", "")
            if name not in _ALLOCATING or result.is_complex() or result.is_meta:
                return result
            what = f"tensor of shape {tuple(result.shape)} from torch.{name}"
            if name.startswith(("empty", "new_empty")):
                fresh = _Guarded(tuple(result.shape), result.stride(), result, what)
                fresh.before = fresh.buffer.clone()
            else:
                fresh = _Guarded.around(result, what, is_input=False)
            self.buffers.append(fresh)
            return fresh.view

    return Allocations
