import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("onnx")
from helpers.drawn_graphs import draw
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import mlsys.compiler
from mlsys.compiler import OPS, UnsupportedOp
from mlsys.compiler import compile as compile_for
from mlsys.compiler.fuse import fuse
from mlsys.compiler.optimize import optimize
from mlsys.compiler.rules import RULES
from mlsys.errors import InvalidValue, UserError
from mlsys.hardware import Hardware
from mlsys.measure.device import torch_sees_gpu

DEVICE = "cuda" if torch_sees_gpu() else "cpu"
compile = partial(compile_for, device=DEVICE)
STAGES = ["import", "optimize", "fuse", "schedule", "memory", "lower"]


def model_of(*nodes, inputs=(("x", (4, 8)),), outputs=("y",), constants=(), opset=20):
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(
        [helper.make_node(op, i, o, **a) for op, i, o, a in nodes], "g", infos, results, constants
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def node(op, inputs, outputs, **attributes):
    return op, inputs.split(), outputs.split(), attributes


CHAIN = model_of(node("Exp", "x", "a"), node("Add", "a x", "b"), node("Tanh", "b", "y"))


def test_every_stage_prints_in_order():
    compiled = compile(CHAIN)
    assert list(compiled.stages) == STAGES
    assert all(compiled.stages.values())
    assert compiled.stages["lower"] == compiled.source


def test_an_elementwise_chain_is_one_kernel_and_views_are_none():
    chain = model_of(
        node("Exp", "x", "a"), node("Transpose", "a", "b"), node("Unsqueeze", "b n", "c"), node("Add", "c c", "y"),
        constants=[helper.make_tensor("n", TensorProto.INT64, [1], [0])],
    )  # fmt: skip
    assert compile(chain).source.count("@triton.jit") == 1


def test_normalizations_written_out_are_one_kernel():
    class Normalize(nn.Module):
        def forward(self, x):
            rest = x - x.mean(-1, keepdim=True)
            return rest / torch.sqrt((rest * rest).mean(-1, keepdim=True) + 1e-5)

    x = torch.randn(300, 40)
    compiled = compile(Normalize(), [x])
    assert compiled.source.count("@triton.jit") == 1
    torch.testing.assert_close(compiled(x)[0].cpu(), nn.functional.layer_norm(x, (40,)))


class Views(nn.Module):
    def forward(self, x):
        first, second = x.movedim(0, 2).chunk(2, -1)
        edge = x.diagonal(0, 1, 2).unsqueeze(-1).expand(-1, -1, 5)
        windows = x[..., ::2].unfold(1, 3, 1).flatten(1)
        return first - second, edge.transpose(1, 2), windows, x.narrow(2, 1, 2)[:, -1]


def test_views_of_torch_are_what_torch_sees_and_need_no_kernel_of_their_own():
    x = torch.randn(4, 6, 6)
    compiled = compile(Views(), [x])
    assert compiled.source.count("@triton.jit") == 4
    for got, want in zip(compiled(x), Views()(x), strict=True):
        torch.testing.assert_close(got.cpu(), want)


class Equal(nn.Module):
    def forward(self, x):
        same = x.unsqueeze(-1).expand(-1, 8)
        return same.sum(-1), same.amax(-1), torch.ones(4, 8).sum(-1) + x


def test_rows_of_equal_elements_are_reduced_over_all_their_columns():
    x = torch.randn(4)
    for got, want in zip(compile(Equal(), [x])(x), Equal()(x), strict=True):
        torch.testing.assert_close(got.cpu(), want)


IN_PLACE = {
    "an input": lambda x: x.relu_(),
    "a view": lambda x: (x * 2).view(-1).relu_(),
}


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_operation_in_place_is_refused_where_another_use_could_see_it(name):
    with pytest.raises(UnsupportedOp, match="has no relu_ of an input, parameter or view: make a new tensor"):
        compile(Function(IN_PLACE[name]), [torch.randn(4, 4)])


def test_an_operation_in_place_is_seen_by_views_as_in_torch():
    x = torch.randn(4, 4)
    function = Function(lambda x: (lambda y: y[0] + y.relu_().add_(1) + y.T)(x * 2))
    torch.testing.assert_close(compile(function, [x])(x)[0].cpu(), function(x))
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Hardtanh(inplace=True))
    torch.testing.assert_close(compile(model, [x])(x)[0].cpu(), model(x).detach())


