"""Rules of the operations that combine many elements: sums, norms, pooling, matrix products and convolutions.

Each is a reduction over axes of an expression. What becomes of it, a row-wise kernel or a matrix product, is decided
later from the form of the expression alone.
"""

import math
from collections.abc import Callable, Sequence

from mlsys.compiler.ir.expression import Expression, apply, cast, guard, neutral, number, reduction, where
from mlsys.compiler.ir.graph import FLOATS
from mlsys.compiler.ir.index import Index, index
from mlsys.compiler.rules.elementwise import equal, exp
from mlsys.compiler.rules.movement import axis_of, reshaped
from mlsys.compiler.rules.values import Call, Value, broadcast, new_axes, rule

Step = Callable[[Expression], Expression]


def reduced(x: Value, axes: Sequence[int], kind: str, keep: bool, before: Step | None = None) -> Value:
    """Reduce a tensor over axes; `before` is applied to each element."""

    def element(*places: Index) -> Expression:
        over = new_axes("r", (x.shape[axis] for axis in sorted(axes)))
        inner = dict(zip(sorted(axes), map(index, over), strict=True))
        kept = iter(places)
        full = []
        for n in range(len(x.shape)):
            place = next(kept) if keep or n not in inner else Index()
            full.append(inner.get(n, place))
        value = x.at(*full)
        return reduction(kind, over, before(value) if before else value)

    shape = tuple(1 if n in axes else extent for n, extent in enumerate(x.shape) if keep or n not in axes)
    return Value("", shape, x.dtype, element)


def mapped(x: Value, function: Step) -> Value:
    """Apply a function to every element."""
    return Value("", x.shape, x.dtype, lambda *places: function(x.at(*places)))


def centered(x: Value, axes: Sequence[int]) -> tuple[Value, Value, Value]:
    """Return mean, variance, and x minus its mean, over axes that are kept with the size 1."""
    count = math.prod(x.shape[axis] for axis in axes)
    mean = mapped(reduced(x, axes, "sum", keep=True), lambda total: total * (1 / count))
    rest = Value("", x.shape, x.dtype, lambda *places: x.at(*places) - mean.spread(*places))
    variance = mapped(reduced(rest, axes, "sum", True, lambda d: d * d), lambda total: total * (1 / count))
    return mean, variance, rest


def normalized(x: Value, variance: Value, epsilon: float) -> Value:
    """Return x / sqrt(variance + epsilon)."""
    scale = mapped(variance, lambda v: apply("rsqrt", v + epsilon))
    return Value("", x.shape, x.dtype, lambda *places: x.at(*places) * scale.spread(*places))


def scaled(x: Value, scale: Value | None, shift: Value | None) -> Value:
    """Return x * scale + shift, both broadcast to x."""

    def element(*places: Index) -> Expression:
        value = x.at(*places)
        value = value if scale is None else value * scale.spread(*places)
        return value if shift is None else value + shift.spread(*places)

    return Value("", x.shape, x.dtype, element)


_KINDS = {
    "ReduceSum": "sum", "ReduceMean": "sum", "ReduceMax": "max", "ReduceMin": "min", "ReduceProd": "prod",
    "ReduceL1": "sum", "ReduceL2": "sum", "ReduceSumSquare": "sum", "ReduceLogSum": "sum",
}  # fmt: skip
_BEFORE: dict[str, Step] = {
    "ReduceL1": abs,
    "ReduceL2": lambda x: x * x,
    "ReduceSumSquare": lambda x: x * x,
}


def _axes(call: Call, x: Value, axes: Value | None) -> list[int]:
    given = axes.ints(call.op) if axes is not None else call.get("axes", None)
    if not given:
        given = [] if call.get("noop_with_empty_axes", 0) else range(len(x.shape))
    return [axis_of(call, axis, len(x.shape)) for axis in given]


@rule(*_KINDS)
def _reduce(call: Call, x: Value, axes: Value | None = None) -> Value:
    over = _axes(call, x, axes)
    total = reduced(x, over, _KINDS[call.op], bool(call.get("keepdims", 1)), _BEFORE.get(call.op))
    if call.op in ("ReduceMax", "ReduceMin") and x.dtype in FLOATS:
        return _nan_of_nan(x, over, bool(call.get("keepdims", 1)), total)
    count = math.prod(x.shape[axis] for axis in over)
    after: dict[str, Step] = {
        "ReduceMean": lambda t: t / count if t.dtype not in FLOATS or not count else t * (1 / count),
        "ReduceL2": lambda t: apply("sqrt", t),
        "ReduceLogSum": lambda t: apply("log", t),
    }
    return mapped(total, after[call.op]) if call.op in after else total


def _nan_of_nan(x: Value, over: Sequence[int], keep: bool, extreme: Value) -> Value:
    """Return the extreme, or NaN where an element is NaN, which tl.max and tl.min leave out."""
    found = reduced(x, over, "max", keep, lambda v: cast(apply("ne", v, v, dtype="bool"), "int32"))
    return Value(
        "", extreme.shape, x.dtype, lambda *places: where(found.at(*places) <= 0, extreme.at(*places), math.nan)
    )


