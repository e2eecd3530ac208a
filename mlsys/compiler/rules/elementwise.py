"""Rules of the operations that compute each element from one element of every input.

A rule is a function of expressions. Everything that follows, from fusion to Triton text, is the same for all of them.
"""

import math
from collections.abc import Callable
from functools import partial, reduce

from mlsys.compiler.ir.expression import Constant, Coordinate, Expression, Operand, apply, cast, make, number, where
from mlsys.compiler.ir.graph import FLOATS, NARROW_FLOATS, NARROW_INTEGERS, dtype_of_onnx
from mlsys.compiler.ir.index import Index
from mlsys.compiler.rules.narrow import decode, encode, wrapped
from mlsys.compiler.rules.values import Call, Value, elementwise, rule

Function = Callable[..., Expression]


def exp(x: Expression) -> Expression:
    """Return e to the power x."""
    return apply("exp", x)


def maximum(a: Expression, b: Operand) -> Expression:
    """Return the greater; NaN if one is NaN."""
    return apply("or" if a.dtype == "bool" else "max", a, b)


def minimum(a: Expression, b: Operand) -> Expression:
    """Return the lesser; NaN if one is NaN."""
    return apply("and" if a.dtype == "bool" else "min", a, b)


def equal(a: Expression, b: Operand) -> Expression:
    """Return whether two values are equal."""
    return apply("eq", a, b, dtype="bool")


def unequal(a: Expression, b: Operand) -> Expression:
    """Return whether two values differ."""
    return apply("ne", a, b, dtype="bool")


def sigmoid(x: Expression) -> Expression:
    """Return the logistic function, 1 / (1 + exp(-x))."""
    return number(1, x.dtype) / (exp(-x) + 1)


def tanh(x: Expression) -> Expression:
    """Compute tanh from exp(-2|x|), and near zero, where that loses digits, from its series."""
    e, square = exp(abs(x) * -2), x * x
    far = (number(1, x.dtype) - e) / (e + 1)
    series: Expression = number(-17 / 315, x.dtype)
    for factor in (2 / 15, -1 / 3, 1):
        series = series * square + factor
    return where(abs(x) < 0.1, x * series, where(x < 0, -far, far))


def softplus(x: Expression) -> Expression:
    """Return log(1 + exp(x)), without overflow."""
    return maximum(x, 0) + apply("log", exp(-abs(x)) + 1)


def is_odd(x: Expression) -> Expression:
    """Return whether a whole number is odd."""
    return unequal(apply("floor", x * 0.5), x * 0.5)


def round_even(x: Expression) -> Expression:
    """Return the nearest whole number, the even one of two."""
    low = apply("floor", x)
    rest = x - low
    up = (number(0.5, x.dtype) < rest) | (equal(rest, 0.5) & is_odd(low))
    return where(up, low + 1, low)


def sign(x: Expression) -> Expression:
    """Return -1, 0 or 1; NaN of NaN."""
    rest = x if x.dtype.startswith("uint") else where(x < 0, -1, x)
    return where(number(0, x.dtype) < x, 1, rest)


def power(base: Expression, exponent: Expression) -> Expression:
    """Return base to the power of exponent, in the format of the base."""
    if isinstance(exponent, Constant) and base.dtype in FLOATS and exponent.value in (0.5, 1, 2, 3):
        short: dict[float, Function] = {
            0.5: lambda x: apply("sqrt", x), 1: lambda x: x, 2: lambda x: x * x, 3: lambda x: x * x * x
        }  # fmt: skip
        return short[exponent.value](base)
    wide = base.dtype if base.dtype in FLOATS else "fp64"
    x, y = cast(base, wide), cast(exponent, wide)
    size = apply("exp2", y * apply("log2", abs(x)))
    whole = equal(apply("floor", y), y)
    negative = where(whole & is_odd(y), -size, where(whole, size, math.nan))
    result = where(equal(y, 0), 1, where(x < 0, negative, size))
    return cast(result if wide == base.dtype else round_even(result), base.dtype)


def gelu(x: Expression, approximate: str) -> Expression:
    """Return x times the normal distribution's share below x, or its approximation by tanh."""
    if approximate == "tanh":
        return x * 0.5 * (tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1)
    return x * 0.5 * (apply("erf", x * math.sqrt(0.5)) + 1)