def test_the_greatest_of_a_row_with_nan_is_nan():
    class Greatest(nn.Module):
        def forward(self, x):
            return x.amax(-1), x.amin(0)

    x = torch.randn(5, 40)
    x[2, 7] = torch.nan
    for got, want in zip(compile(Greatest(), [x])(x), Greatest()(x), strict=True):
        torch.testing.assert_close(got.cpu(), want, equal_nan=True)


def test_a_value_that_is_used_often_is_printed_and_computed_once():
    class Doubled(nn.Module):
        def forward(self, x):
            for _ in range(30):
                x = x + x
            return x

    x = torch.ones(4)
    compiled = compile(Doubled(), [x])
    assert all(len(form) < 20_000 for form in compiled.stages.values())
    assert compiled(x)[0].tolist() == [2.0**30] * 4


def test_bias_and_activation_join_the_matrix_product():
    model = nn.Sequential(nn.Linear(32, 24), nn.GELU())
    compiled = compile(model, [torch.randn(16, 32)])
    assert compiled.source.count("@triton.jit") == 1
    assert "tl.dot" in compiled.source


def test_rows_longer_than_a_tile_are_reduced_in_a_loop():
    x = torch.randn(2, (1 << 18) + 5)
    compiled = compile(nn.Softmax(-1), [x])
    assert "for start in range" in compiled.source
    torch.testing.assert_close(compiled(x)[0].cpu(), torch.softmax(x, -1))


def test_a_graph_without_a_use_of_a_tensor_does_not_compute_it():
    wasteful = model_of(node("Exp", "x", "unused"), node("Abs", "x", "y"))
    assert "tl.exp(" not in compile(wasteful).source


def test_constants_are_folded():
    three = helper.make_tensor("three", TensorProto.FLOAT, [2], [3.0, 4.0])
    folded = model_of(
        node("Mul", "three three", "nine"), node("ReduceSum", "x", "s"), node("Mul", "nine s", "y"), constants=[three]
    )
    compiled = compile(folded)
    assert "Mul(three, three)" in compiled.stages["import"]
    assert "Mul(three, three)" not in compiled.stages["optimize"]
    x = np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(compiled(x)[0], [[288.0, 512.0]])


@pytest.mark.parametrize(
    ("kind", "values"),
    [(TensorProto.INT32, (-7, 2)), (TensorProto.UINT16, (7, 2)), (TensorProto.INT8, (100, 100)), (1, (-1.5, 2.0))],
)
@pytest.mark.parametrize("op", ["Add", "Mul", "Div", "Max", "Less"])
def test_what_is_folded_is_what_the_reference_computes(op, kind, values):
    constants = [helper.make_tensor(name, kind, [1], [value]) for name, value in zip("ab", values, strict=True)]
    graph = model_of(node(op, "a b", "y"), inputs=(), constants=constants)
    compiled = compile(graph)
    assert op not in compiled.stages["optimize"]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(compiled()[0], ReferenceEvaluator(graph).run(None, {})[0])


def test_intermediate_tensors_share_memory():
    depth = 6
    steps = [node("Softmax", "x" if n == 0 else f"t{n}", f"t{n + 1}", axis=n % 2) for n in range(depth)]
    compiled = compile(model_of(*steps, outputs=(f"t{depth}",)))
    total, apart = (int(word.strip(",")) for word in compiled.stages["memory"].splitlines()[0].split()[:3:2])
    assert total < apart


def test_a_stage_can_be_replaced():
    def on_a_t4(graph):
        return fuse(graph, Hardware.get("t4"))

    seen = []

    def look(plan):
        seen.append(plan)
        from mlsys.compiler.lower import lower

        return lower(plan, DEVICE)

    x = np.ones((4, 8), np.float32)
    own = compile(CHAIN, stages={"fuse": on_a_t4, "lower": look})
    assert len(seen) == 1
    np.testing.assert_array_equal(own(x)[0], compile(CHAIN)(x)[0])
    with pytest.raises(InvalidValue, match="'fuze'.*did you mean 'fuse'"):
        compile(CHAIN, stages={"fuze": on_a_t4})


