"""What each ONNX operation computes: a function of Values, with its attributes as arguments that have ONNX's defaults.

To add an operation, add its rule to `RULES`; `docs/compiler.md` shows it step by step. Fusion, schedules and Triton
text follow from the expression that the rule builds. A rule gets

- one argument for each input, a `Value`, or None for one that is left out. What must be known when the model is
  compiled, such as the shape of a Reshape, is read with `Value.numbers`
- each attribute by ONNX's name, as a Python number, text or list, so that its default stands in the rule

and returns a `Value`, or a tuple of them. It refuses what it does not compute as ONNX says: raise UnsupportedOp, or
BadGraph if the model is wrong.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import torch

from mlsys.compiler.ir.graph import FLOATS, BadGraph, Graph, Operation, Tensor, UnsupportedOp
from mlsys.compiler.ir.value import Value, buffer, constant, neutral

Ints: TypeAlias = Sequence[int]


def _power(base: Value, exponent: Value) -> Value:
    if base.dtype not in FLOATS:
        raise UnsupportedOp(f"the compiler has no Pow of {base.dtype}: cast the base to fp32")
    if exponent.known is not None and exponent.numbers() in ([0.5], [2], [3]):
        return {0.5: base.sqrt(), 2: base * base, 3: base * base * base}[exponent.numbers()[0]]
    y = exponent.cast(base.dtype)
    size, whole, odd = (y * abs(base).log2()).exp2(), y.floor().equal(y), (y * 0.5).floor().differs(y * 0.5)
    return y.equal(0).where(1, (base < 0).where(whole.where(odd.where(-size, size), math.nan), size))


def _sigmoid(x: Value) -> Value:
    return 1 / ((-x).exp() + 1)


def _gelu(x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        return x * _sigmoid((x + x * x * x * 0.044715) * math.sqrt(8 / math.pi))
    return x * 0.5 * ((x * math.sqrt(0.5)).erf() + 1)


def _tanh(x: Value) -> Value:  # from exp(-2|x|), and near zero, where that loses digits, from its series
    e, square = (abs(x) * -2).exp(), x * x
    far, series = (1 - e) / (e + 1), ((square * (-17 / 315) + 2 / 15) * square - 1 / 3) * square + 1
    return (abs(x) < 0.1).where(x * series, (x < 0).where(-far, far))


def _clip(x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    x = x if low is None else x.maximum(low)
    return x if high is None else x.minimum(high)


def _expand(x: Value, shape: Ints) -> Value:
    return x.view(lambda array: np.broadcast_to(array, np.broadcast_shapes(tuple(x.shape), tuple(shape))))


def _concat(*parts: Value, axis: int) -> Value:
    axis, result, at = range(len(parts[0].shape))[axis], None, 0
    whole = sum(part.shape[axis] for part in parts)
    for part in parts:  # each is padded by what is before it, and after
        before, after = [0] * len(part.shape), [0] * len(part.shape)
        before[axis], after[axis] = at, whole - at - part.shape[axis]
        result, at = part.pad(before, after, 0 if result is None else result), at + part.shape[axis]
    return result  # type: ignore[return-value]


def _slice(x: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None) -> Value:
    along, places = axes.numbers() if axes is not None else range(len(starts.numbers())), range(len(x.shape))
    stride = steps.numbers() if steps is not None else [1] * len(along)
    cuts = dict(zip((places[n] for n in along), map(slice, starts.numbers(), ends.numbers(), stride), strict=True))
    return x.view(lambda array: array[tuple(cuts.get(n, slice(None)) for n in places)])


def _split(x: Value, sizes: Value | None = None, axis: int = 0, num_outputs: int = 1) -> tuple[Value, ...]:
    each = -(-x.shape[axis] // num_outputs)
    ends = list(range(each, each * num_outputs, each)) if sizes is None else list(accumulate(sizes.numbers()))[:-1]
    return tuple(x.view(partial(lambda array, n: np.split(array, ends, axis)[n], n=n)) for n in range(len(ends) + 1))


def _constant(value: torch.Tensor | None = None, **given: Any) -> Value:
    dtype = torch.float32 if "float" in "".join(given) else torch.int64
    return constant(torch.tensor(next(iter(given.values())), dtype=dtype) if value is None else value)


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


def _reduction(function: Callable[[Value, Ints], Value]) -> Callable[..., Value]:
    def run(x: Value, axes: Value | Ints | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Value:
        given = axes.numbers() if isinstance(axes, Value) else axes or []
        every = range(len(x.shape))
        over = sorted(every[axis] for axis in given) if given or noop_with_empty_axes else every
        return function(x, over) if keepdims else function(x, over).squeeze(over)

    return run


def _softmax(x: Value, axis: int = -1, log: bool = False) -> Value:
    axes = [range(len(x.shape))[axis]]
    shifted = x - x.reduce("max", axes)
    return shifted - total(shifted.exp(), axes).log() if log else shifted.exp() / total(shifted.exp(), axes)


def _layer_normalization(
    x: Value, scale: Value, shift: Value | None = None, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Value, ...]:
    axes = range(len(x.shape))[axis:]
    average = mean(x, axes)
    rest = x - average
    inverse = (mean(rest * rest, axes) + epsilon).rsqrt()
    result = rest * inverse * scale
    return result if shift is None else result + shift, average, inverse


def _rms_normalization(x: Value, scale: Value, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Value:
    return x * (mean(x * x, range(len(x.shape))[axis:]) + epsilon).rsqrt() * scale


def _batch_normalization(
    x: Value, *by_channel: Value, epsilon: float = 1e-5, momentum: float = 0.9, training_mode: int = 0
) -> Value:
    if training_mode:
        raise UnsupportedOp("the compiler has no BatchNormalization with training_mode=1: compile it for inference")
    scale, shift, average, variance = (s.reshape((-1, *[1] * (len(x.shape) - 2))) for s in by_channel)
    return (x - average) * (variance + epsilon).rsqrt() * scale + shift


def _matmul(a: Value, b: Value) -> Value:
    left = a.reshape((1, -1)) if len(a.shape) == 1 else a
    right = b.reshape((-1, 1)) if len(b.shape) == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise BadGraph(f"has the shapes {a.shape} and {b.shape}: make the inner sizes equal")
    product = left.reshape((*left.shape, 1)) * right.reshape((*right.shape[:-2], 1, *right.shape[-2:]))
    ones = [-2, *[-3] * (len(a.shape) == 1), *[-1] * (len(b.shape) == 1)]  # of the axes ..., m, k, n
    return total(product, [len(product.shape) - 2]).squeeze(ones)


def _gemm(a: Value, b: Value, c: Value | None = None, alpha: float = 1, beta: float = 1, **flip: int) -> Value:
    product = _matmul(*(m.view(np.transpose) if flip.get(f"trans{name}") else m for m, name in ((a, "A"), (b, "B"))))
    product = product if alpha == 1 else product * alpha
    return product if c is None else product + (c if beta == 1 else c * beta)


def slide(
    x: Value, kernel: Ints, fill: Value | float, strides: Ints = (), dilations: Ints = (), pads: Ints = (),
    auto_pad: str = "NOTSET", ceil_mode: int = 0, beyond: Value | float | None = None,
) -> Value:  # fmt: skip
    """Return what a window sees: x's first two axes, then the window's places, then the places inside the window.

    `fill` stands in the padding, and `beyond` (by default the same) where ceil_mode lets a window reach past it.
    """
    rank = len(kernel)
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    before, after, past = list(pads[:rank]), list(pads[rank:]), [0] * rank
    for n, (length, step) in enumerate(zip(x.shape[2:], strides, strict=True)):
        if auto_pad.startswith("SAME"):  # a place for each step that begins in the input
            both = max(0, (length - 1) // step * step + reach[n] - length)
            before[n], after[n] = sorted((both // 2, both - both // 2), reverse=auto_pad == "SAME_LOWER")
        if ceil_mode:  # one place more, unless it begins in the padding behind the input
            last = min(-(-(before[n] + length + after[n] - reach[n]) // step), (before[n] + length - 1) // step) * step
            past[n] = max(0, last + reach[n] - before[n] - length - after[n])
    padded = x.pad([0, 0, *before], [0, 0, *after], fill)
    padded = padded.pad([0] * (2 + rank), [0, 0, *past], fill if beyond is None else beyond) if any(past) else padded
    steps: Any = (..., *(slice(None, None, step) for step in (*strides, *dilations)))
    return padded.view(lambda array: np.lib.stride_tricks.sliding_window_view(array, reach, (*range(-rank, 0),))[steps])


def _max_pool(x: Value, kernel_shape: Ints, storage_order: int = 0, **how: Any) -> Value:
    axes = range(len(x.shape), len(x.shape) + len(kernel_shape))
    return slide(x, kernel_shape, neutral("max", x.dtype), **how).reduce("max", axes).squeeze(axes)


def _average_pool(x: Value, kernel_shape: Ints, count_include_pad: int = 0, **how: Any) -> Value:
    axes = range(len(x.shape), len(x.shape) + len(kernel_shape))
    ones = _expand(constant(1, x.dtype), (1, 1, *x.shape[2:]))
    count = slide(ones, kernel_shape, count_include_pad, **how, beyond=0)
    return (total(slide(x, kernel_shape, 0, **how), axes) / total(count, axes)).squeeze(axes)


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
RULES: dict[str, Callable[..., Any]] = {
    name: getattr(Value, name.lower()) for name in "Ceil Cos Equal Erf Exp Floor Log Sin Sqrt Where".split()
}
RULES |= {name: getattr(Value, f"__{name.lower()}__") for name in "Abs Add And Mul Neg Or Sub".split()}
RULES |= {"Div": Value.__truediv__, "Greater": Value.__gt__, "Less": Value.__lt__, "LessOrEqual": Value.__le__}
RULES |= {"GreaterOrEqual": lambda a, b: b <= a, "Not": lambda x: x.equal(False), "Reciprocal": lambda x: 1 / x}
RULES |= {"Max": lambda *x: reduce(Value.maximum, x), "Min": lambda *x: reduce(Value.minimum, x), "Pow": _power}
RULES |= {"Clip": _clip, "Gelu": _gelu, "Sigmoid": _sigmoid, "Tanh": _tanh, "Identity": lambda x: x}
RULES |= {
    "Cast": lambda x, to, saturate=1: x.cast(to),
    "Elu": lambda x, alpha=1.0: (x < 0).where((x.exp() - 1) * alpha, x),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: (x * alpha + beta).minimum(1).maximum(0),
    "HardSwish": lambda x: x * (x * (1 / 6) + 0.5).minimum(1).maximum(0),
    "LeakyRelu": lambda x, alpha=0.01: (x < 0).where(x * alpha, x),
    "Relu": lambda x: x.maximum(0),
    "Sign": lambda x: (x > 0).where(1, x if x.dtype.startswith("uint") else (x < 0).where(-1, x)),
    "Softplus": lambda x: x.maximum(0) + ((-abs(x)).exp() + 1).log(),
    "Softsign": lambda x: x / (abs(x) + 1),
    "Swish": lambda x, alpha=1.0: x * _sigmoid(x if alpha == 1 else x * alpha),
}
RULES |= {
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": lambda n, value=_ZERO: _expand(constant(value.reshape(())), n.numbers()),
    "Expand": lambda x, shape: _expand(x, shape.numbers()),
    "Flatten": lambda x, axis=1: x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))),
    "Gather": lambda x, indices, axis=0: x.take(range(len(x.shape))[axis], indices),
    "Reshape": lambda x, shape, allowzero=0: x.reshape(
        [x.shape[n] if size == 0 and not allowzero else size for n, size in enumerate(shape.numbers())]
    ),
    "Shape": lambda x, start=0, end=None: constant(torch.tensor(x.shape[start:end], dtype=torch.int64)),
    "Size": lambda x: constant(math.prod(x.shape), "int64"),
    "Slice": _slice,
    "Split": _split,
    "Squeeze": lambda x, axes=None: x.view(lambda a: a.squeeze(axes and tuple(axes.numbers()))),
    "Transpose": lambda x, perm=None: x.view(lambda a: a.transpose(perm)),
    "Unsqueeze": lambda x, axes: x.view(lambda a: np.expand_dims(a, tuple(axes.numbers()))),
    "View": Value.strided,
}
RULES |= {"ReduceMax": _reduction(partial(_extreme, "max")), "ReduceMin": _reduction(partial(_extreme, "min"))}
RULES |= {"ReduceMean": _reduction(mean), "ReduceSum": _reduction(total)}
RULES |= {"ReduceL2": _reduction(lambda x, axes: total(x * x, axes).sqrt()), "MatMul": _matmul, "Gemm": _gemm}
RULES |= {"GlobalAveragePool": lambda x: mean(x, range(2, len(x.shape))), "AveragePool": _average_pool}
RULES |= {"GlobalMaxPool": lambda x: x.reduce("max", range(2, len(x.shape))), "MaxPool": _max_pool, "Conv": _conv}
RULES |= {"Softmax": _softmax, "LogSoftmax": partial(_softmax, log=True), "BatchNormalization": _batch_normalization}
RULES |= {"LayerNormalization": _layer_normalization, "RMSNormalization": _rms_normalization}
"""Rules by ONNX's name. Each returns a Value, or a tuple of Values if the operation has several outputs."""


