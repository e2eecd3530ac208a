"""Address checks for Triton's interpreter: a kernel can access the tensors of its launch and nothing else.

The interpreter reads and writes any address that a kernel computes, in the process that runs it. On a GPU that is only
the process's device memory; on a CPU it is the whole process, including Python itself.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlsys.grading.verdicts import OutOfBounds

if TYPE_CHECKING:
    import torch

_ACCESSES: dict[str, tuple[int, int | None, int]] = {
    "load": (0, 1, 3),
    "store": (0, 2, 1),
    "atomic_rmw": (1, 3, 2),
    "atomic_cas": (0, None, 1),
}
"""Argument numbers of each memory access of the interpreter: the addresses, the mask, and what tells the dtype."""


class Confined:
    """A kernel whose launches can access the memory of their own tensors, guard bands included, and nothing else."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """Launch on a grid, as a kernel does."""

        def launch(*args: Any, **kwargs: Any) -> Any:
            with only_inside(
                [_storage_of(one) for one in (*args, *kwargs.values()) if hasattr(one, "untyped_storage")]
            ):
                return self._kernel[grid](*args, **kwargs)

        return launch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


def confined(kernel: Any) -> Any:
    """Return a kernel that is confined where the interpreter runs it."""
    return Confined(kernel) if hasattr(kernel, "rewriter") else kernel


def _storage_of(tensor: "torch.Tensor") -> "torch.Tensor":
    import torch

    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


@contextmanager
def only_inside(buffers: "Sequence[torch.Tensor]") -> Iterator[None]:
    """Let kernels that the interpreter runs access only these buffers; kernels on a GPU are not affected.

    Raises (from the kernel):
        OutOfBounds: it reads or writes an address outside all of them.
    """
    from triton.runtime import interpreter

    original = interpreter._interpreter
    interpreter._interpreter = _CheckedAccesses(original, buffers)
    try:
        yield
    finally:
        interpreter._interpreter = original


class _CheckedAccesses:
    """A stand-in for the interpreter's module of memory accesses."""

    def __init__(self, original: Any, buffers: "Sequence[torch.Tensor]") -> None:
        self._original = original
        ranges = sorted((buffer.data_ptr(), buffer.data_ptr() + buffer.nbytes) for buffer in buffers)
        self._starts = np.array([start for start, _ in ranges], np.uint64)
        self._ends = np.array([end for _, end in ranges], np.uint64)

    def __getattr__(self, name: str) -> Any:
        original = getattr(self._original, name)
        if name not in _ACCESSES:
            return original
        which, mask, dtype = _ACCESSES[name]

        def checked(*args: Any) -> Any:
            itemsize = np.dtype(getattr(args[dtype], "dtype", args[dtype])).itemsize
            self._check(args[which], None if mask is None else args[mask], itemsize, name)
            return original(*args)

        return checked

    def _check(self, addresses: NDArray[np.uint64], mask: NDArray[np.bool_] | None, itemsize: int, access: str) -> None:
        used = addresses if mask is None else addresses[np.broadcast_to(mask, addresses.shape).astype(bool)]
        if used.size == 0:
            return
        place = np.searchsorted(self._starts, used, side="right")
        inside = (
            (place > 0) & (used + np.uint64(itemsize) <= self._ends[place - 1]) & (used + np.uint64(itemsize) > used)
        )
        if not inside.all():
            how = "reads from" if access == "load" else "writes to"
            count = int((~inside).sum())
            raise OutOfBounds(
                f"The kernel {how} {count} {'addresses' if count > 1 else 'address'} far outside all tensors. Mask the "
                "access in every dimension, and check the strides in its address."
            )