def folded_batch_norm(graph):
    constants, made, operations = dict(graph.constants), {}, []
    for operation in graph.operations:
        if operation.op == "BatchNormalization":
            convolution = made[operation.inputs[0]]
            scale, shift, mean, variance = (constants[name] for name in operation.inputs[1:])
            factor = scale / (variance + operation.attributes["epsilon"]).sqrt()
            weight, bias = (f"{part} of {operation.outputs[0]}" for part in ("weight", "bias"))
            constants[weight] = constants[convolution.inputs[1]] * factor.reshape(-1, 1, 1, 1)
            constants[bias] = shift - mean * factor
            operation = replace(convolution, inputs=(convolution.inputs[0], weight, bias), outputs=operation.outputs)
        made |= dict.fromkeys(operation.outputs, operation)
        operations.append(operation)
    return replace(graph, operations=tuple(operations), constants=constants)


def test_a_pass_can_fold_a_batch_normalization_into_the_weights():
    network = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU())
    for values in (network[1].running_mean, network[1].weight.data, network[1].bias.data):
        values.uniform_(0.5, 2)
    x = torch.randn(2, 3, 6, 6)
    own = compile(network.eval(), [x], stages={"optimize": lambda graph: optimize(folded_batch_norm(graph))})
    assert "BatchNormalization" not in own.stages["optimize"]
    assert own.stages["optimize"].count("constant ") == 2
    torch.testing.assert_close(own(x)[0].cpu(), network(x).detach(), rtol=1e-5, atol=1e-5)


