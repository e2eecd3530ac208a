import runpy

import pytest
import torch
from helpers.known_lab import HEAD, ROOT, KnownLab, compile_kernels

from mlsys import models
from mlsys.bench.run import lab_names
from mlsys.grading.hazards.inspection import inspect
from mlsys.grading.kernels.compiler_report import compiler_report
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.models import decoder

CAPSTONE = KnownLab("capstone")
verdict, with_fault = CAPSTONE.verdict, CAPSTONE.with_fault
CELLS = CAPSTONE.cells


@pytest.fixture(scope="module")
def names():
    """What the lab's setup and solutions define, with kernels for the interpreter."""
    return lab_names(ROOT / "labs/capstone/lab.py")


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("question", ["a", "b", "c", "d", "e", "f", "challenge"])
def test_the_solution_passes_whatever_the_hidden_tests_draw(question, seed):
    found = verdict(question, seed=seed)
    assert found.name == "passed", found.message


FAULTS = {  # question, what: right, wrong
    ("a", "no table of tokens"): (" + vocabulary * width", ""),
    ("a", "no biases"): ("13 * width", "4 * width"),
    ("a", "only what is read of the cache"): ("* tokens * itemsize", "* (tokens - 1) * itemsize"),
    ("a", "no cache in the time"): (" + cache_bytes(layers, width, tokens, itemsize)", ""),
    ("b", "a boundary for each layer"): ("layers * a_layer + others", "layers + others"),
    ("b", "rounded up"): ("math.floor", "math.ceil"),
    ("b", "less than none"): ("max(0, math.floor(", "max(-9, math.floor("),
    ("c", "padding in the variance"): (
        "tl.where(i < WIDTH, x - tl.sum(x, 0) / WIDTH, 0.0)", "x - tl.sum(x, 0) / WIDTH",
    ),
    ("c", "one block per program"): (
        "range(tl.program_id(0), tl.cdiv(N, ROWS), tl.num_programs(0))",
        "range(tl.program_id(0), tl.program_id(0) + 1)",
    ),
    ("c", "no shift"): ("* gain + shift", "* gain"),
    ("c", "no bias"): ("total += tl.load", "total += 0 * tl.load"),
    ("c", "products in float16"): (
        "weight.to(tl.float32) * normed[None, :]", "(weight * normed.to(weight.dtype)[None, :]).to(tl.float32)",
    ),
    ("c", "all in one place"): ("mask=(n < N) & (n < SPLIT)", "mask=n < N"),
    ("d", "the newest from the cache"): (
        "tl.where(t == T - 1, new_ptr, cache_ptr + t * 2 * WIDTH)", "cache_ptr + t * 2 * WIDTH",
    ),
    ("d", "tokens of the next share"): ("tl.minimum(first + share, T)", "tl.minimum(first + share + 1, T)"),
    ("d", "the sum not corrected"): ("total = total * old + tl.sum(p, 0)", "total = total + tl.sum(p, 0)"),
    ("d", "scores not scaled"): (" * HEAD**-0.5", ""),
    ("d", "the first head's values"): ("place + WIDTH", "place - head * HEAD + WIDTH"),
    ("d", "the shares' maxima left out"): ("tl.exp(m - m_new), tl.exp(m_s - m_new)", "1.0, 1.0"),
    ("d", "no residual"): ("y + tl.load(x_ptr + n, mask=n < WIDTH, other=0.0)", "y"),
    ("b", "a step that takes just the target is late"): (" + 1e-6", ""),
    ("e", "no GELU"): (
        "y = total * tl.sigmoid(1.5957691216057308 * (total + 0.044715 * total * total * total))", "y = total",
    ),
    ("e", "the sigmoid form of GELU"): (
        "tl.sigmoid(1.5957691216057308 * (total + 0.044715 * total * total * total))", "tl.sigmoid(1.702 * total)",
    ),
    ("e", "no mask of a long row's end"): ("(i < LONG)[None, :]", "(i < i + 1)[None, :]"),
    ("e", "no residual"): ("acc + tl.load(x_ptr + n, mask=n < N, other=0.0)", "acc"),
    ("f", "the position after"): ("(T - 1) * WIDTH + i", "T * WIDTH + i"),
    ("f", "the first layer's weights"): ("qkv_weight_ptr + layer * 3 * WIDTH * WIDTH", "qkv_weight_ptr"),
    ("f", "the first layer's cache"): ("cache_ptr + layer * LONGEST * 2 * WIDTH", "cache_ptr"),
    ("f", "scores split at the width"): ("VOCABULARY, VOCABULARY, epsilon", "VOCABULARY, WIDTH, epsilon"),
    ("f", "the first normalization twice"): ("norm2_gain_ptr + layer * WIDTH", "norm1_gain_ptr + layer * WIDTH"),
    ("challenge", "no barrier behind the first phase"): (
        "    barrier(count_ptr, due)\n    for layer", "    due -= programs\n    for layer",
    ),
    ("challenge", "the last phase left out"): ("6, HEAD, SPLITS, KEYS, HEAD_ROWS", "7, HEAD, SPLITS, KEYS, HEAD_ROWS"),
}  # fmt: skip
SOLUTIONS = {
    "a": "a-bytes", "b": "b-kernels", "c": "c-kernel", "d": "d-kernels", "e": "e-kernels", "f": "f-kernel",
    "challenge": "challenge-kernel",
}  # fmt: skip


