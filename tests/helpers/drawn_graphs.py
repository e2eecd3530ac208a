"""Random ONNX graphs with inputs, for comparing mlsys.compiler with another implementation."""

import random
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET = 20
SMOOTH = "Neg Abs Sigmoid Tanh Erf Relu LeakyRelu Softplus Softsign Elu Sin Cos HardSigmoid Gelu Identity".split()


@dataclass
class Drawing:
    """A graph under construction: shapes of its tensors, nodes, and the values of inputs and constants."""

    rng: random.Random
    numpy: np.random.Generator
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    nodes: list[object] = field(default_factory=list)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def new(self, op: str, inputs: list[str], shape: tuple[int, ...], **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.shapes[name] = shape
        return name

    def value(self, shape: tuple[int, ...]) -> str:
        """A new input or constant of a shape."""
        array = self.numpy.normal(size=shape).astype(np.float32)
        kind = self.constants if self.rng.random() < 0.4 else self.inputs
        name = f"{'c' if kind is self.constants else 'x'}{len(self.inputs) + len(self.constants)}"
        kind[name] = array
        self.shapes[name] = shape
        return name

    def ints(self, *values: int) -> str:
        name = f"i{len(self.constants) + len(self.inputs)}"
        self.constants[name] = np.array(values, np.int64)
        return name

    def some(self, least_rank: int = 0) -> str:
        """An existing tensor of at least a rank, or a new one."""
        fitting = [name for name, shape in self.shapes.items() if len(shape) >= least_rank]
        if fitting and self.rng.random() < 0.9:
            return self.rng.choice(fitting[-4:])
        return self.value(
            tuple(self.rng.choice([1, 2, 3, 5, 8, 17]) for _ in range(max(least_rank, self.rng.randint(1, 4))))
        )


def draw(seed: int) -> tuple[ModelProto, list[np.ndarray]]:
    """Draw a graph of 2 to 9 operations and its inputs."""
    d = Drawing(random.Random(seed), np.random.default_rng(seed))
    for _ in range(d.rng.randint(2, 9)):
        d.rng.choice(STEPS)(d)
    used = {name for node in d.nodes for name in node.input}
    outputs = [name for node in d.nodes for name in node.output if name not in used]
    outputs = list(dict.fromkeys([*outputs, d.nodes[-1].output[0]]))
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in d.inputs.items()]
    graph = helper.make_graph(
        d.nodes,
        "drawn",
        infos,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in d.constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return model, list(d.inputs.values())


def unary(d: Drawing) -> None:
    x = d.some()
    d.new(d.rng.choice(SMOOTH), [x], d.shapes[x])


def positive(d: Drawing) -> None:
    x = d.some()
    d.new(d.rng.choice(["Sqrt", "Log", "Reciprocal"]), [d.new("Softplus", [x], d.shapes[x])], d.shapes[x])


def binary(d: Drawing) -> None:
    x = d.some()
    shape = d.shapes[x]
    same = [name for name, other in d.shapes.items() if other == shape]
    smaller = tuple(extent if d.rng.random() < 0.6 else 1 for extent in shape)[d.rng.randint(0, len(shape)) :]
    y = d.rng.choice(same) if d.rng.random() < 0.5 else d.value(smaller)
    pair = [x, y] if d.rng.random() < 0.5 else [y, x]
    d.new(d.rng.choice(["Add", "Sub", "Mul", "Max", "Min"]), pair, shape)


def choose(d: Drawing) -> None:
    x = d.some()
    y = d.value(d.shapes[x])
    test = d.new(d.rng.choice(["Less", "Greater", "LessOrEqual"]), [x, y], d.shapes[x])
    del d.shapes[test]
    d.new("Where", [test, x, y], d.shapes[x])


def reduce(d: Drawing) -> None:
    x = d.some(1)
    shape = d.shapes[x]
    axes = sorted(d.rng.sample(range(len(shape)), d.rng.randint(1, len(shape))))
    keep = d.rng.randint(0, 1)
    left = tuple(1 if n in axes else extent for n, extent in enumerate(shape) if keep or n not in axes)
    op = d.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"])
    d.new(op, [x, d.ints(*axes)], left, keepdims=keep)


def softmax(d: Drawing) -> None:
    x = d.some(1)
    axis = d.rng.randrange(-len(d.shapes[x]), len(d.shapes[x]))
    d.new(d.rng.choice(["Softmax", "LogSoftmax"]), [x], d.shapes[x], axis=axis)


def layer_norm(d: Drawing) -> None:
    x = d.some(1)
    shape = d.shapes[x]
    axis = d.rng.randrange(len(shape))
    d.new("LayerNormalization", [x, d.value(shape[axis:]), d.value(shape[axis:])], shape, axis=axis)


def centered(d: Drawing) -> None:
    """x minus the mean over its last axis, written with single operations."""
    x = d.some(1)
    shape = d.shapes[x]
    mean = d.new("ReduceMean", [x, d.ints(-1)], (*shape[:-1], 1), keepdims=1)
    d.new("Sub", [x, mean], shape)


def matmul(d: Drawing) -> None:
    x = d.some(2)
    shape = d.shapes[x]
    columns = d.rng.choice([1, 4, 9, 20])
    batch = shape[:-2] if d.rng.random() < 0.5 else ()
    d.new("MatMul", [x, d.value((*batch, shape[-1], columns))], (*shape[:-1], columns))


def gemm(d: Drawing) -> None:
    x = d.some(2)
    shape = d.shapes[x]
    flat = d.new("Flatten", [x], (shape[0], int(np.prod(shape[1:]))), axis=1)
    inner, columns = d.shapes[flat][1], d.rng.choice([3, 8, 18])
    d.new("Gemm", [flat, d.value((columns, inner)), d.value((columns,))], (shape[0], columns), transB=1, alpha=0.5)


def conv(d: Drawing) -> None:
    n, c, h, w = (d.rng.choice(sizes) for sizes in ([1, 2], [1, 3, 4], [5, 8], [6, 9]))
    fitting = [name for name, shape in d.shapes.items() if len(shape) == 4 and min(shape[2:]) >= 3]
    x = fitting[-1] if fitting else d.value((n, c, h, w))
    n, c, h, w = d.shapes[x]
    out, kernel, stride, pad = d.rng.choice([2, 5, 8]), d.rng.choice([1, 3]), d.rng.choice([1, 2]), d.rng.randint(0, 1)
    group = c if d.rng.random() < 0.3 else 1
    out = c * 2 if group > 1 else out
    shape = (n, out, (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1)
    how = {"strides": [stride] * 2, "pads": [pad] * 4, "group": group, "kernel_shape": [kernel] * 2}
    d.new("Conv", [x, d.value((out, c // group, kernel, kernel)), d.value((out,))], shape, **how)


def pool(d: Drawing) -> None:
    fitting = [name for name, shape in d.shapes.items() if len(shape) == 4 and min(shape[2:]) >= 3]
    x = fitting[-1] if fitting else d.value((1, 2, 7, 6))
    n, c, h, w = d.shapes[x]
    pad = d.rng.randint(0, 1)
    shape = (n, c, (h + 2 * pad - 3) // 2 + 1, (w + 2 * pad - 3) // 2 + 1)
    op, how = d.rng.choice([("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1})])
    d.new(op, [x], shape, kernel_shape=[3, 3], strides=[2, 2], pads=[pad] * 4, **how)


def transpose(d: Drawing) -> None:
    x = d.some(1)
    order = list(range(len(d.shapes[x])))
    d.rng.shuffle(order)
    d.new("Transpose", [x], tuple(d.shapes[x][n] for n in order), perm=order)


def reshape(d: Drawing) -> None:
    x = d.some(1)
    shape = list(d.shapes[x])
    at = d.rng.randrange(len(shape))
    if len(shape) > 1 and d.rng.random() < 0.5:
        at = min(at, len(shape) - 2)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    else:
        small = next((n for n in (2, 3, 5) if shape[at] % n == 0), 1)
        shape[at : at + 1] = [small, shape[at] // small]
    if len(shape) <= 5:
        d.new("Reshape", [x, d.ints(*shape)], tuple(shape))


def concat(d: Drawing) -> None:
    x = d.some(1)
    shape = d.shapes[x]
    axis = d.rng.randrange(len(shape))
    other = tuple(d.rng.choice([1, 4]) if n == axis else extent for n, extent in enumerate(shape))
    whole = tuple(e + o if n == axis else e for n, (e, o) in enumerate(zip(shape, other, strict=True)))
    d.new("Concat", [x, d.value(other)], whole, axis=axis)


def cut(d: Drawing) -> None:
    x = d.some(1)
    shape = list(d.shapes[x])
    axis = d.rng.randrange(len(shape))
    step = d.rng.choice([1, 2, -1])
    start, stop = (0, shape[axis]) if step > 0 else (shape[axis] - 1, -shape[axis] - 1)
    shape[axis] = len(range(*slice(start, stop, step).indices(shape[axis])))
    d.new("Slice", [x, d.ints(start), d.ints(stop), d.ints(axis), d.ints(step)], tuple(shape))


def gather(d: Drawing) -> None:
    x = d.some(1)
    shape = d.shapes[x]
    axis = d.rng.randrange(len(shape))
    picked = [d.rng.randrange(-shape[axis], shape[axis]) for _ in range(3)]
    d.new("Gather", [x, d.ints(*picked)], (*shape[:axis], 3, *shape[axis + 1 :]), axis=axis)


STEPS = [
    unary, unary, unary, positive, binary, binary, binary, choose, reduce, reduce, softmax, layer_norm, centered,
    matmul, matmul, gemm, conv, pool, transpose, transpose, reshape, reshape, concat, cut, gather,
]  # fmt: skip
