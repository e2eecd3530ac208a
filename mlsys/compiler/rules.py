"""What each ONNX operation computes: a function of Values, with its attributes as arguments that have ONNX's defaults.

To add an operation, add its rule to `RULES`. All that follows, from fusion to Triton text, is the same for all of them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

import torch

from mlsys.compiler.ir.expression import Expr
from mlsys.compiler.ir.graph import FLOATS, NARROW, BadGraph, Graph, Operation, UnsupportedOp
from mlsys.compiler.ir.narrow import decoded, encoded
from mlsys.compiler.ir.value import Operand, Value, buffer, constant, neutral

Ints: TypeAlias = Sequence[int]
Rule: TypeAlias = Callable[..., Any]

# Element by element


def _power(base: Value, exponent: Value) -> Value:
    if base.dtype in FLOATS and exponent.known is not None and exponent.numbers() in ([0.5], [2.0], [3.0]):
        return {0.5: base.sqrt(), 2.0: base * base, 3.0: base * base * base}[exponent.numbers()[0]]
    wide = base.dtype if base.dtype in FLOATS else "fp64"
    x, y = base.cast(wide), exponent.cast(wide)
    size, whole, odd = (y * abs(x).log2()).exp2(), y.floor().equal(y), (y * 0.5).floor().differs(y * 0.5)
    negative = whole.where(odd.where(-size, size), math.nan)
    result = y.equal(0).where(1, (x < 0).where(negative, size))
    return (result if wide == base.dtype else _round(result)).cast(base.dtype)


def _round(x: Value) -> Value:
    low, odd = x.floor(), (x.floor() * 0.5).floor().differs(x.floor() * 0.5)
    return ((x - low > 0.5) | ((x - low).equal(0.5) & odd)).where(low + 1, low)


def _gelu(x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        return x * _sigmoid((x + x * x * x * 0.044715) * math.sqrt(8 / math.pi))
    return x * 0.5 * ((x * math.sqrt(0.5)).erf() + 1)


def _sigmoid(x: Value) -> Value:
    return 1 / ((-x).exp() + 1)


def _tanh(x: Value) -> Value:  # from exp(-2|x|), and near zero, where that loses digits, from its series
    e, square = (abs(x) * -2).exp(), x * x
    far, series = (1 - e) / (e + 1), ((square * (-17 / 315) + 2 / 15) * square - 1 / 3) * square + 1
    return (abs(x) < 0.1).where(x * series, (x < 0).where(-far, far))


def _cast(x: Value, to: str, saturate: int = 1) -> Value:
    x = decoded(x) if x.dtype in NARROW else x
    return encoded(x, to, bool(saturate)) if to in NARROW else x.cast(to)


def _clip(x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    x = x if low is None else x.maximum(low)
    return x if high is None else x.minimum(high)


# Movement


def axis_of(axis: int, x: Value, more: int = 0) -> int:
    """Return an axis counted from the front, or raise BadGraph."""
    rank = len(x.shape) + more
    if not -rank <= axis < max(rank, 1):
        raise BadGraph(f"has the axis {axis} of a tensor of {rank} dimensions: use one from {-rank} to {rank - 1}")
    return axis + rank if axis < 0 else axis


def _reshape(x: Value, shape: Value, allowzero: int = 0) -> Value:
    sizes = [x.shape[n] if size == 0 and not allowzero else size for n, size in enumerate(shape.numbers())]
    if -1 in sizes:
        rest = -math.prod(sizes)
        sizes[sizes.index(-1)] = math.prod(x.shape) // rest if rest else 0
    return x.reshape(sizes)


def _squeeze(x: Value, axes: Value | None = None) -> Value:
    ones = [n for n, length in enumerate(x.shape) if length == 1]
    return x.squeeze(ones if axes is None else [axis_of(axis, x) for axis in axes.numbers()])


def _unsqueeze(x: Value, axes: Value) -> Value:
    count, old = len(axes.numbers()), iter(x.shape)
    new = [axis_of(axis, x, count) for axis in axes.numbers()]
    return x.reshape([1 if n in new else next(old) for n in range(len(x.shape) + count)])


def _concat(*parts: Value, axis: int) -> Value:
    axis = axis_of(axis, parts[0])
    whole, result, at = sum(part.shape[axis] for part in parts), None, 0
    for part in parts:  # each is padded by what is before it, and after
        before, after = [0] * len(part.shape), [0] * len(part.shape)
        before[axis], after[axis] = at, whole - at - part.shape[axis]
        result, at = part.pad(before, after, 0 if result is None else result), at + part.shape[axis]
    return result  # type: ignore[return-value]


def _slice(x: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None) -> Value:
    along = axes.numbers() if axes is not None else range(len(starts.numbers()))
    stride = steps.numbers() if steps is not None else [1] * len(along)
    chosen = dict(zip(along, map(slice, starts.numbers(), ends.numbers(), stride), strict=True))
    return x.cut({axis_of(n, x): range(x.shape[axis_of(n, x)])[cut] for n, cut in chosen.items()})


def _split(x: Value, sizes: Value | None = None, axis: int = 0, num_outputs: int = 1) -> tuple[Value, ...]:
    axis = axis_of(axis, x)
    length, each = x.shape[axis], -(-x.shape[axis] // num_outputs)
    given = [min(each, length - n * each) for n in range(num_outputs)] if sizes is None else sizes.numbers()
    return tuple(x.cut({axis: range(sum(given[:n]), sum(given[: n + 1]))}) for n in range(len(given)))


def _pad(x: Value, pads: Value, fill: Value | None = None, axes: Value | None = None, mode: str = "constant") -> Value:
    if mode != "constant":
        raise UnsupportedOp(f"the compiler has no Pad with mode={mode!r}: use 'constant'")
    along = [axis_of(axis, x) for axis in axes.numbers()] if axes is not None else list(range(len(x.shape)))
    both = [0] * len(x.shape), [0] * len(x.shape)
    for n, count in enumerate(pads.numbers()):
        both[n // len(along)][along[n % len(along)]] = count
    return x.pad(*both, 0 if fill is None else fill)


def _constant(value: torch.Tensor | None = None, **given: Any) -> Value:
    dtype = torch.float32 if "float" in "".join(given) else torch.int64
    return constant(torch.tensor(next(iter(given.values())), dtype=dtype) if value is None else value)


# Reductions


def total(x: Value, axes: Ints) -> Value:
    """Return the sum over axes."""
    return x.reduce("sum", axes)


def mean(x: Value, axes: Ints) -> Value:
    """Return the mean over axes."""
    count = math.prod(x.shape[n] for n in axes)
    return total(x, axes) * (1 / count) if count and x.dtype in FLOATS else total(x, axes) / count


def _extreme(kind: str, x: Value, axes: Ints) -> Value:  # NaN where an element is, which tl.max and tl.min leave out
    result, has_nan = x.reduce(kind, axes), x.differs(x).cast("int32").reduce("max", axes) > 0
    return has_nan.where(math.nan, result) if x.dtype in FLOATS else result


def _reduction(function: Callable[[Value, Ints], Value]) -> Rule:
    def run(x: Value, axes: Value | Ints | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Value:
        given = axes.numbers() if isinstance(axes, Value) else axes or []
        every = range(0 if noop_with_empty_axes else len(x.shape))
        over = sorted(axis_of(axis, x) for axis in given or every)
        return function(x, over) if keepdims else function(x, over).squeeze(over)

    return run


def _softmax(x: Value, axis: int = -1, log: bool = False) -> Value:
    axes = [axis_of(axis, x)]
    shifted = x - x.reduce("max", axes)
    return shifted - total(shifted.exp(), axes).log() if log else shifted.exp() / total(shifted.exp(), axes)


def _layer_normalization(
    x: Value, scale: Value, shift: Value | None = None, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Value, ...]:
    axes = range(axis_of(axis, x), len(x.shape))
    average = mean(x, axes)
    rest = x - average
    inverse = (mean(rest * rest, axes) + epsilon).rsqrt()
    result = rest * inverse * scale
    return result if shift is None else result + shift, average, inverse


def _rms_normalization(x: Value, scale: Value, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Value:
    return x * (mean(x * x, range(axis_of(axis, x), len(x.shape))) + epsilon).rsqrt() * scale


def _batch_normalization(
    x: Value, *by_channel: Value, epsilon: float = 1e-5, momentum: float = 0.9, training_mode: int = 0
) -> Value:
    if training_mode:
        raise UnsupportedOp("the compiler has no BatchNormalization with training_mode=1: compile it for inference")
    scale, shift, average, variance = (s.reshape((s.shape[0], *[1] * (len(x.shape) - 2))) for s in by_channel)
    return (x - average) * (variance + epsilon).rsqrt() * scale + shift


# Products and windows


def _matmul(a: Value, b: Value) -> Value:
    left = a.reshape((1, *a.shape)) if len(a.shape) == 1 else a
    right = b.reshape((*b.shape, 1)) if len(b.shape) == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise BadGraph(f"has the shapes {a.shape} and {b.shape}: make the inner sizes equal")
    product = left.reshape((*left.shape, 1)) * right.reshape((*right.shape[:-2], 1, *right.shape[-2:]))
    rank = len(product.shape)  # ..., m, k, n
    ones = [rank - 2, *[rank - 3] * (len(a.shape) == 1), *[rank - 1] * (len(b.shape) == 1)]
    return total(product, [rank - 2]).squeeze(ones)


def _gemm(a: Value, b: Value, c: Value | None = None, alpha: float = 1, beta: float = 1, **flip: int) -> Value:
    product = _matmul(*(m.transpose([1, 0]) if flip.get(f"trans{name}") else m for m, name in ((a, "A"), (b, "B"))))
    product = product if alpha == 1 else product * alpha
    return product if c is None else product + (c if beta == 1 else c * beta)


def slide(
    x: Value, kernel: Ints, fill: Operand, strides: Ints = (), dilations: Ints = (), pads: Ints = (),
    auto_pad: str = "NOTSET", ceil_mode: int = 0, count: bool = False,
) -> Value:  # fmt: skip
    """Return what a window sees: x's first two axes, then the window's places, then the places inside the window.

    If asked to count, the window sees 1 where it would see an element, `fill` for padding, and 0 after that.
    """
    rank, lengths, places = len(kernel), x.shape[2:], list[int]()
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, list(pads) or [0] * 2 * rank
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    if auto_pad.startswith("SAME"):
        rows = zip(lengths, strides, reach, strict=True)
        need = [max(0, (-(-length // stride) - 1) * stride + span - length) for length, stride, span in rows]
        small, large = [n // 2 for n in need], [-(-n // 2) for n in need]
        pads = small + large if auto_pad == "SAME_UPPER" else large + small
    for length, stride, span, low, high in zip(lengths, strides, reach, pads[:rank], pads[rank:], strict=True):
        room = length + low + high - span
        steps = (-(-room // stride) if ceil_mode else room // stride) + 1
        places.append(steps - (ceil_mode and (steps - 1) * stride >= length + low))  # no window begins after the tensor
        if places[-1] < 1:
            raise BadGraph(f"has a window of {span} on a size of {length}: make the window smaller or pad")
    seen = constant(1, x.dtype).expand(x.shape) if count else x
    seen = seen.pad([0, 0, *pads[:rank]], [0, 0, *pads[rank:]], fill)
    seen = seen.pad([0] * (rank + 2), [0] * (rank + 2), 0) if count else seen

    def element(n: Expr, c: Expr, *at: Expr) -> Expr:
        rows = zip(at[:rank], at[rank:], strides, dilations, strict=True)
        return seen.at(n, c, *(place * stride + inner * step for place, inner, stride, step in rows))

    return Value((*x.shape[:2], *places, *kernel), x.dtype, element, x.depth)


def _max_pool(x: Value, kernel_shape: Ints, storage_order: int = 0, **how: Any) -> Value:
    axes = range(len(x.shape), len(x.shape) + len(kernel_shape))
    return slide(x, kernel_shape, neutral("max", x.dtype), **how).reduce("max", axes).squeeze(axes)


def _average_pool(x: Value, kernel_shape: Ints, count_include_pad: int = 0, **how: Any) -> Value:
    axes = range(len(x.shape), len(x.shape) + len(kernel_shape))
    counts = total(slide(x, kernel_shape, count_include_pad, **how, count=True), axes)
    return (total(slide(x, kernel_shape, 0, **how), axes) / counts).squeeze(axes)


def _conv(
    x: Value, weight: Value, bias: Value | None = None, group: int = 1, kernel_shape: Ints = (), **how: Any
) -> Value:
    (n, channels), (maps, each, *kernel), rank = x.shape[:2], weight.shape, len(weight.shape) - 2
    if channels != each * group or maps % group:
        raise BadGraph(f"has {channels} channels and weights {weight.shape}, group={group}: make them agree")
    seen = slide(x, kernel, 0, **how)
    out = seen.shape[2 : 2 + rank]
    seen = seen.reshape((n, group, 1, each, *out, *kernel))
    weights = weight.reshape((group, maps // group, each, *[1] * rank, *kernel))
    result = total(weights * seen, [3, *range(4 + rank, 4 + 2 * rank)]).reshape((n, maps, *out))
    return result if bias is None else result + bias.reshape((maps, *[1] * rank))


_ZERO = torch.zeros(1)
RULES: dict[str, Rule] = {name: getattr(Value, name.lower()) for name in "Ceil Cos Erf Exp Floor Log Sin Sqrt".split()}
RULES |= {name: getattr(Value, f"__{name.lower()}__") for name in "Abs Add And Mul Neg Or Sub".split()}
RULES |= {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": lambda shape, value=_ZERO: constant(value.reshape(())).expand(shape.numbers()),
    "Conv": _conv,
    "Div": Value.__truediv__,
    "Elu": lambda x, alpha=1.0: (x < 0).where((x.exp() - 1) * alpha, x),
    "Equal": Value.equal,
    "Expand": lambda x, shape: x.expand(shape.numbers()),
    "Flatten": lambda x, axis=1: x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))),
    "Gather": lambda x, indices, axis=0: x.take(axis_of(axis, x), indices),
    "Gelu": _gelu,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda x: mean(x, range(2, len(x.shape))),
    "GlobalMaxPool": lambda x: x.reduce("max", range(2, len(x.shape))),
    "Greater": Value.__gt__,
    "GreaterOrEqual": lambda a, b: b <= a,
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: (x * alpha + beta).minimum(1).maximum(0),
    "HardSwish": lambda x: x * (x * (1 / 6) + 0.5).minimum(1).maximum(0),
    "Identity": lambda x: x,
    "LayerNormalization": _layer_normalization,
    "LeakyRelu": lambda x, alpha=0.01: (x < 0).where(x * alpha, x),
    "Less": Value.__lt__,
    "LessOrEqual": Value.__le__,
    "LogSoftmax": partial(_softmax, log=True),
    "MatMul": _matmul,
    "Max": lambda *inputs: reduce(Value.maximum, inputs),
    "MaxPool": _max_pool,
    "Min": lambda *inputs: reduce(Value.minimum, inputs),
    "Not": lambda x: x.equal(False),
    "Pad": _pad,
    "Pow": _power,
    "RMSNormalization": _rms_normalization,
    "Reciprocal": lambda x: 1 / x,
    "ReduceL2": _reduction(lambda x, axes: total(x * x, axes).sqrt()),
    "ReduceMax": _reduction(partial(_extreme, "max")),
    "ReduceMean": _reduction(mean),
    "ReduceMin": _reduction(partial(_extreme, "min")),
    "ReduceSum": _reduction(total),
    "Relu": lambda x: x.maximum(0),
    "Reshape": _reshape,
    "Round": _round,
    "Shape": lambda x, start=0, end=None: constant(torch.tensor(x.shape[start:end], dtype=torch.int64)),
    "Sigmoid": _sigmoid,
    "Sign": lambda x: (x > 0).where(1, x if x.dtype.startswith("uint") else (x < 0).where(-1, x)),
    "Size": lambda x: constant(math.prod(x.shape), "int64"),
    "Slice": _slice,
    "Softmax": _softmax,
    "Softplus": lambda x: x.maximum(0) + ((-abs(x)).exp() + 1).log(),
    "Softsign": lambda x: x / (abs(x) + 1),
    "Split": _split,
    "Squeeze": _squeeze,
    "Swish": lambda x, alpha=1.0: x * _sigmoid(x * alpha),
    "Tanh": _tanh,
    "Transpose": lambda x, perm=None: x.transpose(perm or range(len(x.shape))[::-1]),
    "Unsqueeze": _unsqueeze,
    "Where": Value.where,
}
"""Rules by ONNX's name. Each returns a Value, or a tuple of Values if the operation has several outputs."""


