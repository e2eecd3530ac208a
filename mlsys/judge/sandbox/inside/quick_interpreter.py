"""Triton's interpreter without work whose result nobody reads, or that was done before."""

import inspect
import math
from dataclasses import replace
from functools import cache
from typing import Any

from triton.language import core
from triton.runtime import interpreter


def skip_unread_work() -> None:
    """Change the interpreter in this process; a kernel of small tiles then takes half the time.

    Three things go. Every sum, difference and product of integers is computed once more in 64 bits for an assertion on
    overflow, which is dropped unless `debug` is on. At each launch, and each call of another kernel, all members of
    `triton.language` are listed and sorted to find its built-in functions, which stay the same. And each block that a
    kernel computes gets a type, a shape and a NumPy type that are worked out anew; of blocks there are thousands, of
    their types a few.
    """
    builder = interpreter.interpreter_builder
    if not builder.options.debug:
        builder.options = replace(builder.options, sanitize_overflow=False)
    interpreter._patch_builtin = _patch_builtin
    interpreter._get_np_dtype = _numpy_type
    core.block_type.__init__ = _make_block_type
    core.tensor.__init__ = _make_tensor


@cache
def _names_of_builtins(package: Any) -> list[str]:
    return [name for name, member in inspect.getmembers(package) if core.is_builtin(member)]


def _patch_builtin(package: Any, *rest: Any) -> None:
    for name in _names_of_builtins(package):
        member = getattr(package, name)
        if core.is_builtin(member):  # not within a launch, where it is replaced already
            interpreter._patch_attr(package, name, member, *rest)


_numpy_type_of = interpreter._get_np_dtype
_numpy_types: dict[str, Any] = {}


def _numpy_type(kind: Any) -> Any:
    """Return the NumPy type of a scalar's type or a block's, which is that of its elements."""
    name = kind.scalar.name
    if name not in _numpy_types:
        _numpy_types[name] = _numpy_type_of(kind)
    return _numpy_types[name]


_new_block_type = core.block_type.__init__
_block_types: dict[tuple[object, ...], dict[str, Any]] = {}


def _make_block_type(self: Any, element_ty: Any, shape: Any) -> None:
    """Do what `block_type.__init__` does; for a shape of plain numbers, with what it found the first time."""
    sides = [*shape]
    if any(type(side) is not int for side in sides):
        _new_block_type(self, element_ty, shape)
        return
    key = element_ty.name, *sides  # the name of a pointer's type says what it points to
    if key not in _block_types:
        _new_block_type(self, element_ty, shape)
        _block_types[key] = dict(self.__dict__)
    self.__dict__.update(_block_types[key])
    self.element_ty = element_ty


def _make_tensor(self: Any, handle: Any, kind: Any) -> None:
    """Do what `tensor.__init__` does, with one shape for all tensors of this shape."""
    self.handle, self.type, self.dtype = handle, kind, kind.scalar
    self.shape, self.numel = _shape_and_size(tuple(kind.shape) if kind.is_block() else ())


@cache
def _shape_and_size(shape: tuple[int, ...]) -> tuple[Any, Any]:
    return core.tuple([core.constexpr(side) for side in shape]), core.constexpr(math.prod(shape))
