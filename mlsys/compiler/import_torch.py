"""First stage, for torch: run a module on its example inputs, and note what it calls in ONNX's words."""

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

from mlsys.compiler.ir.graph import OF_TORCH, BadGraph, Graph, Operation, UnsupportedOp, fresh, tensor_of


def from_torch(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Graph:
    """Trace a module; its parameters become constants. Raises UnsupportedOp and BadGraph."""
    for part in module.modules():
        if part.training and type(part).__name__.startswith(("BatchNorm", "Dropout")):
            raise BadGraph(f"{type(part).__name__} is in training mode: call module.eval() before compiling")
    tracer, words = _Tracer(module), [*signature(module.forward).parameters]
    names = [fresh(words[n] if len(words) == len(inputs) else "input", tracer.taken) for n in range(len(inputs))]
    tensors = tuple(map(tensor_of, names, inputs))
    with torch.no_grad():
        given = [tracer.new(name, value.clone()) for name, value in zip(names, inputs, strict=True)]
        tracer.inputs = set(map(_storage, given))
        with tracer:
            found = module(*given)
    outputs = tuple(map(tracer.name, tree_leaves(found)))
    return Graph(tensors, outputs, tuple(tracer.operations), tracer.constants)


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


class _Tracer(TorchFunctionMode):
    """Notes each call of a torch function on a tensor that depends on an input; what depends on none is constant.

    A view needs no operation when it is made: its strides tell where it lies in the tensor that it looks at. What tells
    Python the value of a tensor is refused, since the graph would hold for that value alone.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.taken, self.inputs = set[str](), set[int]()
        self.operations, self.constants = list[Operation](), dict[str, torch.Tensor]()
        self.parameters = {id(value): name for name, value in [*module.named_parameters(), *module.named_buffers()]}
        self.tensors: dict[int, tuple[str, torch.Tensor]] = {}  # by storage: the tensor of the graph that is there
        self.named: dict[Any, str] = {}  # views and constants that have a name already

    def traced(self, values: Any) -> bool:
        """Tell whether any tensor among values depends on an input."""
        return any(_storage(value) in self.tensors for value in _tensors(values))

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, how = str(getattr(function, "__name__", function)), dict(kwargs or {})
        in_place = how.pop("inplace", False) or name == "__setitem__" or (name[-1] == "_" and name[-2:] != "__")
        known = not self.traced((args, how))
        if in_place and not (known and id(args[0]) not in self.parameters):
            where = _storage(args[0])
            if where in self.inputs or where not in self.tensors or self.tensors[where][1] is not args[0]:
                raise UnsupportedOp(f"the compiler has no {name} of an input, parameter or view: make a new tensor")
            result = self.translate(name.removesuffix("_"), args[0], args, how)
            self.tensors[where] = (result, args[0])
        found = function(*args, **(kwargs or {}))
        if known or in_place:
            return found
        if not _tensors(found) and name not in SIZES:
            raise UnsupportedOp(f"the compiler cannot follow {name}: a graph has no values; use torch.where instead")
        if all(_storage(value) in self.tensors for value in _tensors(found)):
            return found  # a view, or an answer about sizes
        return self.new(self.translate(name, found, args, how), found)

    def new(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Remember a tensor of the graph by the memory that it is in."""
        value = value.contiguous()
        self.tensors[_storage(value)] = (name, value)
        return value

    def translate(self, name: str, found: Any, args: Any, how: Any) -> str:
        """Add the operations of a call and return the name of its result."""
        function: Any = TRANSLATIONS.get(name)
        if name in ELEMENTWISE:
            function, args = _Tracer.elementwise, (ELEMENTWISE[name], *args)
        if function is None or not isinstance(found, torch.Tensor):
            what = "write the module with others, or add one to mlsys/compiler/import_torch.py"
            raise UnsupportedOp(f"the compiler has no translation of torch's function {name!r}: {what}")
        # None or False is taken for "as by default", unless the translation has an argument of that name
        own, off = signature(function), {key for key, value in how.items() if value is None or value is False}
        kept = {key: value for key, value in how.items() if key in own.parameters or key not in IGNORED | off}
        self.shape, self.dtype = found.shape, found.dtype  # of the result, which translations look at
        try:
            own.bind(self, *args, **kept)
        except TypeError as error:
            raise UnsupportedOp(f"the compiler has no {name} with {kept}, {error}: write it anew") from error
        return str(function(self, *args, **kept))

    def add(self, op: str, *inputs: Any, **attributes: Any) -> str:
        """Add an operation and return its output's name; inputs are as in `name`, or left out."""
        given = tuple(map(self.name, inputs))
        result = fresh(f"{op.lower()}_{len(self.operations)}", self.taken)
        self.operations.append(Operation(op, given, (result,), attributes))
        return result

    def name(self, value: Any, dtype: torch.dtype | None = None) -> str:
        """Return the name of a tensor, or of new constant numbers, in a format if one is given."""
        if value is None or isinstance(value, str):
            return value or ""
        if not self.traced(value):
            known = torch.as_tensor(value, dtype=dtype).detach()
            key = (self.parameters.get(id(value), id(known)), known.dtype)
            if key not in self.named:
                self.named[key] = fresh(self.parameters.get(id(value), "constant"), self.taken)
                self.constants[self.named[key]] = known
            return self.named[key]
        if dtype not in (None, value.dtype):
            return self.add("Cast", value, to=OF_TORCH[dtype])
        found, whole = self.tensors[_storage(value)]
        place = (found, value.shape, value.stride(), value.storage_offset())
        if place[1:] != (whole.shape, whole.stride(), 0) and place not in self.named:
            how = {"shape": [*value.shape], "strides": [*value.stride()], "offset": value.storage_offset()}
            self.named[place] = self.add("View", found, **how)
        return self.named.get(place, found)

    def elementwise(self, op, *args, approximate=None):
        """Add an operation whose arguments are cast to one format: the result's, or else what they promote to."""
        dtype = torch.result_type(*args) if self.dtype == torch.bool and len(args) == 2 else self.dtype
        first = [args[0]] if op == "Where" else []
        cast = [arg if arg is None else self.name(arg, dtype) for arg in args[len(first) :]]
        return self.add(op, *first, *cast, **({"approximate": approximate} if approximate else {}))

    def reduce(self, x, dim=None, keepdim=False, *, op):
        axes = [] if dim in (None, ()) else [[dim] if isinstance(dim, int) else list(dim)]
        return self.add(op, self.name(x, self.dtype), *axes, keepdims=int(keepdim))

    def max_pool(self, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        return self.pool("MaxPool", x, kernel_size, stride, padding, ceil_mode, dilations=_many(dilation, 2))

    def average_pool(
        self, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        if divisor_override:
            raise UnsupportedOp("the compiler has no avg_pool2d with divisor_override: multiply the result instead")
        return self.pool("AveragePool", x, kernel_size, stride, padding, ceil_mode, count_include_pad=count_include_pad)

    def pool(self, op, x, size, stride, padding, ceil_mode, **more):
        how = {"kernel_shape": _many(size, 2), "strides": _many(stride or size, 2), "ceil_mode": int(ceil_mode)}
        return self.add(op, x, pads=_many(padding, 2) * 2, **how, **more)

    def adaptive_pool(self, x, output_size):
        if set(_many(output_size, 2)) != {1}:
            raise UnsupportedOp(f"the compiler has adaptive_avg_pool2d to 1 alone, got {output_size}: write it anew")
        return self.add("GlobalAveragePool", x)

    def convolution(self, x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
        strides, dilations = (_many(each, w.dim() - 2) for each in (stride, dilation))
        padding = 0 if padding == "valid" else padding
        pads = {"auto_pad": "SAME_UPPER"} if padding == "same" else {"pads": _many(padding, w.dim() - 2) * 2}
        inputs = [x, w, b][: 2 + (b is not None)]
        return self.add("Conv", *inputs, group=groups, strides=strides, dilations=dilations, **pads)

    def batch_norm(self, x, mean, variance, weight=None, bias=None, eps=1e-5):
        scale = torch.ones(mean.shape) if weight is None else weight
        shift = torch.zeros(mean.shape) if bias is None else bias
        return self.add("BatchNormalization", x, scale, shift, mean, variance, epsilon=eps)

    def layer_norm(self, x, normalized_shape, weight=None, bias=None, eps=1e-5, op="LayerNormalization"):
        scale = torch.ones(normalized_shape, dtype=self.dtype) if weight is None else weight
        return self.add(op, x, scale, *[bias] * (bias is not None), axis=-len(normalized_shape), epsilon=eps)

    def rms_norm(self, x, normalized_shape, weight=None, eps=None):
        eps = torch.finfo(x.dtype).eps if eps is None else eps
        return self.layer_norm(x, normalized_shape, weight, None, eps, op="RMSNormalization")

    def linear(self, x, w, b=None):
        product = self.add("MatMul", x, self.add("Transpose", w, perm=[1, 0]))
        return product if b is None else self.add("Add", product, b)

    def attention(self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
        if dropout_p:
            raise BadGraph(f"scaled_dot_product_attention has dropout_p={dropout_p}: compile the network in evaluation")
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[*range(k.dim() - 2), k.dim() - 1, k.dim() - 2]))
        scores = self.add("Mul", scores, self.name(scale or q.shape[-1] ** -0.5, self.dtype))
        if is_causal or (attn_mask is not None and attn_mask.dtype == torch.bool):
            allowed = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril() if is_causal else attn_mask
            scores = self.add("Where", allowed, scores, self.name(-torch.inf, self.dtype))
        elif attn_mask is not None:
            scores = self.add("Add", scores, attn_mask)
        return self.add("MatMul", self.add("Softmax", scores), v)

    def index(self, x, index):
        entries = index if isinstance(index, tuple) else (index,)
        found = [n for n, entry in enumerate(entries) if self.traced(entry)]
        if not found:
            places = torch.arange(x.numel()).reshape(x.shape)[tree_map_only(torch.Tensor, torch.Tensor.cpu, index)]
            return self.add("Gather", self.add("Reshape", x, [-1]), places)
        others = [entry for n, entry in enumerate(entries) if n != found[0]]
        if any(not isinstance(entry, slice) or entry != slice(None) for entry in others):
            raise UnsupportedOp("the compiler has indexing by one tensor, or by constants: use it")
        return self.add("Gather", x, entries[found[0]], axis=found[0])

    def embedding_bag(self, at, table, mode="mean"):
        return self.add(f"Reduce{mode.capitalize()}", self.add("Gather", table, at, axis=0), [1], keepdims=0)


def _many(value: Any, count: int) -> list[int]:
    return [value] * count if isinstance(value, int) else [*value]


_SAME = "abs add ceil cos div exp erf floor gelu log mul neg pow relu reciprocal sigmoid sign sin sqrt sub tanh where"
_REDUCTIONS = {"amax": "Max", "amin": "Min", "mean": "Mean", "sum": "Sum"}
SIZES = set("__get__ __len__ dim element_size is_complex is_contiguous is_floating_point ndimension numel size".split())
SIZES |= {"storage_offset", "stride"}
"""Functions that may tell Python something about a tensor, for it does not depend on the tensor's values."""

ELEMENTWISE = {name: name.capitalize() for name in _SAME.split()}
ELEMENTWISE |= {"silu": "Swish", "maximum": "Max", "minimum": "Min", "logical_not": "Not"}
ELEMENTWISE |= {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
ELEMENTWISE |= {"__and__": "And", "__or__": "Or", "__invert__": "Not", "logical_and": "And", "logical_or": "Or"}
ELEMENTWISE |= dict.fromkeys("bfloat16 clone contiguous double float half".split(), "Identity")
"""ONNX's operation for each torch function that computes an element from an element of each argument."""

IGNORED = {"dtype", "layout", "device", "memory_format", "non_blocking", "copy", "momentum", "norm_type", "_stacklevel"}
"""Arguments by name that change no value, or only the format, which the result has too."""

TRANSLATIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("conv1d", "conv2d"), _Tracer.convolution),
    **dict.fromkeys(("matmul", "mm", "bmm"), lambda g, a, b: g.add("MatMul", a, b)),
    **dict.fromkeys(("flatten", "reshape"), lambda g, x, *rest: g.add("Reshape", x, list(g.shape))),
    **dict.fromkeys(("to", "type", "type_as"), lambda g, x, *rest: g.elementwise("Identity", x)),
    **dict.fromkeys(("clamp", "clip"), lambda g, x, min=None, max=None: g.elementwise("Clip", x, min, max)),  # noqa: A006
    **{name: partial(_Tracer.reduce, op=f"Reduce{op}") for name, op in _REDUCTIONS.items()},
    **dict.fromkeys(("__rdiv__", "__rtruediv__"), lambda g, a, b: g.elementwise("Div", b, a)),
    "__getitem__": _Tracer.index,
    "__rpow__": lambda g, a, b: g.elementwise("Pow", b, a),
    "__rsub__": lambda g, a, b: g.elementwise("Sub", b, a),
    "adaptive_avg_pool2d": _Tracer.adaptive_pool,
    "avg_pool2d": _Tracer.average_pool,
    "batch_norm": _Tracer.batch_norm,
    "cat": lambda g, parts, dim=0: g.add("Concat", *parts, axis=dim),
    "dropout": lambda g, x, p=0.5: g.add("Identity", x),
    "elu": lambda g, x, alpha=1.0: g.add("Elu", x, alpha=alpha),
    "embedding": lambda g, at, table, padding_idx=None: g.add("Gather", table, at, axis=0),
    "embedding_bag": _Tracer.embedding_bag,
    "hardtanh": lambda g, x, min_val=-1.0, max_val=1.0: g.elementwise("Clip", x, min_val, max_val),
    "layer_norm": _Tracer.layer_norm,
    "leaky_relu": lambda g, x, negative_slope=0.01: g.add("LeakyRelu", x, alpha=negative_slope),
    "linear": _Tracer.linear,
    "log_softmax": lambda g, x, dim: g.add("LogSoftmax", g.name(x, g.dtype), axis=dim),
    "masked_fill": lambda g, x, mask, value: g.elementwise("Where", mask, value, x),
    "max_pool2d": _Tracer.max_pool,
    "relu6": lambda g, x: g.elementwise("Clip", x, 0, 6),
    "rms_norm": _Tracer.rms_norm,
    "rsqrt": lambda g, x: g.add("Reciprocal", g.add("Sqrt", x)),
    "scaled_dot_product_attention": _Tracer.attention,
    "softmax": lambda g, x, dim: g.add("Softmax", g.name(x, g.dtype), axis=dim),
    "stack": lambda g, parts, dim=0: g.add("Concat", *(g.add("Unsqueeze", p, [dim]) for p in parts), axis=dim),
}
"""Translations of the others: functions of the tracer and of torch's arguments, which return the name of the result.

:meta hide-value:
"""