def apply_rule(operation: Operation, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return an operation's outputs by name; raises BadGraph or UnsupportedOp if its rule does not have such inputs."""
    inputs = [values[name] if name else None for name in operation.inputs]
    narrow = [value.dtype for value in inputs if value is not None and value.dtype in NARROW]
    if narrow and operation.op not in ("Cast", "Identity"):
        raise UnsupportedOp(f"{operation.op} of {narrow[0]} is not computed: cast the tensor to fp16 or fp32 before")
    try:
        found = RULES[operation.op](*inputs, **operation.attributes)
    except BadGraph as error:
        raise type(error)(f"{operation.op} {error}") from error
    except (TypeError, AttributeError) as error:
        raise BadGraph(f"{operation} does not fit the rule of {operation.op} ({error}): check its inputs") from error
    found = found if isinstance(found, tuple) else (found,)
    if len(found) < len(operation.outputs):
        raise BadGraph(f"{operation} asks {operation.op} for {len(operation.outputs)} outputs: use {len(found)}")
    return {name: value for name, value in zip(operation.outputs, found, strict=False) if name}


def given(graph: Graph) -> dict[str, Value]:
    """Return a graph's inputs and constants."""
    values = {tensor.name: buffer(tensor) for tensor in graph.inputs}
    return values | {name: constant(value, name=name) for name, value in graph.constants.items()}