@rule("ReduceLogSumExp")
def _reduce_log_sum_exp(call: Call, x: Value, axes: Value | None = None) -> Value:
    over, keep = _axes(call, x, axes), bool(call.get("keepdims", 1))
    greatest = reduced(x, over, "max", keep=True)
    finite = mapped(greatest, lambda m: where(equal(abs(m), math.inf), 0, m))
    shifted = Value("", x.shape, x.dtype, lambda *places: exp(x.at(*places) - finite.spread(*places)))
    total = mapped(reduced(shifted, over, "sum", keep=True), lambda s: apply("log", s))
    result = Value("", total.shape, x.dtype, lambda *places: total.at(*places) + finite.at(*places))
    return result if keep else reshaped(result, tuple(e for n, e in enumerate(x.shape) if n not in over))


@rule("Softmax", "LogSoftmax")
def _softmax(call: Call, x: Value) -> Value:
    axis = axis_of(call, call.get("axis", -1), len(x.shape))
    greatest = reduced(x, [axis], "max", keep=True)
    shifted = Value("", x.shape, x.dtype, lambda *places: x.at(*places) - greatest.spread(*places))
    total = reduced(shifted, [axis], "sum", True, exp)

    def element(*places: Index) -> Expression:
        if call.op == "Softmax":
            return exp(shifted.at(*places)) / total.spread(*places)
        return shifted.at(*places) - apply("log", total.spread(*places))

    return Value("", x.shape, x.dtype, element)


@rule("LayerNormalization", "RMSNormalization")
def _layer_normalization(call: Call, x: Value, scale: Value, shift: Value | None = None) -> tuple[Value, ...]:
    axes = range(axis_of(call, call.get("axis", -1), len(x.shape)), len(x.shape))
    epsilon = call.get("epsilon", 1e-5)
    if call.op == "RMSNormalization":
        count = math.prod(x.shape[axis] for axis in axes)
        square = mapped(reduced(x, axes, "sum", True, lambda v: v * v), lambda total: total * (1 / count))
        return (scaled(normalized(x, square, epsilon), scale, None),)
    mean, variance, rest = centered(x, axes)
    inverse = mapped(variance, lambda v: apply("rsqrt", v + epsilon))
    return scaled(normalized(rest, variance, epsilon), scale, shift), mean, inverse


def _per_channel(value: Value, rank: int) -> Value:
    return reshaped(value, (value.shape[0], *[1] * (rank - 2)))


@rule("BatchNormalization")
def _batch_normalization(
    call: Call, x: Value, scale: Value, shift: Value, mean: Value, variance: Value
) -> tuple[Value, ...]:
    rank, epsilon = len(x.shape), call.get("epsilon", 1e-5)
    own, shift_by = _per_channel(scale, rank), _per_channel(shift, rank)
    if not call.get("training_mode", 0):
        average, spread = _per_channel(mean, rank), _per_channel(variance, rank)
        rest = Value("", x.shape, x.dtype, lambda *places: x.at(*places) - average.spread(*places))
        return (scaled(normalized(rest, spread, epsilon), own, shift_by),)
    axes = [0, *range(2, rank)]
    now_mean, now_variance, rest = centered(x, axes)
    keep = call.get("momentum", 0.9)

    def running(old: Value, new: Value) -> Value:
        flat = reshaped(new, old.shape)
        return Value("", old.shape, old.dtype, lambda c: old.at(c) * keep + flat.at(c) * (1 - keep))

    result = scaled(normalized(rest, now_variance, epsilon), own, shift_by)
    return result, running(mean, now_mean), running(variance, now_variance)


