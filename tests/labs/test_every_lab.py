"""What holds in every lab; what is its own stands in `test_<lab>_lab.py`."""

import ast
import re
import subprocess
import sys
from functools import cache

import pytest
from helpers.known_lab import ROOT, KnownLab

from mlsys.course.lab import PREDICT, SOLUTION, find_labs
from mlsys.course.starter import starter
from mlsys.judge.grade_question import LIMITS
from mlsys.judge.site import site

LABS = find_labs(ROOT)
QUESTIONS = [(name, question) for name in LABS for question in KnownLab(name).code_questions]
WITHOUT_HINTS = {"fusion": ("h", "i")}
"""Races of kernels that have theirs."""

known = cache(KnownLab)


@pytest.mark.parametrize(("name", "question"), QUESTIONS)
def test_the_solution_passes_or_waits_for_a_gpu(name, question):
    expected = "needs gpu" if known(name).lab.question(question).device == "gpu" else "passed"
    found = known(name).verdict(question)
    assert found.name == expected, found.message


@pytest.mark.parametrize(("name", "question"), QUESTIONS)
def test_the_starter_is_not_implemented(name, question):
    found = known(name).verdict(
        question, lambda cell: starter(cell.source) if cell.role in (PREDICT, SOLUTION) else cell.source
    )
    if (name, question) == ("tiling", "read"):  # its starter is faulty code
        assert found.name == "error"
        assert "Mask argument cannot be block type if pointer argument is not a block" in found.message
    elif (name, question) == ("first-kernels", "i"):  # so is its starter
        assert found.name == "out of bounds"
    else:
        assert found.name == "not implemented"


@pytest.mark.parametrize("name", LABS)
def test_points_add_up_to_100_and_the_notebook_shows_the_same(name):
    points = {question.name: question.points for question in known(name).lab.questions}
    assert sum(points.values()) == 100
    shown = re.search(r"Scorecard\(\s*(\{.*?\})", known(name).cells["setup"].source, re.S)
    assert ast.literal_eval(shown.group(1)) == points


@pytest.mark.parametrize("name", LABS)
def test_every_question_has_three_hints(name):
    prose = "\n".join(cell.source for cell in known(name).lab.cells if cell.kind == "markdown")
    with_hints = len(set(known(name).code_questions) - set(WITHOUT_HINTS.get(name, ())))
    for level in (1, 2, 3):
        assert len(re.findall(rf"<summary>Hint {level}\b", prose)) == with_hints
    assert prose.count("<details>") == prose.count("</details>") == 3 * with_hints


