"""Builder of Triton's interpreter that checks every access and follows lanes without a value.

Triton's interpreter carries out each operation of `tl` by a method of its builder, on handles that hold a numpy array.
Here a handle has up to three marks in its `attr`:

    view       a pointer's tensor
    undefined  for each lane the number of the load that left it undefined, or 0
    old        the value is what an atomic operation found

Each operation passes the marks of its operands on to its result.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpreterBuilder, InterpreterOptions, TensorDescHandle, TensorHandle

from mlsys.grading.hazards.accesses import Accesses, Undefined
from mlsys.grading.hazards.memory import Addresses, Lanes

_MOVING = frozenset("reshape trans expand_dims broadcast cat join split splat unsplat".split())
"""Operations that move lanes; they move the marks of lanes in the same way."""

_OWN = frozenset(
    """
    load masked_load store masked_store atomic_cas atomic_rmw tensor_pointer_load tensor_pointer_store
    make_block_ptr advance make_tensor_descriptor descriptor_load descriptor_store descriptor_gather
    descriptor_scatter select and or mul dot gather histogram get_program_id get_num_programs make_range
    """.split()
)
"""Operations with rules of their own, or without operands that can have a mark."""


class CheckingBuilder(InterpreterBuilder):  # type: ignore[misc]
    """The interpreter's builder for one inspected launch."""

    def __init__(self, accesses: Accesses) -> None:
        super().__init__()
        self.options: Any = replace(
            InterpreterOptions(), sanitize_overflow=False
        )  # for an assertion that only debugging has
        self.accesses = accesses
        self.other_given = False

    # Accesses.

    def create_load(self, ptr: Any, _0: Any, _1: Any, is_volatile: Any) -> Any:
        """Load all lanes."""
        return self._load(ptr, None, None)

    def create_masked_load(
        self, ptrs: Any, mask: Any, other: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any
    ) -> Any:
        """Load the lanes of a mask."""
        return self._load(ptrs, mask if isinstance(mask, TensorHandle) else TensorHandle(mask, tl.int1), other)

    def create_store(self, ptr: Any, val: Any, _0: Any, _1: Any) -> Any:
        """Store all lanes."""
        return self._store(ptr, val, None)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, _0: Any, _1: Any) -> Any:
        """Store the lanes of a mask."""
        return self._store(ptrs, value, mask if isinstance(mask, TensorHandle) else TensorHandle(mask, tl.int1))

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        """Compare and swap."""
        self.accesses.atomics.add("compare and swap")
        can = self._atomic(ptr, None, [cmp, val])
        if can is None:
            return self._old(super().create_atomic_cas(ptr, cmp, val, sem, scope))
        return self._old(TensorHandle(np.zeros_like(cmp.data), cmp.dtype.scalar))  # wherever it is outside its tensor

    def create_atomic_rmw(self, rmw_op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        """Read, modify and write."""
        self.accesses.atomics.add(str(rmw_op))
        can = self._atomic(ptr, mask, [val])
        if can is not None:
            mask = TensorHandle(can, tl.int1)
        result = super().create_atomic_rmw(rmw_op, ptr, val, mask, sem, scope)
        return self._old(result)

    def _load(self, ptr: Any, mask: Any, other: Any) -> Any:
        accesses, addresses = self.accesses, ptr.data
        event = accesses.event()
        dtype = ptr.get_element_ty()
        numpy_dtype = interpreter._get_np_dtype(dtype)
        active = _active(mask, addresses)
        self._addresses_defined(event, ptr, mask, active)
        view = ptr.attr.get("view")
        parts, can = accesses.inside(event, view, addresses, active, numpy_dtype.itemsize, "loads")
        for one, where, lanes in parts:
            accesses.loaded(event, one, where, lanes, numpy_dtype.itemsize)
        carried = np.ones(addresses.shape, bool) if can is None else can
        filled = np.zeros(addresses.shape, numpy_dtype) if other is None else other.data
        result = TensorHandle(interpreter._interpreter.load(addresses, carried, filled, numpy_dtype), dtype)
        if active is not None:
            if other is None and not self.other_given:
                result.attr["undefined"] = accesses.masked_off(event, view, active)
            elif other is not None and "undefined" in other.attr:
                result.attr["undefined"] = np.where(active, 0, other.attr["undefined"])
        return result

    def _store(self, ptr: Any, value: Any, mask: Any) -> None:
        accesses, addresses, data = self.accesses, ptr.data, value.data
        event = accesses.event()
        active = _active(mask, addresses)
        self._addresses_defined(event, ptr, mask, active)
        if value.attr:
            self._stored(event, value, active, "is stored")
        if data.shape != addresses.shape:
            data = np.broadcast_to(data, addresses.shape)
        parts, can = accesses.inside(event, ptr.attr.get("view"), addresses, active, data.itemsize, "stores")

        def now(used: Addresses) -> Any:
            return interpreter._interpreter.load(
                used, np.ones(used.shape, bool), np.zeros(used.shape, data.dtype), data.dtype
            )

        for one, where, lanes in parts:
            accesses.stores(event, one, where, lanes, data, now)
        interpreter._interpreter.store(addresses, data, np.ones(addresses.shape, bool) if can is None else can)
        for one, where, lanes in parts:
            accesses.stored(event, one, where, lanes, data, now)

    def _atomic(self, ptr: Any, mask: Any, values: list[Any]) -> Lanes | None:
        """Check an atomic operation; return the lanes that can be carried out, or None if all can."""
        accesses, addresses = self.accesses, ptr.data
        event = accesses.event()
        active = _active(mask, addresses)
        self._addresses_defined(event, ptr, mask, active)
        for value in values:
            if value.attr:
                self._stored(event, value, active, "goes into an atomic operation")
        itemsize = values[0].data.itemsize
        parts, can = accesses.inside(
            event, ptr.attr.get("view"), addresses, active, itemsize, "updates elements with an atomic"
        )
        for one, where, lanes in parts:
            accesses.atomic(event, one, where, lanes, itemsize)
        return can

    def _old(self, result: Any) -> Any:
        result.attr["old"] = True
        return result

    def _stored(self, event: int, value: Any, active: Lanes | None, what: str) -> None:
        if "old" in value.attr:
            self.accesses.uses_old_values = True
        undefined = value.attr.get("undefined")
        if undefined is not None:
            used = undefined if active is None else np.where(active, np.broadcast_to(undefined, active.shape), 0)
            if used.any():
                self.accesses.undefined_used(used, what, event)

    def _addresses_defined(self, event: int, ptr: Any, mask: Any, active: Lanes | None) -> None:
        """Report lanes without a value that decide where an access is, or whether it takes place."""
        if mask is not None and mask.attr:
            self._stored(event, mask, None, "decides the mask of an access")
        if len(ptr.attr) > 1:  # more than the tensor's
            self._stored(event, ptr, active, "decides an address")

    # Pointers that know their shape.

    def create_make_block_ptr(
        self, base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
    ) -> Any:
        """Make a block pointer."""
        return _BlockPointer(base, shape, strides, [offset.clone() for offset in offsets], block_shape, order)

    def create_advance(self, ptr: Any, offsets: Any) -> Any:
        """Move a block pointer."""
        moved = super().create_advance(ptr, offsets)
        return _BlockPointer(moved.base, moved.shape, moved.strides, moved.offsets, moved.block_shape, moved.order)

    def create_make_tensor_descriptor(
        self, base: Any, shape: Any, strides: Any, tensor_shape: Any, is_signed: Any, padding: Any = "zero"
    ) -> Any:
        """Make a tensor descriptor."""
        made = _Descriptor(base, shape, strides, tensor_shape, padding)
        made.validate()
        return made

    # Lanes without a value.

    def create_select(self, cond: Any, lhs: Any, rhs: Any) -> Any:
        """Choose between two values: what is not chosen need not be defined."""
        result = super().create_select(cond, lhs, rhs)
        if cond.attr or lhs.attr or rhs.attr:
            self._notice(cond, lhs, rhs)
            _point(result, lhs, rhs)
            chosen = np.where(cond.data, _undefined(lhs), _undefined(rhs))
            _mark(result, np.maximum(chosen, _undefined(cond)))
        return result

    def create_and(self, lhs: Any, rhs: Any) -> Any:
        """Combine bits: with a zero, the other side need not be defined."""
        return self._absorbing(super().create_and(lhs, rhs), lhs, rhs, 0)

    def create_mul(self, lhs: Any, rhs: Any) -> Any:
        """Multiply integers: with a zero, the other side need not be defined."""
        return self._absorbing(super().create_mul(lhs, rhs), lhs, rhs, 0)

    def create_or(self, lhs: Any, rhs: Any) -> Any:
        """Combine bits: with a true value, the other side need not be defined."""
        return self._absorbing(super().create_or(lhs, rhs), lhs, rhs, True if lhs.dtype.scalar == tl.int1 else -1)

    def _absorbing(self, result: Any, lhs: Any, rhs: Any, absorbing: int) -> Any:
        if lhs.attr or rhs.attr:
            self._notice(lhs, rhs)
            left, right = _undefined(lhs), _undefined(rhs)
            decided = ((left == 0) & (lhs.data == absorbing)) | ((right == 0) & (rhs.data == absorbing))
            _mark(result, np.where(decided, 0, np.maximum(left, right)))
        return result

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        """Multiply matrices: an element is defined if its row and its column are."""
        result = super().create_dot(a, b, d, input_precision, max_num_imprecise_acc)
        if a.attr or b.attr or d.attr:
            self._notice(a, b, d)
            rows = np.broadcast_to(_undefined(a), a.data.shape).max(axis=-1, keepdims=True)
            columns = np.broadcast_to(_undefined(b), b.data.shape).max(axis=-2, keepdims=True)
            _mark(result, np.maximum(np.maximum(rows, columns), _undefined(d)))
        return result

    def create_gather(self, src: Any, indices: Any, axis: Any) -> Any:
        """Take lanes by their index."""
        result = super().create_gather(src, indices, axis)
        if src.attr or indices.attr:
            self._notice(src, indices)
            taken = np.take_along_axis(np.broadcast_to(_undefined(src), src.data.shape), indices.data, axis=axis)
            _mark(result, np.maximum(taken, _undefined(indices)))
        return result

    def create_histogram(self, data: Any, bins: Any, mask: Any) -> Any:
        """Count values."""
        result = super().create_histogram(data, bins, mask)
        if data.attr or (mask is not None and mask.attr):
            undefined = np.broadcast_to(_undefined(data), data.data.shape)
            used = undefined if mask is None else np.where(mask.data, undefined, 0) + _undefined(mask)
            _mark(result, np.full(result.data.shape, used.max(), np.int32))
        return result

    def reduced(self, results: Any, inputs: Any, axis: int | None, keep_dims: bool) -> None:
        """Pass the marks of a reduction's inputs on: a result is defined if all its lanes are."""
        if any(one.handle.attr for one in inputs):
            self._notice(*(one.handle for one in inputs))
            undefined = _joint(inputs).max(axis=axis, keepdims=keep_dims)
            for result in results:
                _mark(result.handle, np.asarray(undefined).reshape(result.handle.data.shape))

    def scanned(self, results: Any, inputs: Any, axis: int, reverse: bool) -> None:
        """Pass the marks of a scan's inputs on: a result is defined if all lanes up to it are."""
        if any(one.handle.attr for one in inputs):
            self._notice(*(one.handle for one in inputs))
            undefined = _joint(inputs)
            if reverse:
                undefined = np.flip(np.maximum.accumulate(np.flip(undefined, axis), axis), axis)
            else:
                undefined = np.maximum.accumulate(undefined, axis)
            for result in results:
                _mark(result.handle, undefined)

    def flipped(self, result: Any, handle: Any, axis: int) -> None:
        """Set the marks of a flip, which Triton computes by operations that mix the lanes."""
        result.attr.pop("undefined", None)
        if "undefined" in handle.attr:
            _mark(result, np.flip(np.broadcast_to(handle.attr["undefined"], handle.data.shape), axis))

    def decides(self, handle: Any) -> None:
        """Report a value without a definition that decides a branch."""
        if handle.attr:
            self._notice(handle)
            undefined = handle.attr.get("undefined")
            if undefined is not None and handle.data.size == 1 and undefined.any():
                self.accesses.undefined_used(undefined, "decides a branch or the bound of a loop")

    def carry(self, result: Any, handles: list[Any]) -> None:
        """Pass the marks of an operation on, lane by lane."""
        self._notice(*handles)
        _point(result, *handles)
        marks = [one.attr["undefined"] for one in handles if "undefined" in one.attr]
        if marks:
            _mark(result, marks[0] if len(marks) == 1 else np.maximum.reduce(np.broadcast_arrays(*marks)))

    def move(self, original: Callable[..., Any], results: Any, args: tuple[Any, ...]) -> None:
        """Pass the marks of an operation on that moves lanes."""
        handles = [arg for arg in args if isinstance(arg, TensorHandle)]
        self._notice(*handles)
        parts = results if isinstance(results, tuple) else (results,)
        for part in parts:
            _point(part, *handles)
        if any("undefined" in one.attr for one in handles):
            moved = original(self, *(_shadow(arg) if isinstance(arg, TensorHandle) else arg for arg in args))
            for part, mark in zip(parts, moved if isinstance(moved, tuple) else (moved,), strict=True):
                _mark(part, mark.data)

    def _notice(self, *handles: Any) -> None:
        if any("old" in one.attr for one in handles):
            self.accesses.uses_old_values = True


class CheckingSemantic(TritonSemantic):  # type: ignore[misc]
    """Triton's rules for types and shapes, which tell the builder whether a load has an `other=`.

    They ask a scalar `other` for its truth, so that the builder sees no difference between `other=0` and none.
    """

    def load(self, ptr: Any, mask: Any, other: Any, *rest: Any) -> Any:
        """Load, while the builder knows whether there is an `other=`."""
        self.builder.other_given = other is not None
        try:
            return super().load(ptr, mask, other, *rest)
        finally:
            self.builder.other_given = False


_BlockPointerHandle: Any = getattr(interpreter, "BlockPointerHandle", object)
"""Triton 3.8 has none: it makes plain pointers and masks of a block pointer, before the builder sees it."""


class _BlockPointer(_BlockPointerHandle):  # type: ignore[misc]
    """A block pointer whose addresses know their tensor."""

    def materialize_pointers(self, boundary_check: Any) -> Any:
        """Return the addresses and the mask of the block."""
        pointers, masks = super().materialize_pointers(boundary_check)
        _point(pointers, self.base)
        return pointers, masks


class _Descriptor(TensorDescHandle):  # type: ignore[misc]
    """A tensor descriptor whose addresses know their tensor."""

    def materialize_pointers(self, offsets: Any) -> Any:
        """Return the addresses and the mask of the block."""
        pointers, masks = super().materialize_pointers(offsets)
        _point(pointers, self.base)
        return pointers, masks


def _active(mask: Any, addresses: Addresses) -> Lanes | None:
    """Return the active lanes of a mask; None if all are."""
    if mask is None:
        return None
    lanes = mask.data if mask.data.dtype == np.bool_ else mask.data.astype(bool)
    if lanes.all():
        return None
    return lanes if lanes.shape == addresses.shape else np.broadcast_to(lanes, addresses.shape)


def _undefined(handle: Any) -> Undefined:
    undefined: Undefined = handle.attr.get("undefined", _DEFINED)
    return undefined


_DEFINED = np.zeros((), np.int32)


def _joint(inputs: Any) -> Undefined:
    """Return which lanes of several blocks of one shape are undefined."""
    shape = inputs[0].handle.data.shape
    return np.broadcast_to(np.maximum.reduce([np.broadcast_to(_undefined(one.handle), shape) for one in inputs]), shape)


def _mark(result: Any, undefined: Undefined) -> None:
    if undefined.any():
        result.attr["undefined"] = undefined


def _point(result: Any, *handles: Any) -> None:
    """Let a pointer know its tensor, unless it may be one of several."""
    views = [one.attr["view"] for one in handles if "view" in one.attr]
    if views and isinstance(result.dtype.scalar, tl.pointer_type) and all(view is views[0] for view in views):
        result.attr["view"] = views[0]


def _shadow(handle: Any) -> Any:
    """Return a handle whose data are the marks of another."""
    return TensorHandle(np.broadcast_to(_undefined(handle), handle.data.shape).astype(np.int32), tl.int32)


def _elementwise(original: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: CheckingBuilder, *args: Any) -> Any:
        result = original(self, *args)
        for arg in args:
            if type(arg) is TensorHandle and arg.attr:
                if type(result) is TensorHandle:
                    self.carry(result, [one for one in args if type(one) is TensorHandle])
                break
        return result

    return method


def _moving(original: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: CheckingBuilder, *args: Any) -> Any:
        result = original(self, *args)
        for arg in args:
            if type(arg) is TensorHandle and arg.attr:
                self.move(original, result, args)
                break
        return result

    return method


for _name, _original in list(vars(InterpreterBuilder).items()):
    _operation = _name.removeprefix("create_")
    if callable(_original) and _name.startswith("create_") and _operation not in _OWN:
        setattr(CheckingBuilder, _name, (_moving if _operation in _MOVING else _elementwise)(_original))