@pytest.mark.parametrize(
    "fault",
    [pytest.param(one, marks=[pytest.mark.proof] * (one[0] in ("f", "challenge"))) for one in FAULTS],
    ids=" ".join,
)
def test_a_faulty_answer_is_found_by_a_visible_test(fault):
    question, (right, wrong) = fault[0], FAULTS[fault]
    found = verdict(question, with_fault(SOLUTIONS[question], right, wrong))
    assert found.name in ("wrong answer", "out of bounds"), found
    assert "In a hidden test" not in found.message


ATTACKS = {
    ("a", "numbers equal to all"): (
        "a-bytes",
        "class All(int):\n    __eq__ = lambda self, other: True\n    __ne__ = lambda self, other: False\n"
        "    __hash__ = int.__hash__\n\n"
        "def weight_bytes(*sizes):\n    return All(3)\n\ncache_bytes = best_seconds = weight_bytes\n",
    ),
    ("b", "a time that is close to all"): (
        "b-kernels",
        "class Near(float):\n    __sub__ = __rsub__ = lambda self, other: Near(0)\n    __abs__ = lambda self: Near(0)\n"
        "    __le__ = lambda self, other: True\n\n"
        "def step_seconds(*sizes):\n    return Near(0)\n\n"
        "def kernels(*sizes):\n    return 62\n\nmost_a_layer = kernels\n",
    ),
    ("e", "the reference's result replaced"): (
        "e-kernels",
        "def right_linear(*arguments):\n    return torch.zeros(16)\n\n"
        "right_gelu = right_norm = right_linear\n"
        "launch_up = launch_down = lambda kernel, constants, out, *inputs: out.zero_()\n\n"
        + CELLS["e-kernels"].source.split("### BEGIN SOLUTION")[0].rstrip()
        + "\n    pass\n\n\ndown_kernel = up_kernel\n",
    ),
    ("f", "the reference decoder in place of kernels"): (
        "f-kernel",
        "def token_kernel(*arguments, PHASE, **constants):\n"
        "    if PHASE == 6:\n"
        "        model = decoder.Decoder(arguments[30], *arguments[:16])\n"
        "        logits = model.step(arguments[24], arguments[25] - 1, arguments[17].clone())\n"
        "        arguments[23].copy_(logits)\n",
    ),
    ("f", "a decoder of the package that knows the characters"): (
        "f-kernel",
        "class Known(decoder.Decoder):\n    pass\n\n"
        "decoder.shipped = lambda: None\n"
        "decoder.random_decoder = lambda **sizes: None\n"
        + CELLS["f-kernel"].source.split("    ### BEGIN SOLUTION")[0].rstrip()
        + "\n    pass\n",
    ),
    ("challenge", "a barrier that only counts"): (
        "challenge-kernel",
        CELLS["challenge-kernel"].source.split("    ### BEGIN SOLUTION")[0]
        + "    tl.atomic_add(count_ptr, due)\n\n\n"
        + "@triton.jit\ndef persistent_kernel("
        + CELLS["challenge-kernel"].source.split("def persistent_kernel(")[1].split("    ### BEGIN SOLUTION")[0]
        + "    barrier(count_ptr, 5 * LAYERS + 1)\n",
    ),
    ("gap", "a cause equal to all"): (
        "gap-causes",
        "class All(str):\n    __eq__ = lambda self, other: True\n    __hash__ = str.__hash__\n\n"
        "cause_1 = cause_2 = cause_3 = cause_4 = All('kept')\n",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS, ids=" ".join)
def test_an_attack_scores_nothing(attack):
    cell_id, source = ATTACKS[attack]
    found = verdict(attack[0], CAPSTONE.with_cell(cell_id, source))
    assert found.name != "passed", found
    assert found.fraction == 0


def test_the_counts_are_those_of_the_package_and_of_the_model(names):
    """`mlsys.models` counts by the operations, and a model's tensors by what they hold."""
    step = models.gpt2("small", seq=512, decode=True, dtype="bf16")
    unread = 1023 * 768 * 2  # rows of the table of positions
    assert names["weight_bytes"](12, 768, 50257, 2) == step.weight_bytes.m_as("byte") - unread
    assert names["cache_bytes"](12, 768, 512, 2) == step.kv_cache_bytes(512).m_as("byte")
    model = decoder.shipped()
    held = sum(part.numel() for part in model.tensors.values()) - (model.longest - 1) * model.width
    assert names["weight_bytes"](model.layers, model.width, model.vocabulary, 1) == held


def test_the_reference_of_the_race_passes_the_tests_of_its_question():
    source = f"{CAPSTONE.rival('g-speed')}\ntoken_kernel = reference_kernel\n"
    found = verdict("f", CAPSTONE.with_cell("f-kernel", source))
    assert found.name == "passed", found.message


def test_the_reference_of_the_race_has_the_configuration_of_the_solution(names):
    reference_config = CAPSTONE.made("g-speed", "reference_config")
    for shape in names["RACES"]:
        assert reference_config(shape, "fp16") == names["config"](shape, "fp16")


def test_the_inputs_of_the_race_can_be_sent_and_its_result_is_the_references(names):
    draw = names["grading"].Draws("this test")
    inputs = names["model_inputs"](draw, (2, 128, 50, 6), "fp16")
    logits = torch.full((50,), float("nan"), dtype=torch.float16)
    small = {"QKV_ROWS": 256, "PROJECTION_ROWS": 128, "UP_ROWS": 256, "DOWN_ROWS": 128, "HEAD_ROWS": 64}
    names["launch_race"](names["token_kernel"], small | {"SPLITS": 2, "KEYS": 4, "BLOCK": 128}, logits, *inputs)
    right = names["right_scores"](*inputs)
    assert (logits - right).abs().max() / right.std() < 5e-3
    for layers, width, vocabulary, tokens in names["RACES"]:
        numbers = layers * (12 * width**2 + 13 * width) + vocabulary * width + 2 * width
        sent = 2 * (numbers + tokens * width + layers * tokens * 2 * width)
        assert sent + 64 * 4096 < Limits().buffer_bytes  # each tensor begins at a page of its own


WIDTH = 32
SHAPES = {"x": (WIDTH,), "gain": (WIDTH,), "shift": (WIDTH,), "weight": (16, WIDTH), "bias": (16,)}
REFUSED = {
    "a double": ({"x": torch.zeros(WIDTH).double()}, {}, r"x is torch\.float64: give torch\.float32"),
    "integer weights": (
        {"weight": torch.zeros(16, WIDTH).int()},
        {},
        r"weight is torch\.int32: give torch\.float32 or",
    ),
    "another width": ({"gain": torch.zeros(31)}, {}, r"gain has shape \(31,\): give \(32,\)"),
    "no results": ({"weight": torch.zeros(0, WIDTH), "bias": torch.zeros(0)}, {}, "each 1 or more"),
    "gaps": ({"weight": torch.zeros(WIDTH, 16).T}, {}, r"weight has strides \(1, 16\): call \.contiguous\(\)"),
    "another device": ({"bias": torch.zeros(16, device="meta")}, {}, "bias is on meta, and x on cpu: give both alike"),
    "a small block": ({}, {"BLOCK": 16}, "BLOCK is 16, and a row has 32 numbers: give a power of two"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_kernel_does_not_take_is_refused_by_name(names, case):
    changed, constants, says = REFUSED[case]
    tensors = {name: torch.zeros(shape) for name, shape in SHAPES.items()} | changed
    out = torch.zeros(tensors["weight"].shape[0])
    with pytest.raises(ValueError, match=says):
        names["launch_norm_linear"](names["norm_linear_kernel"], {"ROWS": 16} | constants, out, *tensors.values())


def test_weights_and_cache_that_do_not_belong_together_are_refused(names):
    model = decoder.shipped()
    logits = torch.empty(model.vocabulary)
    for cache, says in [
        (model.empty_cache()[:1], r"norm1_gain has shape \(2, 96\): give \(1, 96\)"),
        (model.empty_cache()[:, :9].contiguous(), r"positions has shape \(192, 96\): give \(9, 96\)"),
        (model.empty_cache()[..., :48].contiguous(), r"tokens has shape \(96, 96\): give \(96, 48\)"),
    ]:
        with pytest.raises(ValueError, match=says):
            names["launch_token"](names["token_kernel"], names["SMALL"], logits, cache, *model.tensors.values())
    constants = {"HEAD": 20, "SPLITS": 1, "KEYS": 4}
    arguments = torch.empty(4, 1, 22), torch.empty(96), torch.empty(3, 2, 96), torch.empty(2, 96)
    with pytest.raises(ValueError, match="HEAD is 20, and the width 96: HEAD must divide it"):
        names["launch_attention"](names["attention_kernel"], constants, *arguments)


def test_the_inspection_finds_nothing_in_the_solutions(tmp_path):
    """Right after the lab's own launches, on shapes where every edge is ragged."""
    cells = ("setup", "launches", "token-given", "c-kernel", "d-kernels", "e-kernels", "f-kernel")
    module = tmp_path / "kernels.py"
    module.write_text(HEAD + "\n".join(CELLS[cell].source for cell in cells))
    names = runpy.run_path(str(module))
    found = []

    class Inspecting:
        def __init__(self, kernel):
            self.kernel = kernel

        def __getitem__(self, grid):
            return lambda *arguments, **constants: found.extend(inspect(self.kernel, grid, *arguments, **constants))

    launch = {name: Inspecting(names[name]) for name in (
        "norm_linear_kernel", "attention_kernel", "project_kernel", "up_kernel", "down_kernel",
    )}  # fmt: skip
    vectors = [torch.randn(24) for _ in range(3)]
    weight, bias = torch.randn(37, 24), torch.randn(37)
    rows = {"ROWS": 16, "SPLIT": 11, "PROGRAMS": 2}
    names["launch_norm_linear"](launch["norm_linear_kernel"], rows, torch.empty(37), *vectors, weight, bias)
    names["launch_up"](launch["up_kernel"], rows, torch.empty(37), *vectors, weight, bias)
    heads = {"HEAD": 16, "SPLITS": 3, "KEYS": 4, "ROWS": 32}
    parts = torch.empty(3, 3, 18)
    cache, newest = torch.randn(11, 2, 48), torch.randn(2, 48)
    names["launch_attention"](launch["attention_kernel"], heads, parts, torch.randn(48), cache, newest)
    parts = torch.rand(3, 3, 18)
    square, x = torch.randn(48, 48), torch.randn(48)
    names["launch_project"](launch["project_kernel"], heads, torch.empty(48), parts, square, torch.randn(48), x)
    long = {"ROWS": 16, "BLOCK": 32}
    arguments = torch.randn(75), torch.randn(37, 75), bias, torch.randn(37)
    names["launch_down"](launch["down_kernel"], long, torch.empty(37), *arguments)
    assert found == []


def test_the_compile_cell_compiles_every_phase_without_spills(names, capsys):
    [cell] = [cell for cell in CAPSTONE.lab.cells if "report.registers" in cell.source]
    exec(compile(cell.source, cell.id, "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"phase {number}" for number in range(7)]
    assert all("registers, 0 bytes spilled" in line for line in lines), lines


@pytest.mark.proof
def test_the_reference_of_the_race_compiles_without_spills(names, tmp_path):
    module = tmp_path / "kernels.py"
    module.write_text(HEAD + CAPSTONE.rival("g-speed"))
    reference = runpy.run_path(str(module))["reference_kernel"]
    [cell] = [cell for cell in CAPSTONE.lab.cells if "report.registers" in cell.source]
    shapes = {"torch": torch}
    exec(cell.source.split("sizes = ")[0], shapes)  # its tensors have GPT-2's shapes
    weights, cache = shapes["large"].values(), shapes["cache"]
    logits = torch.empty(50257, dtype=torch.float16, device="meta")
    phases = [names["config"](names["RACES"][0], "fp16") | {"PHASE": phase} for phase in range(1, 7)]
    launch = names["launch_race"]
    for report in compiler_report(reference, phases, logits, cache, *weights, launch=launch, capabilities=[80, 90]):
        assert report.spilled_bytes == 0, report


@pytest.mark.proof
def test_the_persistent_kernel_compiles_for_the_gpus_of_the_race(tmp_path):
    cells = ("c-kernel", "d-kernels", "e-kernels", "f-kernel", "challenge-kernel")
    module = tmp_path / "kernels.py"
    module.write_text(HEAD + "\n".join(CELLS[cell].source for cell in cells))
    float32 = ("x_ptr", "q_ptr", "part_ptr", "hidden_ptr", "logits_ptr")
    constants = {"QKV_ROWS": 8, "PROJECTION_ROWS": 4, "UP_ROWS": 8, "DOWN_ROWS": 4, "HEAD_ROWS": 16}
    made = {
        "kernel": "persistent_kernel", "dtype": "fp16", "num_warps": 8,
        "constants": constants | {"HEAD": 64, "SPLITS": 8, "KEYS": 64, "BLOCK": 1024},
        "types": dict.fromkeys(float32, "*fp32") | {"count_ptr": "*i32", "epsilon": "fp32"},
        "odd": ["token", "T", "LAYERS", "VOCABULARY", "HEADS", "epsilon"],
    }  # fmt: skip
    for needs in compile_kernels(module, [made | {"capability": one} for one in (80, 90)]):
        assert needs["registers"] * 32 * 8 <= 65536
        assert needs["wide_loads"] > 0