def test_a_notebook_that_asks_for_speed_asks_for_half_of_the_judges_time():
    prose = {name: "\n".join(cell.source for cell in known(name).lab.cells if cell.kind == "markdown") for name in LABS}
    asked = [(name, int(limit)) for name in LABS for limit in re.findall(r"less than (\d+)\s+seconds", prose[name])]
    assert {name for name, _ in asked} == {"machine", "schedules"}
    assert {limit for _, limit in asked} == {LIMITS.cpu_s // 2}
    stopped = [limit for name in LABS for limit in re.findall(r"stopped\s+after (\d+)", prose[name])]
    assert set(map(int, stopped)) == {LIMITS.cpu_s}


@pytest.mark.proof
@pytest.mark.parametrize("name", LABS)
def test_every_module_of_the_package_can_be_imported_without_what_the_lab_withholds(name):
    folder = site(known(name).lab.withheld)
    modules = [
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(folder.rglob("*.py"))
    ]
    code = f"import sys, importlib; sys.path.insert(0, {str(folder)!r}); list(map(importlib.import_module, {modules}))"
    done = subprocess.run([sys.executable, "-I", "-B", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


BY_THE_PACKAGE = {
    ("access", "a", "its transactions"): (
        "a-sectors",
        """
from mlsys.traffic import coalescing

by_hand = dict(zip(PATTERNS, (4, 5, 8, 32, 4, 1, 2, 16)))

def sectors(addresses, element_bytes):
    return coalescing.warp_transactions(addresses, element_bytes=element_bytes).sectors
""",
    ),
    ("access", "e", "its strides"): (
        "e-kernel",
        """
from mlsys.traffic import coalescing

def layout_strides(layout, shape):
    return coalescing.layout_strides(shape, layout)

def walk_sectors(layout, walk, channels, element_bytes):
    return coalescing.channel_read(channels=channels, layout=layout, element_bytes=element_bytes, walk=walk).sectors

@triton.jit
def channel_sum_kernel(x, y, pixels, channels, a, b, c, PIXELS: tl.constexpr, CHANNELS: tl.constexpr):
    pass
""",
    ),
    ("first-kernels", "c", "its operations"): (
        "c-kernel",
        """
from mlsys import ops

def two_pass_bytes(rows, cols, itemsize):
    return (4 * rows * cols + 2 * rows) * itemsize

def one_pass_bytes(rows, cols, itemsize):
    return int(ops.elementwise(elements=rows * cols, inputs=1, dtype="fp32").bytes.magnitude) + 2 * rows * itemsize

@triton.jit
def shift_scale_kernel(x, shift, scale, y, rows, cols, a, b, c, d, ROWS: tl.constexpr, COLS: tl.constexpr):
    pass
""",
    ),
    ("convolution", "a", "its operations"): (
        "a-counts",
        """
def output_size(size, taps, stride, padding):
    return ops.conv_output_size(size, taps, stride, padding)

def multiply_adds(n, size, c, k, taps, stride, padding):
    window = {"kernel": taps, "stride": stride, "padding": padding, "dtype": "fp16"}
    return int(ops.conv2d(n=n, c_in=c, h=size, w=size, c_out=k, **window).flop_count) // 2

copied_bytes = implicit_bytes = separate_bytes = fused_bytes = multiply_adds
""",
    ),
    ("precision", "a", "its operations"): (
        "a-counts",
        """
def weight_bytes(n, k, bits, group):
    return n * k * bits // 8 + (2 * n * (k // group) if group else 0)

def product_flops(m, n, k):
    return 2 * m * n * k

def product_bytes(m, n, k, bits, group):
    op = ops.matmul(m=m, n=n, k=k, dtype="fp16")
    return op.read_count + op.write_count - 2 * n * k + weight_bytes(n, k, bits, group)

product_time = last_batch = product_bytes
""",
    ),
    ("precision", "c", "its rounding"): (
        "c-quantize",
        """
from mlsys import numerics

def quantize_rows(x):
    found = numerics.quantize(x.numpy(), "int8", axis=0)
    return torch.from_numpy(found.codes), torch.from_numpy(found.scale)

quantize_groups = relative_error = quantize_rows
""",
    ),
    ("precision", "h", "its pruning"): (
        "h-sparse",
        """
import numpy
from mlsys import sparsity

def keep_two(group):
    return tuple(int(place) for place in numpy.flatnonzero(sparsity.prune(numpy.array([group]))))

pack_24 = bytes_24 = keep_two
""",
    ),
    ("capstone", "a", "its GPT-2"): (
        "a-bytes",
        """
from mlsys import models

def weight_bytes(layers, width, vocabulary, itemsize):
    each = layers * (12 * width**2 + 13 * width)
    return (each + vocabulary * width + 3 * width) * itemsize

def cache_bytes(layers, width, tokens, itemsize):
    dtype = {1: "fp8", 2: "fp16", 4: "fp32"}[itemsize]
    return int(models.kv_cache_bytes(layers=layers, kv_heads=1, head_dim=width, tokens=tokens, dtype=dtype).magnitude)

best_seconds = None
""",
    ),
    ("tiling", "a", "its counts"): (
        "a-traffic",
        """
def untiled_bytes(m, n, k, itemsize):
    return traffic.untiled(m, n, k).total_bytes // 4 * itemsize

def tiled_bytes(m, n, k, tile_m, tile_n, itemsize):
    return traffic._elements_moved(m, n, k, tile_m, tile_n, 0) * itemsize
""",
    ),
    ("tiling", "a", "a tiled loop nest"): (
        "a-traffic",
        """
from mlsys.dataflow.loop_nest import matmul
from mlsys.dataflow.tiles import tiled_accesses

def untiled_bytes(m, n, k, itemsize):
    return (2 * m * n * k + m * n) * itemsize

def tiled_bytes(m, n, k, tile_m, tile_n, itemsize):
    tile = {"m": min(m, tile_m), "n": min(n, tile_n), "k": 1}
    return tiled_accesses(matmul(m, n, k), "mnk", tile).total * itemsize
""",
    ),
    ("tiling", "b", "its best schedule"): (
        "b-schedule",
        """
def schedule(m, n, k, memory_bytes):
    best = traffic.best_schedule(m, n, k, memory_bytes=memory_bytes)
    return best.tile_m, best.tile_n, best.tile_k
""",
    ),
    ("roofline", "a", "its formulas"): (
        "a-roofs",
        """
from mlsys import formulas

def copy_bandwidth(array_bytes, laps_s):
    return 2 * array_bytes / statistics.median(laps_s)

def product_rate(side, laps_s):
    return 2 * side**3 / statistics.median(laps_s)

def ridge_point(bandwidth, peak):
    return formulas.hardware_balance(peak, bandwidth).magnitude

def attainable(intensity, bandwidth, peak):
    return formulas.attainable(peak, bandwidth, intensity).m_as("flop/s")
""",
    ),
    ("roofline", "e", "its operations"): (
        "e-costs",
        """
FORMATS = {1: "fp8", 2: "fp16", 4: "fp32", 8: "fp64"}

def cost(op):
    return int(op.flop_count), int(op.read_count + op.write_count)

def add_cost(n, itemsize):
    return cost(ops.elementwise(elements=n, inputs=2, dtype=FORMATS[itemsize]))

def softmax_cost(rows, cols, itemsize):
    return cost(ops.softmax(rows=rows, cols=cols, dtype=FORMATS[itemsize]))

def layernorm_cost(rows, cols, itemsize):
    return cost(ops.layernorm(rows=rows, cols=cols, dtype=FORMATS[itemsize]))

def matmul_cost(m, n, k, itemsize):
    return cost(ops.matmul(m=m, n=n, k=k, dtype=FORMATS[itemsize]))

def embedding_cost(bags, bag_size, dim, itemsize):
    return cost(ops.embedding_bag(bags=bags, bag_size=bag_size, dim=dim, dtype=FORMATS[itemsize]))

def place(flops, moved, bandwidth, peak):
    return "memory" if flops / peak < moved / bandwidth else "compute", max(flops / peak, moved / bandwidth)
""",
    ),
    ("machine", "b", "its arrays"): (
        "b-simulate",
        """
def simulate(feed, rows, cols):
    return pe_array.registers(feed, rows, cols).transpose(0, 2, 3, 1).tolist()
""",
    ),
    ("machine", "c", "its product"): (
        "c-multiply",
        """
from mlsys import systolic

def multiply(a, b, rows, cols):
    run = systolic.simulate(a, b, rows=rows, cols=cols, dataflow="ws")
    return run.product.tolist(), run.cycles

product_cycles = systolic.gemm_cycles
""",
    ),
    ("machine", "d", "its best plan"): (
        "d-fuse",
        """
def fuse(graph):
    return [[result] for result, _, _ in graph["ops"] if fusion_plan.least_bytes(graph)]
""",
    ),
    ("machine", "f", "its compiler"): (
        "f-emit",
        """
def emit(graph):
    compiled = fusion_plan.compile_groups(graph, [[result for result, _, _ in graph["ops"]]], "cpu")
    return compiled.source
""",
    ),
    ("machine", "f", "its compiler of modules"): (
        "f-emit",
        """
from mlsys.compiler import compile

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)

def emit(graph):
    return compile(Net(), [torch.zeros(graph["inputs"]["x"])]).source
""",
    ),
    ("machine", "g", "its first fit"): (
        "g-place",
        """
def place(buffers, order):
    return buffer_plan.first_fit(buffers, order)
""",
    ),
    ("machine", "h", "its planner"): (
        "h-plan",
        """
from mlsys.compiler import memory

def plan(buffers):
    return memory.plan_memory(buffers)
""",
    ),
    ("fusion", "a", "its operations"): (
        "a-traffic",
        """
from mlsys import ops

def chain_unfused_bytes(rows, cols, itemsize):
    return (6 * rows * cols + 5 * cols) * itemsize

def chain_fused_bytes(rows, cols, itemsize):
    return (2 * rows * cols + 5 * cols) * itemsize

def softmax_unfused_bytes(rows, cols, itemsize):
    return (8 * rows * cols + 4 * rows) * itemsize

def softmax_fused_bytes(rows, cols, itemsize):
    dtype = {1: "fp8", 2: "fp16", 4: "fp32", 8: "fp64"}[itemsize]
    return int(ops.softmax(rows=rows, cols=cols, dtype=dtype).bytes.magnitude)

def layernorm_unfused_bytes(rows, cols, itemsize):
    return (12 * rows * cols + 6 * rows + 2 * cols) * itemsize

def layernorm_fused_bytes(rows, cols, itemsize):
    return (2 * rows * cols + 2 * cols) * itemsize
""",
    ),
}


@pytest.mark.parametrize("case", BY_THE_PACKAGE, ids=" ".join)
def test_an_answer_that_the_package_computes_ends_in_an_error_that_says_so(case):
    name, question, _ = case
    answer, source = BY_THE_PACKAGE[case]
    found = known(name).verdict(question, known(name).with_cell(answer, source))
    assert found.name == "error", found
    assert "is removed when this lab is graded: write what it does yourself." in found.message


@pytest.mark.parametrize("name", LABS)
def test_the_notebook_says_that_parts_of_the_package_are_removed(name):
    prose = " ".join("\n".join(cell.source for cell in known(name).lab.cells if cell.kind == "markdown").split())
    assert "when the lab is graded" in prose.lower()
    assert "removed" in prose