MISTAKES = {
    "no return": ({"optimize": lambda graph: None}, "stage 'optimize' gave NoneType: let it return a Graph"),
    "graph": ({"fuse": lambda graph: graph}, "stage 'fuse' gave Graph: let it return a Program"),
    "text": ({"lower": lambda program: "import triton"}, "stage 'lower' gave str: let it return a Program"),
    "no text": ({"lower": lambda program: program}, "gave a Program without text: let it fill in"),
    "order": ({"optimize": lambda g: replace(g, operations=g.operations[::-1])}, "Tanh uses tensor 'b' and nothing"),
    "dropped": ({"optimize": lambda g: replace(g, operations=g.operations[:-1])}, "'y' is given by no operation"),
    "twice": ({"optimize": lambda g: replace(g, constants={"x": torch.zeros(1)})}, "tensor 'x' is given twice"),
    "name": (
        {"optimize": lambda g: replace(g, operations=(replace(g.operations[0], op="exp"), *g.operations[1:]))},
        "no operation 'exp'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_stage_of_ones_own_is_told_in_a_sentence(name):
    stages, words = MISTAKES[name]
    with pytest.raises(UserError, match=words):
        compile(CHAIN, stages=stages)


RULE_MISTAKES = {
    "a branch": (lambda x: x if x > 0 else -x, "a Value has no truth"),
    "a comparison": (lambda x: x == 0, "it returned bool, not a Value"),
    "no return": (lambda x: None, "it returned NoneType, not a Value"),
    "a copy": (lambda x: x.view(lambda array: array[[0, 2]]), "view got a copy"),
}


@pytest.mark.parametrize("name", RULE_MISTAKES)
def test_a_mistake_in_a_rule_is_told_in_a_sentence(name, monkeypatch):
    rule, words = RULE_MISTAKES[name]
    monkeypatch.setitem(RULES, "Exp", rule)
    with pytest.raises(UserError, match=f"does not fit the rule of Exp .*{words}"):
        compile(CHAIN)


def test_later_calls_use_their_own_inputs_and_outputs():
    model = nn.Sequential(nn.Linear(16, 16), nn.Softmax(-1), nn.Linear(16, 4)).eval()
    first, second = torch.randn(2, 8, 16)
    compiled = compile(model, [first])
    kept = compiled(first)[0]
    for x in (second, first, second.clone()):
        torch.testing.assert_close(compiled(x)[0].cpu(), model(x).detach())
    torch.testing.assert_close(kept.cpu(), model(first).detach())


def test_outputs_are_of_the_kind_of_the_inputs():
    compiled = compile(CHAIN)
    x = np.full((4, 8), 0.5, np.float32)
    assert isinstance(compiled(x)[0], np.ndarray)
    torch.testing.assert_close(compiled(torch.from_numpy(x))[0].cpu().numpy(), compiled(x)[0])


def test_an_input_that_says_a_shape_is_compiled_in_when_its_value_is_known():
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [2])
    model = model_of(node("Reshape", "x shape", "y"))
    model.graph.input.append(shape)
    compiled = compile(model)
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    for wanted in ((2, 16), (-1, 1), (8, 4)):
        np.testing.assert_array_equal(compiled(x, np.array(wanted))[0], x.reshape(wanted))


def test_what_the_emitted_source_says_is_what_runs():
    """The kernels' own text computes the answer: with a line changed, the answer changes."""
    from mlsys.compiler.lower import lower

    def spoiled(plan):
        source = lower(plan, DEVICE)
        return replace(source, text=source.text.replace("tl.exp(", "tl.sqrt("))

    x = np.full((4, 8), 4.0, np.float32)
    exponential = model_of(node("Exp", "x", "y"))
    np.testing.assert_allclose(compile(exponential, stages={"lower": spoiled})(x)[0], np.sqrt(x))


SAME = """
import os, sys
sys.path.insert(0, {tests!r})
import mlsys, mlsys.compiler
assert "onnx" not in sys.modules
from helpers.drawn_graphs import draw
for seed in range(1):
    print(mlsys.compiler.compile(draw(seed)[0], device={device!r}).source)
"""


def test_the_source_is_the_same_in_every_process_and_onnx_is_not_imported_for_nothing():
    code = SAME.format(tests=str(Path(__file__).parents[1]), device=DEVICE)
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "".join(f"{compile(draw(seed)[0]).source}\n" for seed in range(1))


def test_compiling_twice_gives_the_same_source():
    assert compile(CHAIN).source == compile(CHAIN).source


TELLING = {
    "__bool__": lambda x: x if x.sum() > 0 else -x,
    "item": lambda x: x * x.amax().item(),
    "__setitem__": lambda x: x.__setitem__(0, 1.0),
    "numpy": lambda x: torch.from_numpy(x.numpy()),
}


@pytest.mark.parametrize("name", TELLING)
def test_what_tells_python_a_value_or_changes_a_part_is_refused(name):
    with pytest.raises(UnsupportedOp, match=f"the compiler (cannot follow|has no) {name}.*(new tensor|torch.where)"):
        compile(Function(TELLING[name]), [torch.ones(3)])


def test_what_depends_on_no_input_is_computed_when_the_module_is_traced():
    def masked(x):
        allowed = torch.ones(4, 4, device=x.device).tril_().bool()
        return x.masked_fill(~allowed, -torch.inf) if len(x) == 4 else x

    x = torch.randn(4, 4)
    compiled = compile(Function(masked), [x])
    assert "constant" in compiled.stages["import"]
    assert compiled.stages["import"].count(" = ") == 1
    torch.testing.assert_close(compiled(x)[0].cpu(), masked(x))


def test_tracing_leaves_the_inputs_as_they_are():
    x = torch.randn(4)
    before = x.clone()
    compile(Function(lambda x: (x * 2).relu_()), [x])
    torch.testing.assert_close(x, before, rtol=0, atol=0)


def test_an_operation_that_is_missing_is_refused_by_name():
    assert "NonZero" not in OPS
    with pytest.raises(UnsupportedOp, match="no operation 'NonZero': write it with those of mlsys.compiler.OPS"):
        compile(model_of(node("NonZero", "x", "y")))
    with pytest.raises(UnsupportedOp, match="no translation of torch's function 'cumsum'"):
        compile(Cumulative(), [torch.zeros(3)])


class Cumulative(nn.Module):
    def forward(self, x):
        return x.cumsum(0)


POOLS = {
    "average": lambda x: nn.functional.avg_pool2d(x, 3, 2, 1),
    "average of what is there": lambda x: nn.functional.avg_pool2d(
        x, kernel_size=3, padding=1, count_include_pad=False
    ),
    "average, one window more": lambda x: nn.functional.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True),
    "greatest, one window more": lambda x: nn.functional.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "convolution, padded to the same size": lambda x: nn.functional.conv2d(x, torch.ones(2, 3, 4, 3), padding="same"),
    "convolution, not padded": lambda x: nn.functional.conv2d(x, torch.ones(2, 3, 3, 3), padding="valid"),
}