UNARY: dict[str, Function] = {
    **{name: partial(apply, name.lower()) for name in "Exp Log Sqrt Erf Sin Cos Floor Ceil".split()},
    "Identity": lambda x: x,
    "Neg": lambda x: -x,
    "Abs": abs,
    "Reciprocal": lambda x: number(1, x.dtype) / x,
    "Relu": lambda x: maximum(x, 0),
    "Sigmoid": sigmoid,
    "Tanh": tanh,
    "Round": round_even,
    "Sign": sign,
    "Softplus": softplus,
    "Softsign": lambda x: x / (abs(x) + 1),
    "HardSwish": lambda x: x * maximum(minimum(x * (1 / 6) + 0.5, 1), 0),
    "Mish": lambda x: x * tanh(softplus(x)),
    "Not": lambda x: equal(x, False),
    "IsNaN": lambda x: unequal(x, x),
}
WITH_ATTRIBUTES: dict[str, tuple[dict[str, float | str], Function]] = {
    "LeakyRelu": ({"alpha": 0.01}, lambda x, alpha: where(x < 0, x * alpha, x)),
    "Elu": ({"alpha": 1.0}, lambda x, alpha: where(x < 0, (exp(x) - 1) * alpha, x)),
    "Selu": (
        {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
        lambda x, alpha, gamma: where(x < 0, (exp(x) - 1) * alpha, x) * gamma,
    ),
    "HardSigmoid": ({"alpha": 0.2, "beta": 0.5}, lambda x, a, b: maximum(minimum(x * a + b, 1), 0)),
    "ThresholdedRelu": ({"alpha": 1.0}, lambda x, alpha: where(number(alpha, x.dtype) < x, x, 0)),
    "Swish": ({"alpha": 1.0}, lambda x, alpha: x * sigmoid(x * alpha)),
    "Gelu": ({"approximate": "none"}, gelu),
}
BINARY: dict[str, Function] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "Pow": power,
    "PRelu": lambda x, slope: where(x < 0, x * slope, x),
    "And": lambda a, b: a & b,
    "Or": lambda a, b: a | b,
    "Xor": lambda a, b: apply("xor", a, b),
}
COMPARISONS: dict[str, Function] = {
    "Equal": equal,
    "Less": lambda a, b: a < b,
    "LessOrEqual": lambda a, b: a <= b,
    "Greater": lambda a, b: b < a,
    "GreaterOrEqual": lambda a, b: b <= a,
}
MANY: dict[str, Function] = {
    "Sum": lambda *parts: reduce(lambda a, b: a + b, parts),
    "Mean": lambda *parts: reduce(lambda a, b: a + b, parts) / len(parts),
    "Max": lambda *parts: reduce(maximum, parts),
    "Min": lambda *parts: reduce(minimum, parts),
}


@rule(*UNARY)
def _unary(call: Call, x: Value) -> Value:
    return elementwise(call, UNARY[call.op], x, dtype="bool" if call.op == "IsNaN" else x.dtype)


@rule(*BINARY, *COMPARISONS)
def _binary(call: Call, a: Value, b: Value) -> Value:
    function, dtype = (BINARY | COMPARISONS)[call.op], "bool" if call.op in COMPARISONS else a.dtype
    return elementwise(call, function, a, b, dtype=dtype)


@rule(*MANY)
def _many(call: Call, *values: Value) -> Value:
    return elementwise(call, MANY[call.op], *values)


@rule(*WITH_ATTRIBUTES)
def _with_attributes(call: Call, x: Value) -> Value:
    defaults, function = WITH_ATTRIBUTES[call.op]
    settings = [call.get(name, default) for name, default in defaults.items()]
    return elementwise(call, lambda x: function(x, *settings), x)


@rule("Where")
def _where(call: Call, condition: Value, a: Value, b: Value) -> Value:
    return elementwise(call, where, condition, a, b)


@rule("Clip")
def _clip(call: Call, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    for given, bound in ((low, maximum), (high, minimum)):
        x = x if given is None else elementwise(call, bound, x, given)
    return x


@rule("Cast", "CastLike")
def _cast(call: Call, x: Value, *more: Value) -> Value:
    to = more[0].dtype if call.op == "CastLike" else call.attributes["to"]
    dtype = to if isinstance(to, str) else dtype_of_onnx("the result of Cast", to)
    if dtype in NARROW_FLOATS:
        return Value("", x.shape, dtype, encode(x, *more))
    if x.dtype in NARROW_FLOATS:
        return Value("", x.shape, dtype, decode(x, more[0], dtype))
    return elementwise(
        call, lambda x: wrapped(x, dtype) if dtype in NARROW_INTEGERS else cast(x, dtype), x, dtype=dtype
    )


@rule("Range")
def _range(call: Call, start: Value, limit: Value, delta: Value) -> Value:
    first, last, step = (value.numbers(call.op)[0] for value in (start, limit, delta))

    def element(place: Index) -> Expression:
        return cast(make(Coordinate, place, "int64"), start.dtype) * delta.at() + start.at()

    return Value("", (max(0, math.ceil((last - first) / step)),), start.dtype, element)