def apply_rule(operation: Operation, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return an operation's outputs by name; raises BadGraph or UnsupportedOp if its rule does not have such inputs."""
    if operation.op not in RULES:
        what = "write it with those of mlsys.compiler.OPS, or add a rule for it in mlsys/compiler/rules.py"
        raise UnsupportedOp(f"the compiler has no operation {operation.op!r}: {what}")
    for name in (name for name in operation.inputs if name and name not in values):
        what = "add it to the inputs or constants, or sort the operations, without a cycle"
        raise BadGraph(f"{operation.op} uses tensor '{name}' and nothing before it gives that: {what}")
    try:
        inputs = [values[name] if name else None for name in operation.inputs]
        found = RULES[operation.op](*inputs, **operation.attributes)
        found = found if isinstance(found, tuple) else (found,)
        if not all(isinstance(value, Value) for value in found):
            raise TypeError(f"it returned {', '.join(type(value).__name__ for value in found)}, not a Value")
    except BadGraph as error:
        raise type(error)(f"{operation.op} {error}") from error
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise BadGraph(f"{operation} does not fit the rule of {operation.op} ({error}): check both") from error
    if len(found) < len(operation.outputs):
        raise BadGraph(f"{operation} asks {operation.op} for {len(operation.outputs)} outputs: use {len(found)}")
    return {name: value for name, value in zip(operation.outputs, found, strict=False) if name}


def given(graph: Graph) -> dict[str, Value]:
    """Return a graph's inputs and constants; raises BadGraph if a tensor is given twice, or an output not at all."""
    results = [name for operation in graph.operations for name in operation.outputs if name]
    times = Counter([*(tensor.name for tensor in graph.inputs), *graph.constants, *results])
    for name in (name for name, count in times.items() if count > 1):
        raise BadGraph(f"tensor '{name}' is given twice: give each input, constant and result a name of its own")
    for name in set(graph.outputs) - times.keys():
        raise BadGraph(f"output '{name}' is given by no operation: add it or take it from the outputs")
    values = {tensor.name: buffer(tensor) for tensor in graph.inputs}
    return values | {name: constant(value, name=name) for name, value in graph.constants.items()}


def tensors_of(graph: Graph) -> dict[str, Value]:
    """Return every tensor of a graph as it is read from memory; sizes and formats follow from the rules."""
    values = given(graph)
    for operation in graph.operations:
        for name, value in apply_rule(operation, values).items():
            values[name] = buffer(Tensor(name, tuple(value.shape), value.dtype))
    return values
