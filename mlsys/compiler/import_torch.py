"""First stage, for torch: export a module and translate its ATen operations into ONNX's."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from mlsys.compiler.ir.graph import OF_TORCH, BadGraph, Graph, Operation, Tensor, UnsupportedOp, tensor_of

Translation = Callable[..., str | tuple[str, ...]]


def from_torch(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Graph:
    """Export a module with `torch.export` and translate it; its parameters become constants.

    Raises:
        UnsupportedOp: an ATen operation without a translation.
    """
    for part in module.modules():
        if part.training and isinstance(
            part, torch.nn.modules.batchnorm._BatchNorm | torch.nn.modules.dropout._DropoutNd
        ):
            raise BadGraph(f"{type(part).__name__} is in training mode: call module.eval() before compiling")
    exported = torch.export.export(module, tuple(inputs))
    if any(_name_of(node).endswith("_") for node in exported.graph.nodes if node.op == "call_function"):
        exported = exported.run_decompositions({})  # operations in place become others
    importer = _Importer()
    tensors: list[Tensor] = []
    kept = {**exported.state_dict, **exported.constants}
    for spec in exported.graph_signature.input_specs:
        name = spec.arg.name
        if spec.target is None:
            tensors.append(tensor_of(name, inputs[len(tensors)]))
        else:
            value = kept[spec.target].detach()
            tensor_of(name, value)
            importer.constants[name] = value
            if spec.target in exported.constants:
                importer.computed[name] = value
    nodes = [node for node in exported.graph.nodes if node.op == "call_function"]
    for node in nodes:
        if not importer.is_constant(node) and _name_of(node) not in TRANSLATIONS:
            raise UnsupportedOp(
                f"the compiler has no translation of torch's operation {_name_of(node)!r}: write the module with "
                "others, or add one to mlsys/compiler/import_torch.py"
            )
    for node in nodes:
        importer.translate(node)
    outputs = tuple(importer.names.get(spec.arg.name, spec.arg.name) for spec in exported.graph_signature.output_specs)
    return Graph(tuple(tensors), outputs, tuple(importer.operations), importer.constants)


def _name_of(node: Any) -> str:
    return str(getattr(node.target, "_opname", None) or getattr(node.target, "__name__", node.target))


class _Importer:
    """The operations so far, and the name of the tensor that each of torch's nodes has become."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.constants: dict[str, torch.Tensor] = {}
        self.computed: dict[str, torch.Tensor] = {}  # what depends on no input and no parameter
        self.names: dict[str, Any] = {}

    def is_constant(self, node: Any) -> bool:
        if all(argument.name in self.computed for argument in node.all_input_nodes):
            arguments = torch.fx.map_arg((node.args, node.kwargs), lambda argument: self.computed[argument.name])
            self.computed[node.name] = node.target(*arguments[0], **arguments[1])
            return True
        return False

    def translate(self, node: Any) -> None:
        if node.name in self.computed:
            return
        self.node = node
        for name, value in node.kwargs.items():
            if name not in KEPT and name not in IGNORED and value not in (None, False):
                raise UnsupportedOp(f"the compiler has no {_name_of(node)} with {name}={value}: leave the argument out")
        kept = {name: value for name, value in node.kwargs.items() if name in KEPT}
        self.names[node.name] = TRANSLATIONS[_name_of(node)](self, *node.args, **kept)

    def name(self, value: Any) -> str:
        """The name of a tensor in the new graph."""
        if value is None:
            return ""
        if value.name in self.computed and value.name not in self.constants:
            return self.constant(self.computed[value.name])
        found = self.names.get(value.name, value.name)
        return str(found[0] if isinstance(found, tuple) else found)

    def constant(self, value: Any, dtype: torch.dtype | None = None) -> str:
        tensor = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=dtype)
        name = f"constant_{len(self.constants)}"
        self.constants[name] = tensor
        return name

    def ints(self, *values: int) -> str:
        return self.constant(torch.tensor(values, dtype=torch.int64))

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add an operation; returns the name of its result, or a tuple of names."""
        names = tuple(f"{op.lower()}_{len(self.operations)}" + (f"_{n}" if outputs > 1 else "") for n in range(outputs))
        self.operations.append(Operation(op, inputs, names, attributes))
        return names[0] if outputs == 1 else names

    def operand(self, value: Any, dtype: torch.dtype) -> str:
        """The name of a tensor or number in a format."""
        if isinstance(value, int | float | bool):
            return self.constant(value, dtype)
        if value.meta["val"].dtype == dtype:
            return self.name(value)
        return str(self.add("Cast", self.name(value), to=OF_TORCH[dtype]))

    def result(self) -> Any:
        """The example result of the node that is being translated."""
        value = self.node.meta["val"]
        return value[0] if isinstance(value, tuple | list) else value


def _unary(op: str) -> Translation:
    return lambda g, x: g.add(op, g.operand(x, g.result().dtype))


def _binary(op: str) -> Translation:
    def translate(g: _Importer, a: Any, b: Any, alpha: float = 1) -> str:
        dtype = g.result().dtype
        left, right = g.operand(a, dtype), g.operand(b, dtype)
        if alpha != 1:
            right = g.add("Mul", right, g.constant(alpha, dtype))
        return str(g.add(op, left, right))

    return translate


def _compare(op: str) -> Translation:
    def translate(g: _Importer, a: Any, b: Any) -> str:
        dtype = torch.result_type(*(v if isinstance(v, int | float) else v.meta["val"] for v in (a, b)))
        return str(g.add(op, g.operand(a, dtype), g.operand(b, dtype)))

    return translate


def _reduce(op: str) -> Translation:
    def translate(g: _Importer, x: Any, dim: Any = None, keepdim: bool = False) -> str:
        axes = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
        value = g.operand(x, g.result().dtype)
        return str(g.add(op, value, *([g.ints(*axes)] if axes else []), keepdims=int(keepdim)))

    return translate


def _max_pool(
    g: _Importer, x: Any, kernel: Any, stride: Any = (), pad: Any = 0, dilation: Any = 1, ceil: bool = False
) -> str:
    how = _window(g, kernel, stride, pad, ceil)
    return str(g.add("MaxPool", g.name(x), dilations=_many(dilation, len(how["strides"])), **how))


def _average_pool(
    g: _Importer,
    x: Any,
    kernel: Any,
    stride: Any = (),
    pad: Any = 0,
    ceil: bool = False,
    count: bool = True,
    by: Any = None,
) -> str:
    if by is not None:
        raise UnsupportedOp("the compiler has no avg_pool2d with divisor_override: multiply the result instead")
    return str(g.add("AveragePool", g.name(x), count_include_pad=int(count), **_window(g, kernel, stride, pad, ceil)))


def _window(g: _Importer, kernel: Any, stride: Any, pad: Any, ceil: bool) -> dict[str, Any]:
    rank = g.result().dim() - 2
    sizes = _many(kernel, rank)
    pads = _many(pad, rank) * 2
    return {"kernel_shape": sizes, "strides": _many(stride or sizes, rank), "pads": pads, "ceil_mode": int(ceil)}


def _adaptive(g: _Importer, x: Any, size: Any) -> str:
    if set(_many(size, 2)) != {1}:
        raise UnsupportedOp(f"the compiler has adaptive_avg_pool2d to the size 1 alone, got {size}: use avg_pool2d")
    return str(g.add("GlobalAveragePool", g.name(x)))


def _many(value: Any, count: int) -> list[int]:
    return [value] * count if isinstance(value, int) else list(value) * (count // len(value))


def _convolution(
    g: _Importer, x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> str:
    rank = g.result().dim() - 2
    if isinstance(padding, str):
        raise BadGraph(f"a convolution has padding={padding!r}: give it as numbers")
    inputs = [g.name(x), g.name(w), *([g.name(b)] if b is not None else [])]
    how: dict[str, Any] = {"strides": _many(stride, rank), "pads": _many(padding, rank) * 2}
    return str(g.add("Conv", *inputs, group=groups, dilations=_many(dilation, rank), **how))


def _batch_norm(
    g: _Importer, x: Any, w: Any, b: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, *rest: Any
) -> str:
    if training:
        raise BadGraph("batch_norm has training=True: compile the network in evaluation")
    count = mean.meta["val"].shape[0]
    ones, zeros = (g.constant(fill(count)) for fill in (torch.ones, torch.zeros))
    scale, shift = (g.name(w) if w is not None else ones), (g.name(b) if b is not None else zeros)
    return str(g.add("BatchNormalization", g.name(x), scale, shift, g.name(mean), g.name(var), epsilon=eps))


def _dropout(g: _Importer, x: Any, p: float, training: bool) -> str:
    if training and p:
        raise BadGraph("dropout has training=True: compile the network in evaluation")
    return str(g.add("Identity", g.name(x)))


def _layer_norm(
    g: _Importer, x: Any, shape: list[int], w: Any = None, b: Any = None, eps: float = 1e-5, *rest: Any
) -> str:
    scale = g.name(w) if w is not None else g.constant(torch.ones(shape, dtype=g.result().dtype))
    shift = [g.name(b)] if b is not None else []
    return str(g.add("LayerNormalization", g.name(x), scale, *shift, axis=-len(shape), epsilon=eps))


def _rms_norm(g: _Importer, x: Any, shape: list[int], w: Any = None, eps: float | None = None) -> str:
    dtype = g.result().dtype
    scale = g.name(w) if w is not None else g.constant(torch.ones(shape, dtype=dtype))
    epsilon = torch.finfo(dtype).eps if eps is None else eps
    return str(g.add("RMSNormalization", g.name(x), scale, axis=-len(shape), epsilon=epsilon))


def _linear(g: _Importer, x: Any, w: Any, b: Any = None) -> str:
    product = g.add("MatMul", g.name(x), g.add("Transpose", g.name(w), perm=[1, 0]))
    return product if b is None else str(g.add("Add", product, g.name(b)))


def _addmm(g: _Importer, c: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> str:
    return str(g.add("Gemm", g.name(a), g.name(b), g.name(c), alpha=float(alpha), beta=float(beta)))


def _attention(
    g: _Importer,
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    dropout: float = 0,
    is_causal: bool = False,
    scale: Any = None,
) -> str:
    if dropout:
        raise BadGraph(f"scaled_dot_product_attention has dropout_p={dropout}: compile the network in evaluation")
    dtype, shape = q.meta["val"].dtype, q.meta["val"].shape
    rank, keys = len(shape), k.meta["val"].shape[-2]
    flip = g.add("Transpose", g.name(k), perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = g.add("MatMul", g.name(q), flip)
    scores = g.add("Mul", scores, g.constant(scale or 1 / math.sqrt(shape[-1]), dtype))
    if is_causal:
        allowed = g.constant(torch.ones(shape[-2], keys, dtype=torch.bool).tril())
        scores = g.add("Where", allowed, scores, g.constant(-math.inf, dtype))
    elif mask is not None and mask.meta["val"].dtype == torch.bool:
        scores = g.add("Where", g.name(mask), scores, g.constant(-math.inf, dtype))
    elif mask is not None:
        scores = g.add("Add", scores, g.name(mask))
    return str(g.add("MatMul", g.add("Softmax", scores), g.name(v)))


def _reshape(g: _Importer, x: Any, *rest: Any) -> str:
    return str(g.add("Reshape", g.name(x), g.ints(*g.result().shape), allowzero=1))


def _transpose(g: _Importer, x: Any, a: int, b: int) -> str:
    order = list(range(g.result().dim()))
    order[a], order[b] = order[b], order[a]
    return str(g.add("Transpose", g.name(x), perm=order))


def _select(g: _Importer, x: Any, dim: int, at: int) -> str:
    return str(g.add("Gather", g.name(x), g.constant(at), axis=dim))


def _slice(g: _Importer, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> str:
    stop = x.meta["val"].shape[dim] if end is None else end
    return str(g.add("Slice", g.name(x), g.ints(start or 0), g.ints(stop), g.ints(dim), g.ints(step)))


def _split(g: _Importer, x: Any, sizes: Any, dim: int = 0) -> tuple[str, ...]:
    given = [part.shape[dim] for part in g.node.meta["val"]]
    if len(given) == 1:
        return (g.name(x),)
    return tuple(g.add("Split", g.name(x), g.ints(*given), outputs=len(given), axis=dim))


def _index(g: _Importer, x: Any, indices: Sequence[Any]) -> str:
    used = [n for n, entry in enumerate(indices) if entry is not None]
    shape = x.meta["val"].shape
    if any(indices[n].meta["val"].dtype == torch.bool for n in used):
        raise UnsupportedOp("the compiler has no indexing by a mask, whose result has no fixed size: use torch.where")
    if len(used) == 1:
        return str(g.add("Gather", g.name(x), g.name(indices[used[0]]), axis=used[0]))
    if used != list(range(used[0], used[-1] + 1)) or any(indices[n].name not in g.computed for n in used):
        raise UnsupportedOp(
            "the compiler has indexing by one tensor, or by constants for neighboring dimensions: use those"
        )
    flat = torch.zeros((), dtype=torch.int64)
    for n in used:
        flat = flat * shape[n] + g.computed[indices[n].name] % shape[n]
    merged = (*shape[: used[0]], math.prod(shape[n] for n in used), *shape[used[-1] + 1 :])
    return str(g.add("Gather", g.add("Reshape", g.name(x), g.ints(*merged)), g.constant(flat), axis=used[0]))


def _embedding_bag(
    g: _Importer, table: Any, indices: Any, offsets: Any, scale: bool = False, mode: int = 0, *rest: Any
) -> str:
    if any(value not in (None, False, -1) for value in (scale, *rest[1:])):
        raise UnsupportedOp("the compiler has embedding_bag without weights or padding: leave those arguments out")
    starts, total = g.computed.get(offsets.name), indices.meta["val"].shape[0]
    if starts is None or total % len(starts) or not torch.equal(starts, torch.arange(0, total, total // len(starts))):
        raise UnsupportedOp("the compiler has embedding_bag of bags of one size: give the indices with two dimensions")
    bags = g.add("Reshape", g.name(indices), g.ints(len(starts), -1))
    rows = g.add("Gather", g.name(table), bags, axis=0)
    return str(g.add(("ReduceSum", "ReduceMean", "ReduceMax")[mode], rows, g.ints(1), keepdims=0))


def _clamp(g: _Importer, x: Any, low: Any = None, high: Any = None) -> str:
    dtype = g.result().dtype
    return str(g.add("Clip", g.name(x), *("" if v is None else g.operand(v, dtype) for v in (low, high))))


KEPT = {"alpha", "beta", "approximate", "is_causal", "scale", "min", "max"}
"""Arguments by name that translations have."""

IGNORED = {"dtype", "layout", "device", "pin_memory", "memory_format", "implicit", "non_blocking", "copy"}
"""Arguments by name that change no value, or only the format, which the example result has too."""


def _each(make: Callable[[str], Translation], pairs: str) -> dict[str, Translation]:
    words = pairs.split()
    return {name: make(op) for name, op in zip(words[::2], words[1::2], strict=True)}


TRANSLATIONS: dict[str, Translation] = {
    **_each(
        _unary, "relu Relu sigmoid Sigmoid tanh Tanh exp Exp log Log sqrt Sqrt erf Erf sin Sin cos Cos floor Floor"
    ),
    **_each(_unary, "ceil Ceil round Round sign Sign neg Neg abs Abs reciprocal Reciprocal logical_not Not silu Swish"),
    **_each(_binary, "add Add sub Sub mul Mul div Div pow Pow maximum Max minimum Min logical_and And logical_or Or"),
    **_each(_compare, "eq Equal lt Less le LessOrEqual gt Greater ge GreaterOrEqual"),
    **_each(_reduce, "sum ReduceSum mean ReduceMean amax ReduceMax amin ReduceMin prod ReduceProd"),
    **dict.fromkeys(("view", "reshape", "_unsafe_view", "flatten", "squeeze", "unsqueeze"), _reshape),
    **dict.fromkeys(
        ("clone", "contiguous", "alias", "detach", "detach_", "lift_fresh_copy"),
        lambda g, x, *rest: g.add("Identity", g.name(x)),
    ),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("matmul", "mm", "bmm"), lambda g, a, b: g.add("MatMul", g.name(a), g.name(b))),
    **dict.fromkeys(("split", "split_with_sizes", "chunk"), _split),
    "unbind": lambda g, x, dim=0: tuple(_select(g, x, dim, n) for n in range(x.meta["val"].shape[dim])),
    "dropout": _dropout,
    "rsqrt": lambda g, x: g.add("Reciprocal", g.add("Sqrt", g.name(x))),
    "gelu": lambda g, x, approximate="none": g.add("Gelu", g.name(x), approximate=approximate),
    "leaky_relu": lambda g, x, slope=0.01: g.add("LeakyRelu", g.name(x), alpha=slope),
    "hardtanh": _clamp,
    "relu6": lambda g, x: _clamp(g, x, 0, 6),
    "clamp": _clamp,
    "where": lambda g, c, a, b: g.add(
        "Where", g.name(c), g.operand(a, g.result().dtype), g.operand(b, g.result().dtype)
    ),
    "softmax": lambda g, x, dim, *rest: g.add("Softmax", g.operand(x, g.result().dtype), axis=dim),
    "log_softmax": lambda g, x, dim, *rest: g.add("LogSoftmax", g.operand(x, g.result().dtype), axis=dim),
    "_to_copy": lambda g, x: g.add("Cast", g.name(x), to=OF_TORCH[g.result().dtype]),
    "to": lambda g, x, *rest: g.add("Cast", g.name(x), to=OF_TORCH[g.result().dtype]),
    "max_pool2d": _max_pool,
    "avg_pool2d": _average_pool,
    "adaptive_avg_pool2d": _adaptive,
    "batch_norm": _batch_norm,
    "_native_batch_norm_legit_no_training": lambda g, *given: (_batch_norm(g, *given[:5], False, *given[5:]), "", ""),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "linear": _linear,
    "addmm": _addmm,
    "scaled_dot_product_attention": _attention,
    "permute": lambda g, x, order: g.add("Transpose", g.name(x), perm=[n % len(order) for n in order]),
    "transpose": _transpose,
    "t": lambda g, x: _transpose(g, x, 0, 1),
    "expand": lambda g, x, *rest: g.add("Expand", g.name(x), g.ints(*g.result().shape)),
    "cat": lambda g, parts, dim=0: g.add("Concat", *map(g.name, parts), axis=dim),
    "stack": lambda g, parts, dim=0: g.add(
        "Concat", *(g.add("Unsqueeze", g.name(p), g.ints(dim)) for p in parts), axis=dim
    ),
    "select": _select,
    "slice": _slice,
    "index": _index,
    "embedding": lambda g, table, at, *rest: g.add("Gather", g.name(table), g.name(at), axis=0),
    "embedding_bag": _embedding_bag,
    "getitem": lambda g, parts, at: (
        g.names[parts.name][at] if isinstance(g.names[parts.name], tuple) else g.names[parts.name]
    ),
}
"""Translations by the name of the ATen operation; each returns the name of its result, or a name for each."""