@rule("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(call: Call, x: Value) -> Value:
    axes = range(2, len(x.shape))
    if call.op == "GlobalMaxPool":
        return reduced(x, axes, "max", keep=True)
    return centered(x, axes)[0]


@rule("MatMul")
def _matmul(call: Call, a: Value, b: Value) -> Value:
    left = reshaped(a, (1, *a.shape)) if len(a.shape) == 1 else a
    right = reshaped(b, (*b.shape, 1)) if len(b.shape) == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise call.refuse(f"has the shapes {a.shape} and {b.shape}", "make the inner sizes equal")
    batch = broadcast(call, left.shape[:-2], right.shape[:-2])

    def element(*places: Index) -> Expression:
        (k,) = new_axes("k", [left.shape[-1]])
        *outer, m, n = places
        return reduction("sum", [k], left.spread(*outer, m, index(k)) * right.spread(*outer, index(k), n))

    full = Value("", (*batch, left.shape[-2], right.shape[-1]), a.dtype, element)
    drop = ([-2] if len(a.shape) == 1 else []) + ([-1] if len(b.shape) == 1 else [])
    return reshaped(full, tuple(e for n, e in enumerate(full.shape) if n - len(full.shape) not in drop))


@rule("Gemm")
def _gemm(call: Call, a: Value, b: Value, c: Value | None = None) -> Value:
    trans_a, trans_b = call.get("transA", 0), call.get("transB", 0)
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    rows, depth = a.shape[::-1] if trans_a else a.shape
    inner, columns = b.shape[::-1] if trans_b else b.shape
    if inner != depth:
        raise call.refuse(f"has the shapes {a.shape} and {b.shape}", "make the inner sizes equal")

    def element(m: Index, n: Index) -> Expression:
        over = new_axes("k", [depth])
        k = index(over[0])
        product = (a.at(k, m) if trans_a else a.at(m, k)) * (b.at(n, k) if trans_b else b.at(k, n))
        total = reduction("sum", over, product)
        total = total if alpha == 1 else total * alpha
        if c is None:
            return total
        return total + (c.spread(m, n) if beta == 1 else c.spread(m, n) * beta)

    return Value("", (rows, columns), a.dtype, element)


def _window(
    call: Call, sizes: Sequence[int], kernel: Sequence[int]
) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Output sizes, strides, dilations, and padding before and after, of a window that slides over spatial axes."""
    rank = len(sizes)
    strides = list(call.get("strides", [1] * rank))
    dilations = list(call.get("dilations", [1] * rank))
    pads = list(call.get("pads", [0] * 2 * rank))
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    auto = call.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        need = [max(0, (-(-e // s) - 1) * s + r - e) for e, s, r in zip(sizes, strides, reach, strict=True)]
        small, large = [n // 2 for n in need], [-(-n // 2) for n in need]
        pads = small + large if auto == "SAME_UPPER" else large + small
    elif auto == "VALID":
        pads = [0] * 2 * rank
    before, after = pads[:rank], pads[rank:]
    out = []
    for extent, stride, span, low, high in zip(sizes, strides, reach, before, after, strict=True):
        room = extent + low + high - span
        count = (-(-room // stride) if call.get("ceil_mode", 0) else room // stride) + 1
        if call.get("ceil_mode", 0) and (count - 1) * stride >= extent + low:
            count -= 1  # a window that begins in the padding after the tensor is left out
        if count < 1:
            raise call.refuse(f"has a window of {span} on a size of {extent}", "make the window smaller or pad")
        out.append(count)
    return out, strides, dilations, before, after


@rule("MaxPool", "AveragePool")
def _pool(call: Call, x: Value) -> Value:
    if call.outputs > 1:
        raise call.refuse("is asked for its second output, Indices", "compile the graph without it")
    kernel, sizes = call.attributes["kernel_shape"], x.shape[2:]
    out, strides, dilations, before, after = _window(call, sizes, kernel)
    kind = "max" if call.op == "MaxPool" else "sum"

    def element(n: Index, c: Index, *places: Index) -> Expression:
        over = new_axes("w", kernel)
        at = [p * s + index(w) * d - b for p, s, w, d, b in zip(places, strides, over, dilations, before, strict=True)]
        value = x.at(n, c, *at)
        inside = [(place, 0, size) for place, size in zip(at, sizes, strict=True)]
        total = reduction(kind, over, guard(inside, value, number(neutral(kind, x.dtype), x.dtype)))
        if call.op == "MaxPool":
            return total
        if call.get("count_include_pad", 0):
            inside = [(p, -b, size + a) for p, b, size, a in zip(at, before, sizes, after, strict=True)]
        counted = guard(inside, number(1, x.dtype), number(0, x.dtype))
        if counted.axes:
            return total / reduction("sum", over, counted)
        share: float = 1 / math.prod(kernel)
        return total * share

    return Value("", (*x.shape[:2], *out), x.dtype, element)


@rule("Conv")
def _conv(call: Call, x: Value, weight: Value, bias: Value | None = None) -> Value:
    groups = call.get("group", 1)
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise call.refuse(f"has {x.shape[1]} channels and weights {weight.shape}, group={groups}", "make them agree")
    each = weight.shape[0] // groups
    out, strides, dilations, before, _ = _window(call, x.shape[2:], weight.shape[2:])

    def element(n: Index, m: Index, *places: Index) -> Expression:
        over = new_axes("k", weight.shape[1:])
        c, *window = map(index, over)
        at = [p * s + w * d - b for p, s, w, d, b in zip(places, strides, window, dilations, before, strict=True)]
        channel = c + (m // each) * weight.shape[1] if groups > 1 else c
        value = x.at(n, channel, *at)
        inside = [(place, 0, size) for place, size in zip(at, x.shape[2:], strict=True)]
        product = weight.at(m, c, *window) * guard(inside, value, number(0, x.dtype))
        total = reduction("sum", over, product)
        return total if bias is None else total + bias.at(m)

    return Value("", (x.shape[0], weight.shape[0], *out), x.dtype, element)