@pytest.mark.parametrize("name", POOLS)
def test_windows_lie_where_torch_puts_them(name):
    x = torch.randn(2, 3, 9, 8)
    torch.testing.assert_close(compile(Function(POOLS[name]), [x])(x)[0].cpu(), POOLS[name](x))


def test_an_average_without_padding_divides_by_a_number():
    source = compile(nn.AvgPool2d(2), [torch.randn(1, 1, 4, 4)]).source
    assert "row_sum / 4.0" in source
    assert source.count("tl.sum") == 1


ARGUMENTS = {
    "rounding_mode": lambda x: torch.div(x, 2, rounding_mode="floor"),
    "avg_pool2d": lambda x: nn.functional.avg_pool2d(x[None, None], 2, divisor_override=3),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_that_changes_the_answer_is_not_dropped(name):
    class Module(nn.Module):
        def forward(self, x):
            return ARGUMENTS[name](x)

    with pytest.raises(UnsupportedOp, match=name):
        compile(Module(), [torch.randn(4, 4)])


BAD = {
    "dynamic": (
        model_of(node("Exp", "x", "y"), inputs=(("x", ("batch", 8)),)),
        "input 'x' has the dynamic dimension 'batch'",
    ),
    "cycle": (
        model_of(node("Add", "x b", "a"), node("Exp", "a", "b"), outputs=("b",)),
        "Add uses tensor 'b' and nothing before it",
    ),
    "missing": (model_of(node("Add", "x nowhere", "y")), "Add uses tensor 'nowhere' and nothing before it"),
    "twice": (model_of(node("Exp", "x", "y"), node("Abs", "x", "y")), "tensor 'y' is given twice"),
    "no output": (model_of(node("Exp", "x", "a")), "output 'y' is given by no operation"),
    "shapes": (
        model_of(node("MatMul", "x w", "y"), inputs=(("x", (4, 8)), ("w", (4, 8)))),
        "MatMul has the shapes .* make the inner sizes equal",
    ),
    "broadcast": (
        model_of(node("Add", "x w", "y"), inputs=(("x", (4, 8)), ("w", (4, 7)))),
        "the rule of Add .shape mismatch",
    ),
    "opset": (model_of(node("Softmax", "x", "y"), opset=11), "the model has opset 11"),
    "inputs": (model_of(node("Add", "x", "y")), "does not fit the rule of Add"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_graph_is_told_in_a_sentence(name):
    model, words = BAD[name]
    with pytest.raises(UserError, match=words) as caught:
        compile(model)
    assert ":" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_format_is_refused():
    model = model_of(node("Identity", "x", "y"))
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.COMPLEX64
    with pytest.raises(UserError, match="tensor 'x' has ONNX's format number 14"):
        compile(model)
    with pytest.raises(UserError, match="format torch.complex64"):
        compile(nn.ReLU(), [torch.zeros(2, dtype=torch.complex64)])


def test_formats_of_8_bits_and_less_are_refused():
    with pytest.raises(UserError, match="tensor 'y' has ONNX's format number 17: convert it"):
        compile(model_of(node("Cast", "x", "y", to=TensorProto.FLOAT8E4M3FN)))


@pytest.mark.skipif(DEVICE == "cuda", reason="a GPU computes bf16")
def test_bf16_is_refused_where_the_interpreter_would_get_it_wrong():
    with pytest.raises(UserError, match="bf16 wrong: use fp16 or fp32, or compile for device='cuda'"):
        compile(nn.ReLU(), [torch.zeros(2, dtype=torch.bfloat16)])


def test_inputs_of_another_shape_or_number_are_refused():
    compiled = compile(CHAIN)
    with pytest.raises(InvalidValue, match=r"input 'x' is fp32\[4, 9\]: give fp32\[4, 8\]"):
        compiled(np.zeros((4, 9), np.float32))
    with pytest.raises(InvalidValue, match="1 inputs, got 2"):
        compiled(np.zeros((4, 8), np.float32), np.zeros(1, np.float32))
    with pytest.raises(InvalidValue, match="device must be one of"):
        compile_for(CHAIN, device="tpu")
    with pytest.raises(InvalidValue, match="call module.eval"):
        compile(nn.BatchNorm1d(4).train(), [torch.zeros(2, 4)])


def test_the_room_is_where_it_is_looked_for():
    assert {"compile", "OPS", "UnsupportedOp"} <= set(mlsys.compiler.__all__)
