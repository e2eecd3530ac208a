"""The functions of one element that kernels are made of: Triton text, cost, and NumPy's function to fold constants."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mlsys.compiler.ir.expression import Apply, Constant, Coordinate, Expression, Guard, Load, Reduce, walk
from mlsys.compiler.ir.graph import TORCH
from mlsys.compiler.ir.index import Axis, Fetched, Index, Quotient

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Primitive:
    """A function: its text with a pair of braces for each argument, FLOPs, and what computes it at compile time."""

    text: str
    flops: int
    numpy: Callable[..., Any]


_NAN = "propagate_nan=tl.PropagateNan.ALL"
_SLOW = (
    8  # the special function units of an SM do 16 results a clock, its FMA units 128: CUDA C++ guide, 8.4.1, for 9.0
)

PRIMITIVES = {
    "add": Primitive("{} + {}", 1, np.add),
    "sub": Primitive("{} - {}", 1, np.subtract),
    "mul": Primitive("{} * {}", 1, np.multiply),
    "div": Primitive("{} / {}", _SLOW, np.divide),
    "idiv": Primitive("{} // {}", _SLOW, lambda a, b: np.trunc(np.divide(a, b)).astype(np.result_type(a, b))),
    "rem": Primitive("{} % {}", _SLOW, np.fmod),
    "neg": Primitive("-{}", 1, np.negative),
    "abs": Primitive("tl.abs({})", 1, np.abs),
    "max": Primitive(f"tl.maximum({{}}, {{}}, {_NAN})", 1, np.maximum),
    "min": Primitive(f"tl.minimum({{}}, {{}}, {_NAN})", 1, np.minimum),
    "exp": Primitive("tl.exp({})", _SLOW, np.exp),
    "exp2": Primitive("tl.exp2({})", _SLOW, np.exp2),
    "log": Primitive("tl.log({})", _SLOW, np.log),
    "log2": Primitive("tl.log2({})", _SLOW, np.log2),
    "sqrt": Primitive("tl.sqrt({})", _SLOW, np.sqrt),
    "rsqrt": Primitive("tl.rsqrt({})", _SLOW, lambda a: 1 / np.sqrt(a)),
    "sin": Primitive("tl.sin({})", _SLOW, np.sin),
    "cos": Primitive("tl.cos({})", _SLOW, np.cos),
    "erf": Primitive("tl.erf({})", 2 * _SLOW, lambda a: torch.erf(torch.from_numpy(np.asarray(a))).numpy()),
    "floor": Primitive("tl.floor({})", 1, np.floor),
    "ceil": Primitive("tl.ceil({})", 1, np.ceil),
    "where": Primitive("tl.where({}, {}, {})", 1, np.where),
    "lt": Primitive("{} < {}", 1, np.less),
    "le": Primitive("{} <= {}", 1, np.less_equal),
    "eq": Primitive("{} == {}", 1, np.equal),
    "ne": Primitive("{} != {}", 1, np.not_equal),
    "and": Primitive("{} & {}", 1, np.bitwise_and),
    "or": Primitive("{} | {}", 1, np.bitwise_or),
    "xor": Primitive("{} ^ {}", 1, np.bitwise_xor),
    "cast": Primitive("{}.to({})", 1, lambda a: a),  # the format comes from the expression
}
"""Functions of one element by name."""


def flops(root: Expression) -> int:
    """Return the FLOPs of one element, a reduction's body counted once for each step."""
    total = 0
    for part in walk(root):
        if isinstance(part, Apply):
            total += PRIMITIVES[part.function].flops
        elif isinstance(part, Reduce):
            total += 1
    return total


def evaluate(root: Expression, axes: Sequence[Axis], buffers: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Compute a tensor at compile time: how shapes that a graph computes become numbers.

    Args:
        root: expression of one element, without reductions.
        axes: axes of the result, outermost first.
        buffers: values of the buffers that it loads.
    """
    grid = dict(zip(axes, np.meshgrid(*(np.arange(a.extent) for a in axes), indexing="ij", sparse=True), strict=True))
    done: dict[int, Array] = {}

    def place(position: Index) -> Any:
        total: Any = position.constant
        for atom, factor in position.terms:
            if isinstance(atom, Axis):
                value = grid[atom]
            elif isinstance(atom, Fetched):
                value = done[id(atom.value)]
            else:
                inner = place(atom.inner)
                value = inner // atom.divisor if isinstance(atom, Quotient) else inner % atom.divisor
            total = total + value * factor
        return total

    with np.errstate(all="ignore"):
        for part in walk(root):
            kept: Any
            if isinstance(part, Load):
                values = buffers[part.buffer].reshape(-1).numpy()
                kept = values[np.clip(place(part.position), 0, max(0, len(values) - 1))]
            elif isinstance(part, Constant):
                kept = part.value
            elif isinstance(part, Coordinate):
                kept = place(part.position)
            elif isinstance(part, Guard):
                inside = np.all(
                    np.broadcast_arrays(*((low <= place(p)) & (place(p) < high) for p, low, high in part.conditions)),
                    axis=0,
                )
                kept = np.where(inside, done[id(part.inside)], done[id(part.outside)])
            elif isinstance(part, Apply):
                kept = PRIMITIVES[part.function].numpy(*(done[id(argument)] for argument in part.arguments))
            else:
                raise NotImplementedError(f"no reduction is folded: {part}")
            done[id(part)] = np.asarray(kept, dtype=_numpy(part.dtype))
    shape = tuple(axis.extent for axis in axes)
    return torch.from_numpy(np.broadcast_to(done[id(root)], shape).copy())


def can_fold(root: Expression) -> bool:
    """Tell whether `evaluate` computes an expression: no reductions, no format that NumPy lacks."""
    return not any(isinstance(part, Reduce) or part.dtype == "bf16" for part in walk(root))


def _numpy(dtype: str) -> Any:
    return torch.empty(0, dtype=TORCH[dtype]).numpy().dtype
