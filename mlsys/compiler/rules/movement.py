"""Rules of the operations that only say which element goes where: none needs a kernel of its own."""

import math

import torch

from mlsys.compiler.ir.expression import Expression, guard, number, where
from mlsys.compiler.ir.graph import UnsupportedOp
from mlsys.compiler.ir.index import Fetched, Index, flatten, index, unflatten
from mlsys.compiler.rules.values import Call, Value, broadcast, constant_value, rule


def axis_of(call: Call, axis: int, rank: int) -> int:
    """Return an axis counted from the front.

    Raises:
        BadGraph: there is no such axis.
    """
    if not -rank <= axis < max(rank, 1):
        raise call.refuse(
            f"has the axis {axis} of a tensor of {rank} dimensions", f"use one from {-rank} to {rank - 1}"
        )
    return axis + rank if axis < 0 else axis


def reshaped(x: Value, shape: tuple[int, ...]) -> Value:
    """Return the same elements in another shape."""
    return Value(x.name, shape, x.dtype, lambda *places: x.at(*unflatten(flatten(places, shape), x.shape)))


@rule("Reshape")
def _reshape(call: Call, x: Value, shape: Value) -> Value:
    wanted = shape.ints(call.op)
    sizes = [x.shape[n] if s == 0 and not call.get("allowzero", 0) else s for n, s in enumerate(wanted)]
    if -1 in sizes:
        rest = -math.prod(sizes)
        sizes[sizes.index(-1)] = math.prod(x.shape) // rest if rest else 0
    if math.prod(sizes) != math.prod(x.shape):
        raise call.refuse(f"cannot make the shape {tuple(wanted)} of {x.shape}", "keep the number of elements")
    return reshaped(x, tuple(sizes))


