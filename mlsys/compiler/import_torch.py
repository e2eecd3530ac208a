"""First stage, for torch: export a module with torch.export, and translate its ATen operations into ONNX's."""

import math
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import torch

from mlsys.compiler.ir.graph import OF_TORCH, BadGraph, Graph, Operation, Tensor, UnsupportedOp, tensor_of


def from_torch(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Graph:
    """Export a module and translate it; its parameters become constants. Raises UnsupportedOp and BadGraph."""
    for part in module.modules():
        if part.training and type(part).__name__.startswith(("BatchNorm", "Dropout")):
            raise BadGraph(f"{type(part).__name__} is in training mode: call module.eval() before compiling")
    exported = torch.export.export(module, tuple(inputs))
    if any(_name_of(node).endswith("_") for node in exported.graph.nodes if node.op == "call_function"):
        exported = exported.run_decompositions({})  # operations in place become others
    g, tensors, kept = _Importer(), list[Tensor](), {**exported.state_dict, **exported.constants}
    for spec in exported.graph_signature.input_specs:
        if spec.target is None:
            tensors.append(tensor_of(spec.arg.name, inputs[len(tensors)]))
            continue
        g.constants[spec.arg.name] = kept[spec.target].detach()
        if spec.target in exported.constants:
            g.computed[spec.arg.name] = kept[spec.target]
    for node in exported.graph.nodes:
        if node.op == "call_function":
            g.translate(node, _name_of(node))
    outputs = tuple(g.names.get(spec.arg.name, spec.arg.name) for spec in exported.graph_signature.output_specs)
    return Graph(tuple(tensors), outputs, tuple(g.operations), g.constants)


def _name_of(node: torch.fx.Node) -> str:
    return str(getattr(node.target, "_opname", None) or getattr(node.target, "__name__", node.target))


def _shape(node: Any) -> Any:
    return node.meta["val"].shape


def _many(value: Any, count: int) -> list[int]:
    return [value] * count if isinstance(value, int) else list(value) * (count // len(value))


class _Importer:
    """The graph so far, and after `name`, translations of operations whose arguments ATen and ONNX give differently."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.constants: dict[str, torch.Tensor] = {}
        self.names: dict[str, Any] = {}  # which tensor, or which several, each of torch's nodes has become
        self.computed: dict[str, torch.Tensor] = {}  # what depends on no input and no parameter

    def translate(self, node: Any, name: str) -> None:
        self.result, args = node.meta["val"], node.args
        if all(argument.name in self.computed for argument in node.all_input_nodes):
            args, kwargs = torch.fx.map_arg((args, node.kwargs), lambda argument: self.computed[argument.name])
            self.computed[node.name] = node.target(*args, **kwargs)
            return
        kwargs = {key: value for key, value in node.kwargs.items() if key not in IGNORED and value not in (None, False)}
        function: Any = TRANSLATIONS.get(name)
        if name in ELEMENTWISE:
            function, args = _Importer.elementwise, (ELEMENTWISE[name], *args)
        if function is None:
            what = "write the module with others, or add one to mlsys/compiler/import_torch.py"
            raise UnsupportedOp(f"the compiler has no translation of torch's operation {name!r}: {what}")
        try:
            signature(function).bind(self, *args, **kwargs)
        except TypeError as error:
            raise UnsupportedOp(f"the compiler has no {name} with {(*args, kwargs)}, {error}: write it anew") from error
        self.names[node.name] = function(self, *args, **kwargs)

    def add(self, op: str, *inputs: Any, outputs: int = 0, **attributes: Any) -> Any:
        """Add an operation; inputs are as in `name`, or left out. Returns its output's name, or a tuple of names."""
        names = tuple(f"{op.lower()}_{len(self.operations)}" + f"_{n}" * bool(outputs) for n in range(outputs or 1))
        given = tuple(self.name(value) for value in inputs)
        self.operations.append(Operation(op, given, names, attributes))
        return names if outputs else names[0]

    def name(self, value: Any, dtype: torch.dtype | None = None) -> str:
        """Return the name of a tensor, a node, or new constant numbers, in a format if one is given."""
        if value is None or isinstance(value, str):
            return value or ""
        if isinstance(value, torch.fx.Node) and value.name not in self.computed:
            found = self.names.get(value.name, value.name)
            same = dtype is None or value.meta["val"].dtype == dtype
            return str(found if same else self.add("Cast", found, to=OF_TORCH[dtype]))  # type: ignore[index]
        known = self.computed[value.name] if isinstance(value, torch.fx.Node) else value
        self.constants[f"constant_{len(self.constants)}"] = torch.as_tensor(known, dtype=dtype)
        return next(reversed(self.constants))

    def elementwise(self, op, *args, alpha=1, approximate=None):
        """Add an operation whose arguments are cast to one format: the result's, or else what they promote to."""
        attributes = {"approximate": approximate} if approximate else {}
        dtype = self.result.dtype
        if dtype == torch.bool and op not in ("And", "Or", "Not"):
            dtype = torch.result_type(*(arg.meta["val"] if isinstance(arg, torch.fx.Node) else arg for arg in args))
        first = [self.name(args[0])] if op == "Where" else []
        inputs = [*first, *("" if arg is None else self.name(arg, dtype) for arg in args[len(first) :])]
        if alpha != 1:
            inputs[1] = self.add("Mul", inputs[1], self.name(alpha, dtype))
        return self.add(op, *inputs, **attributes)

    def reduce(self, op, x, dim=None, keepdim=False):
        axes = [] if dim in (None, []) else [[dim] if isinstance(dim, int) else list(dim)]
        return self.add(op, self.name(x, self.result.dtype), *axes, keepdims=int(keepdim))

    def max_pool(self, x, kernel, stride=(), pad=0, dilation=1, ceil=False):
        return self.pool("MaxPool", x, kernel, stride, pad, dilations=_many(dilation, 2), ceil_mode=int(ceil))

    def average_pool(self, x, kernel, stride=(), pad=0, ceil=False, counted=True):
        return self.pool("AveragePool", x, kernel, stride, pad, ceil_mode=int(ceil), count_include_pad=int(counted))

    def pool(self, op, x, kernel, stride, pad, **how):
        sizes, pads = _many(kernel, 2), _many(pad, 2) * 2
        return self.add(op, x, kernel_shape=sizes, strides=_many(stride or sizes, 2), pads=pads, **how)

    def adaptive_pool(self, x, size):
        if set(_many(size, 2)) != {1}:
            raise UnsupportedOp(f"the compiler has adaptive_avg_pool2d to the size 1 alone, got {size}: use avg_pool2d")
        return self.add("GlobalAveragePool", x)

    def convolution(self, x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
        if isinstance(padding, str):
            raise BadGraph(f"a convolution has padding={padding!r}: give it as numbers")
        strides, pads, dilations = (_many(each, self.result.dim() - 2) for each in (stride, padding, dilation))
        bias = [b] * (b is not None)
        return self.add("Conv", x, w, *bias, group=groups, strides=strides, pads=pads * 2, dilations=dilations)

    def batch_norm(self, x, w, b, mean, var, training, momentum, eps, *rest):
        if training:
            raise BadGraph("batch_norm has training=True: compile the network in evaluation")
        scale, shift = torch.ones(_shape(mean)) if w is None else w, torch.zeros(_shape(mean)) if b is None else b
        return self.add("BatchNormalization", x, scale, shift, mean, var, epsilon=eps)

    def layer_norm(self, x, shape, w=None, b=None, eps=1e-5, *rest, op="LayerNormalization"):
        scale = torch.ones(shape, dtype=self.result.dtype) if w is None else w
        return self.add(op, x, scale, *[b] * (b is not None), axis=-len(shape), epsilon=eps)

    def rms_norm(self, x, shape, w=None, eps=None):
        eps = torch.finfo(self.result.dtype).eps if eps is None else eps
        return self.layer_norm(x, shape, w, None, eps, op="RMSNormalization")

    def linear(self, x, w, b=None):
        product = self.add("MatMul", x, self.add("Transpose", w, perm=[1, 0]))
        return product if b is None else self.add("Add", product, b)

    def transpose(self, x, a=0, b=1):
        order = list(range(len(_shape(x))))
        order[a], order[b] = order[b], order[a]
        return self.add("Transpose", x, perm=order)

    def attention(self, q, k, v, mask=None, dropout=0, is_causal=False, scale=None):
        if dropout:
            raise BadGraph(f"scaled_dot_product_attention has dropout_p={dropout}: compile the network in evaluation")
        (*_, queries, width), (*_, keys, _), rank, dtype = _shape(q), _shape(k), len(_shape(q)), self.result.dtype
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[*range(rank - 2), rank - 1, rank - 2]))
        scores = self.add("Mul", scores, self.name(scale or 1 / math.sqrt(width), dtype))
        if is_causal or (mask is not None and mask.meta["val"].dtype == torch.bool):
            allowed = torch.ones(queries, keys, dtype=torch.bool).tril() if is_causal else mask
            scores = self.add("Where", allowed, scores, self.name(-math.inf, dtype))
        elif mask is not None:
            scores = self.add("Add", scores, mask)
        return self.add("MatMul", self.add("Softmax", scores), v)

    def index(self, x, indices):
        used, shape = [n for n, entry in enumerate(indices) if entry is not None], _shape(x)
        if len(used) == 1 and indices[used[0]].meta["val"].dtype != torch.bool:
            return self.add("Gather", x, indices[used[0]], axis=used[0])
        if used != list(range(used[0], used[-1] + 1)) or any(indices[n].name not in self.computed for n in used):
            raise UnsupportedOp("the compiler has indexing by one tensor, or by constants for neighboring axes: use it")
        flat = torch.zeros((), dtype=torch.int64)
        for n in used:
            flat = flat * shape[n] + self.computed[indices[n].name] % shape[n]
        merged = [*shape[: used[0]], math.prod(shape[n] for n in used), *shape[used[-1] + 1 :]]
        return self.add("Gather", self.add("Reshape", x, merged), flat, axis=used[0])

    def embedding_bag(self, table, indices, offsets, scale=False, mode=0, sparse=False, weights=None, *rest):
        starts, count = self.computed.get(offsets.name, torch.zeros(0)), _shape(indices)[0]
        if weights is not None or starts.tolist() != list(range(0, count, max(1, count // max(1, len(starts))))):
            raise UnsupportedOp("the compiler has embedding_bag of bags of one size, without weights: use those")
        rows = self.add("Gather", table, self.add("Reshape", indices, [len(starts), -1]), axis=0)
        return self.add(("ReduceSum", "ReduceMean", "ReduceMax")[mode], rows, [1], keepdims=0), "", "", ""

    def view(self, x, *rest):
        return self.add("Reshape", x, list(self.result.shape), allowzero=1)

    def split(self, x, sizes, dim=0):
        sizes = [part.shape[dim] for part in self.result]
        return self.add("Split", x, sizes, outputs=len(sizes), axis=dim)

    def slice(self, x, dim=0, start=None, end=None, step=1):
        return self.add("Slice", x, [start or 0], [_shape(x)[dim] if end is None else end], [dim], [step])


def _each(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split())
    return {name: op or name.capitalize() for name, _, op in pairs}


ELEMENTWISE = _each(
    "abs add ceil cos div erf exp floor log mul neg pow relu reciprocal round sigmoid sign sin sqrt sub"
)
ELEMENTWISE |= _each("tanh where gelu silu=Swish maximum=Max minimum=Min logical_and=And logical_or=Or logical_not=Not")
ELEMENTWISE |= _each("clamp=Clip hardtanh=Clip eq=Equal lt=Less le=LessOrEqual gt=Greater ge=GreaterOrEqual")
ELEMENTWISE |= _each("clone=Identity contiguous=Identity alias=Identity detach=Identity _to_copy=Identity")
"""ONNX's operation for each of ATen's that computes an element from an element of each argument."""

IGNORED = {"dtype", "layout", "device", "pin_memory", "memory_format", "implicit", "non_blocking", "copy"}
"""Arguments by name that change no value, or only the format, which the result has too."""

TRANSLATIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _Importer.convolution),
    **dict.fromkeys(("matmul", "mm", "bmm"), lambda g, a, b: g.add("MatMul", a, b)),
    **dict.fromkeys(("split", "split_with_sizes", "chunk"), _Importer.split),
    **dict.fromkeys(("transpose", "t"), _Importer.transpose),
    **dict.fromkeys(("view", "reshape", "_unsafe_view", "flatten", "squeeze", "unsqueeze"), _Importer.view),
    "_native_batch_norm_legit_no_training": lambda g, *a: (g.batch_norm(*a[:5], False, *a[5:]), "", ""),
    "adaptive_avg_pool2d": _Importer.adaptive_pool,
    "addmm": lambda g, c, a, b, beta=1, alpha=1: g.add("Gemm", a, b, c, alpha=float(alpha), beta=float(beta)),
    "amax": lambda g, *args, **how: g.reduce("ReduceMax", *args, **how),
    "amin": lambda g, *args, **how: g.reduce("ReduceMin", *args, **how),
    "avg_pool2d": _Importer.average_pool,
    "batch_norm": _Importer.batch_norm,
    "cat": lambda g, parts, dim=0: g.add("Concat", *parts, axis=dim),
    "dropout": lambda g, x, *rest: g.add("Identity", x),
    "embedding": lambda g, table, at, *rest: g.add("Gather", table, at, axis=0),
    "embedding_bag": _Importer.embedding_bag,
    "expand": lambda g, x, *rest: g.add("Expand", x, list(g.result.shape)),
    "getitem": lambda g, parts, at: g.names[parts.name][at],
    "index": _Importer.index,
    "layer_norm": _Importer.layer_norm,
    "leaky_relu": lambda g, x, slope=0.01: g.add("LeakyRelu", x, alpha=slope),
    "linear": _Importer.linear,
    "log_softmax": lambda g, x, dim, *rest: g.add("LogSoftmax", g.name(x, g.result.dtype), axis=dim),
    "max_pool2d": _Importer.max_pool,
    "mean": lambda g, *args, **how: g.reduce("ReduceMean", *args, **how),
    "permute": lambda g, x, order: g.add("Transpose", x, perm=[n % len(order) for n in order]),
    "relu6": lambda g, x: g.elementwise("Clip", x, 0, 6),
    "rms_norm": _Importer.rms_norm,
    "rsqrt": lambda g, x: g.add("Reciprocal", g.add("Sqrt", x)),
    "scaled_dot_product_attention": _Importer.attention,
    "select": lambda g, x, dim, at: g.add("Gather", x, at, axis=dim),
    "slice": _Importer.slice,
    "softmax": lambda g, x, dim, *rest: g.add("Softmax", g.name(x, g.result.dtype), axis=dim),
    "stack": lambda g, parts, dim=0: g.add("Concat", *(g.add("Unsqueeze", p, [dim]) for p in parts), axis=dim),
    "sum": lambda g, *args, **how: g.reduce("ReduceSum", *args, **how),
    "to": lambda g, x, *rest: g.elementwise("Identity", x),
    "unbind": lambda g, x, dim=0: tuple(g.add("Gather", x, n, axis=dim) for n in range(_shape(x)[dim])),
}
"""Translations of the others: functions of the importer and ATen's arguments, which return the names of the results."""