@rule("Flatten")
def _flatten(call: Call, x: Value) -> Value:
    axis = call.get("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    return reshaped(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@rule("Squeeze")
def _squeeze(call: Call, x: Value, axes: Value | None = None) -> Value:
    given = axes.ints(call.op) if axes is not None else call.get("axes", None)
    if given is None:
        given = [n for n, extent in enumerate(x.shape) if extent == 1]
    drop = {axis_of(call, axis, len(x.shape)) for axis in given}
    return reshaped(x, tuple(extent for n, extent in enumerate(x.shape) if n not in drop))


@rule("Unsqueeze")
def _unsqueeze(call: Call, x: Value, axes: Value | None = None) -> Value:
    given = axes.ints(call.op) if axes is not None else call.attributes["axes"]
    rank = len(x.shape) + len(given)
    new = {axis_of(call, axis, rank) for axis in given}
    old = iter(x.shape)
    return reshaped(x, tuple(1 if n in new else next(old) for n in range(rank)))


@rule("Transpose")
def _transpose(call: Call, x: Value) -> Value:
    order = call.get("perm", list(range(len(x.shape)))[::-1])
    back = sorted(range(len(order)), key=order.__getitem__)
    return Value("", tuple(x.shape[n] for n in order), x.dtype, lambda *places: x.at(*(places[n] for n in back)))


@rule("Expand")
def _expand(call: Call, x: Value, shape: Value) -> Value:
    return Value("", broadcast(call, x.shape, tuple(shape.ints(call.op))), x.dtype, x.spread)


@rule("Concat")
def _concat(call: Call, *parts: Value) -> Value:
    axis = axis_of(call, call.attributes["axis"], len(parts[0].shape))
    ends = [sum(part.shape[axis] for part in parts[: n + 1]) for n in range(len(parts))]
    starts = [0, *ends[:-1]]

    def element(*places: Index) -> Expression:
        at = places[axis]
        value: Expression | None = None
        for part, start, end in reversed(list(zip(parts, starts, ends, strict=True))):
            own = part.at(*places[:axis], at - start, *places[axis + 1 :])
            value = own if value is None else guard([(at, start, end)], own, value)
        assert value is not None
        return value

    shape = tuple(ends[-1] if n == axis else extent for n, extent in enumerate(parts[0].shape))
    return Value("", shape, parts[0].dtype, element)


@rule("Slice")
def _slice(
    call: Call,
    x: Value,
    starts: Value | None = None,
    ends: Value | None = None,
    axes: Value | None = None,
    steps: Value | None = None,
) -> Value:
    first = starts.ints(call.op) if starts is not None else call.attributes["starts"]
    last = ends.ints(call.op) if ends is not None else call.attributes["ends"]
    along = axes.ints(call.op) if axes is not None else call.get("axes", list(range(len(first))))
    stride = steps.ints(call.op) if steps is not None else [1] * len(first)
    chosen = {
        axis_of(call, axis, len(x.shape)): slice(a, b, s).indices(x.shape[axis])
        for axis, a, b, s in zip(along, first, last, stride, strict=True)
    }
    return sliced(x, chosen)


def sliced(x: Value, chosen: dict[int, tuple[int, int, int]]) -> Value:
    """Return the elements from start to stop by step, along each axis that is named."""
    shape = tuple(len(range(*chosen[n])) if n in chosen else extent for n, extent in enumerate(x.shape))

    def element(*places: Index) -> Expression:
        return x.at(*(p * chosen[n][2] + chosen[n][0] if n in chosen else p for n, p in enumerate(places)))

    return Value("", shape, x.dtype, element)


@rule("Split")
def _split(call: Call, x: Value, split: Value | None = None) -> tuple[Value, ...]:
    axis = axis_of(call, call.get("axis", 0), len(x.shape))
    sizes = split.ints(call.op) if split is not None else call.get("split", None)
    if sizes is None:
        count = call.get("num_outputs", call.outputs)
        each = -(-x.shape[axis] // count)
        sizes = [min(each, x.shape[axis] - n * each) for n in range(count)]
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    return tuple(sliced(x, {axis: (start, start + size, 1)}) for start, size in zip(starts, sizes, strict=True))


def fetched(indices: Expression, extent: int) -> Index:
    """Return an index that is read at run time; a negative one counts from the end."""
    return index(Fetched(where(indices < 0, indices + extent, indices), extent))


@rule("Gather")
def _gather(call: Call, x: Value, indices: Value) -> Value:
    axis = axis_of(call, call.get("axis", 0), len(x.shape))
    more = len(indices.shape)

    def element(*places: Index) -> Expression:
        row = fetched(indices.at(*places[axis : axis + more]), x.shape[axis])
        return x.at(*places[:axis], row, *places[axis + more :])

    return Value("", (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype, element)


@rule("Tile")
def _tile(call: Call, x: Value, repeats: Value) -> Value:
    shape = tuple(extent * times for extent, times in zip(x.shape, repeats.ints(call.op), strict=True))
    return Value("", shape, x.dtype, lambda *p: x.at(*(at % max(1, e) for at, e in zip(p, x.shape, strict=True))))


@rule("Pad")
def _pad(call: Call, x: Value, pads: Value, fill: Value | None = None, axes: Value | None = None) -> Value:
    rank = len(x.shape)
    along = [axis_of(call, axis, rank) for axis in (axes.ints(call.op) if axes is not None else range(rank))]
    given = pads.ints(call.op)
    before = dict(zip(along, given[: len(along)], strict=True))
    after = dict(zip(along, given[len(along) :], strict=True))
    if call.get("mode", "constant") not in ("constant", "wrap"):
        raise UnsupportedOp(f"Pad has no mode {call.attributes['mode']!r}: use 'constant' or 'wrap'")

    def element(*places: Index) -> Expression:
        shifted = [place - before.get(axis, 0) for axis, place in enumerate(places)]
        if call.get("mode", "constant") == "wrap":
            return x.at(*(place % extent for place, extent in zip(shifted, x.shape, strict=True)))
        outside = number(0, x.dtype) if fill is None else fill.spread()
        return guard([(place, 0, n) for place, n in zip(shifted, x.shape, strict=True)], x.at(*shifted), outside)

    shape = tuple(extent + before.get(n, 0) + after.get(n, 0) for n, extent in enumerate(x.shape))
    return Value("", shape, x.dtype, element)


@rule("Constant")
def _constant(call: Call) -> Value:
    for name, value in call.attributes.items():
        if name == "value":
            return constant_value("", value)
        if name in ("value_int", "value_ints", "value_float", "value_floats"):
            return constant_value("", torch.tensor(value, dtype=torch.int64 if "int" in name else torch.float32))
    raise call.refuse(f"has only the attributes {sorted(call.attributes)}", "give it a tensor or numbers")


@rule("ConstantOfShape")
def _constant_of_shape(call: Call, shape: Value) -> Value:
    fill = constant_value("", call.get("value", torch.zeros(1)).reshape(1))
    return Value("", tuple(shape.ints(call.op)), fill.dtype, lambda *places: fill.at(Index()))


@rule("Shape")
def _shape(call: Call, x: Value) -> Value:
    rank = len(x.shape)
    start, end = call.get("start", 0), call.get("end", rank)
    return constant_value("", torch.tensor(x.shape[slice(start, end)], dtype=torch.int64))


@rule("Size")
def _size(call: Call, x: Value) -> Value:
    return constant_value("", torch.tensor(math.prod(x.shape)))
