import csv
import json
import os
import re
import runpy
import subprocess
import sys
from types import SimpleNamespace

import pytest
from helpers.known_lab import HEAD, ROOT, KnownLab

from mlsys.bench.run import lab_names
from mlsys.course.starter import solution, starter
from mlsys.grading.hazards.inspection import inspect
from mlsys.grading.kernels.compiler_report import compiler_report
from mlsys.measure.records import load

FIRST = KnownLab("first-kernels")
verdict, with_fault = FIRST.verdict, FIRST.with_fault
CELLS = FIRST.cells
PROSE = "\n".join(cell.source for cell in FIRST.lab.cells if cell.kind == "markdown")
ANY_DEVICE = [name for name in FIRST.code_questions if FIRST.lab.question(name).device == "any"]


@pytest.fixture(scope="module")
def names():
    """What the lab's setup and solutions define, with kernels for the interpreter."""
    return lab_names(ROOT / "labs/first-kernels/lab.py")


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("question", [name for name in ANY_DEVICE if name not in ("f", "h", "gap")])
def test_the_solution_passes_whatever_the_hidden_tests_draw(question, seed):
    found = verdict(question, seed=seed)
    assert found.name == "passed", found.message


FAULTS = {  # question, what: right, wrong
    ("a", "no mask at the store"): ("x + y, mask=inside", "x + y"),
    ("a", "blocks overlap"): ("tl.program_id(0) * BLOCK", "tl.program_id(0) * (BLOCK // 2)"),
    ("a", "a mask one too short"): ("index < N", "index < N - 1"),
    ("b", "no mask of the rows"): ("(row < rows) & (col < cols)", "(row < row + 1) & (col < cols)"),
    ("b", "no mask of the columns"): ("(row < rows) & (col < cols)", "(row < rows) & (col < col + 1)"),
    ("b", "unit column stride of x"): ("col * stride_xc", "col"),
    ("b", "strides of x for y"): ("row * stride_yr + col * stride_yc", "row * stride_xr + col * stride_xc"),
    ("b", "strides of a contiguous result"): ("row * stride_or + col * stride_oc", "row * cols + col"),
    ("b", "programs swapped"): ("tl.program_id(1) * COLS", "tl.program_id(0) * COLS"),
    ("c", "one vector left out"): ("(2 * rows * cols + 2 * rows)", "(2 * rows * cols + rows)"),
    ("c", "t is free"): ("(4 * rows * cols + 2 * rows)", "(3 * rows * cols + 2 * rows)"),
    ("c", "a number per column"): ("tl.load(shift_ptr + row, mask=in_rows", "tl.load(shift_ptr + col, mask=col < cols"),
    ("c", "multiplied first"): ("(x + shift) * scale", "x * scale + shift"),
    ("c", "a sum in float16"): ("y = (x + shift) * scale", "y = (x + shift).to(y_ptr.dtype.element_ty) * scale"),
    ("d", "the neighbor's numbers"): ("index < last", "index < N"),
    ("d", "no end at N"): ("tl.minimum(first + share, N)", "first + share"),
    ("d", "one block only"): ("range(first, last, BLOCK)", "range(first, tl.minimum(first + 1, last), BLOCK)"),
    ("d", "sums in float16"): ("tl.sum(total, 0)", "tl.sum(total.to(tl.float16), 0).to(tl.float32)"),
    ("e", "a race in the total"): (
        "tl.atomic_add(total_ptr, tl.sum(x, 0))",
        "tl.store(total_ptr, tl.load(total_ptr) + tl.sum(x, 0))",
    ),
    ("e", "a race in the histogram"): (
        "tl.atomic_add(counts_ptr + value, 1, mask=(value >= 0) & (value < BINS))",
        "kept = (value >= 0) & (value < BINS)\n"
        "    tl.store(counts_ptr + value, tl.load(counts_ptr + value, mask=kept, other=0) + 1, mask=kept)",
    ),
    ("e", "lanes past the end count"): ("other=-1", "other=0"),
    ("e", "values above are counted"): ("(value >= 0) & (value < BINS)", "value >= 0"),
    ("e", "negative values are counted"): ("(value >= 0) & (value < BINS)", "value < BINS"),
    ("challenge", "a block too few"): ("tl.program_id(0) * BLOCK, N,", "tl.program_id(0) * BLOCK, N - BLOCK,"),
    ("challenge", "counts of the last block"): ("counts += tl.histogram", "counts = tl.histogram"),
    ("challenge", "lanes past the end count"): ("other=-1", "other=0"),
    ("challenge", "one row for all"): ("tl.program_id(0) * BINS + ", ""),
}
SOLUTIONS = {"e": "e-kernels"}


@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_a_faulty_kernel_is_found_by_a_visible_test(fault):
    question, (right, wrong) = fault[0], FAULTS[fault]
    found = verdict(question, with_fault(SOLUTIONS.get(question, f"{question}-kernel"), right, wrong))
    assert found.name in ("wrong answer", "out of bounds"), found
    assert "hidden test" not in found.message


FUNCTION_FAULTS = {
    "the least time": ("statistics.median(times_us[: len(times_us) // 2])", "min(times_us)"),
    "the median of all": ("times_us[: len(times_us) // 2]", "times_us"),
    "the last size that is flat": ("            break\n", "            continue\n"),
    "the first time counts": ("[1:]:", ":"),
    "GiB": ("1e3 / bytes_per_number", "1.073741824e3 / bytes_per_number"),
    "one launch": ('launches * device["overhead_us"]', 'device["overhead_us"]'),
    "megabytes": ('device["gb_per_s"] / 1e3', 'device["gb_per_s"]'),
}


@pytest.mark.parametrize("fault", FUNCTION_FAULTS)
def test_a_faulty_function_about_overhead_is_found_by_a_visible_test(fault):
    found = verdict("g", with_fault("g-functions", *FUNCTION_FAULTS[fault]))
    assert found.name == "wrong answer", found
    assert "hidden test" not in found.message


KERNELS = re.findall(r"^def (\w+)", CELLS["i-kernels"].source, re.M)


def functions(source):
    """The kernels of a cell, by name."""
    parts = source.split("@triton.jit\n")[1:]
    return {re.match(r"def (\w+)", part)[1]: f"@triton.jit\n{part}" for part in parts}


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_faulty_kernel_is_refused_where_the_other_five_are_repaired(kernel):
    faulty, repaired = (functions(change(CELLS["i-kernels"].source)) for change in (starter, solution))
    source = "\n".join(faulty[name] if name == kernel else repaired[name] for name in KERNELS)
    found = verdict("i", FIRST.with_cell("i-kernels", source))
    assert found.name in ("wrong answer", "out of bounds"), found
    assert "hidden test" not in found.message


FOUND = {1: {"out of bounds"}, 2: {"masked lane used"}, 3: {"conflicting stores", "race"}, 5: {"out of bounds"}}
"""Kinds of findings of the faulty kernels, by their numbers."""


@pytest.mark.parametrize("change", [starter, solution])
def test_the_inspection_finds_what_the_lab_says_it_finds(names, tmp_path, change):
    """In the faulty kernels, and in none of the repaired ones; the calls are those of the lab's own cell."""
    [tools] = [cell.source for cell in FIRST.lab.cells if 'print(f"kernel {number}:"' in cell.source]
    module = tmp_path / "kernels.py"
    module.write_text(f"{HEAD}\n{change(CELLS['i-kernels'].source)}")
    found = []

    def record(*arguments, **constants):
        found.append({one.kind for one in inspect(*arguments, **constants)})

    given = names | runpy.run_path(str(module))
    given |= {"grading": SimpleNamespace(inspect=record), "print": lambda *_, **__: None}
    exec(compile(tools, "tools", "exec"), given)
    if change is starter:
        assert all(kinds <= seen for kinds, seen in zip(FOUND.values(), found, strict=True)), found
    else:
        assert found == [set()] * len(FOUND)
    error = (given["means"].double() - given["right"]).abs().max() / given["right"].max()
    assert (error > 1e-5) == (change is starter)


ATTACKS = {
    ("f", "an answer equal to all"): (
        "f-answers",
        "class All(str):\n    __eq__ = lambda self, other: True\n    __hash__ = str.__hash__\n"
        "    startswith = lambda self, other: True\n\n"
        "numbers_per_thread = bytes_at_once = numbers_on_8_warps = True\n"
        "mask_register = why_single = why_single_with_stride = All()\n",
    ),
    ("h", "an answer equal to all"): (
        "h-names",
        "class All(str):\n    __eq__ = lambda self, other: True\n    __hash__ = str.__hash__\n\n"
        "fault_1 = fault_2 = fault_3 = fault_4 = fault_5 = fault_6 = All('mask')\n",
    ),
    ("g", "a number that is near everything"): (
        "g-functions",
        "class Near(float):\n    __sub__ = __rsub__ = lambda self, other: 0.0\n\n"
        "def overhead_us(times_us):\n    return Near(1)\n\n"
        "def flat_until(sizes, times_us):\n    return Near(1)\n\n"
        "def break_even(*arguments):\n    return Near(1)\n\n"
        "def regime(*arguments):\n    return 'memory'\n",
    ),
    ("e", "the inspection looks away"): (
        "e-kernels",
        "def nothing(*arguments, **constants):\n    return []\n\n"
        "grading.inspect = nothing\ngrading.inspect_first = lambda kernel: kernel\n"
        "launch_total_inspected = launch_total\n\n"
        "@triton.jit\n"
        "def total_kernel(x_ptr, total_ptr, N, BLOCK: tl.constexpr):\n"
        "    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    part = tl.sum(tl.load(x_ptr + index, mask=index < N, other=0.0).to(tl.float32), 0)\n"
        "    tl.store(total_ptr, tl.load(total_ptr) + part)\n\n"
        "@triton.jit\n"
        "def histogram_kernel(x_ptr, counts_ptr, N, BINS, BLOCK: tl.constexpr):\n"
        "    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    value = tl.load(x_ptr + index, mask=index < N, other=-1)\n"
        "    tl.atomic_add(counts_ptr + value, 1, mask=(value >= 0) & (value < BINS))\n",
    ),
    ("e", "a race that hides from few programs"): (
        "e-kernels",
        CELLS["e-kernels"].source.replace(
            "tl.atomic_add(total_ptr, tl.sum(x, 0))",
            "if tl.num_programs(0) < 4:\n        tl.atomic_add(total_ptr, tl.sum(x, 0))\n"
            "    else:\n        tl.store(total_ptr, tl.load(total_ptr) + tl.sum(x, 0))",
        ),
    ),
    ("i", "all sums by one program of each column"): (
        "i-kernels",
        solution(CELLS["i-kernels"].source).replace(
            "tl.atomic_add(sums_ptr + col, x, mask=col < cols)",
            "tl.store(sums_ptr + col, tl.load(sums_ptr + col, mask=col < cols, other=0.0) + x, mask=col < cols)",
        ),
    ),
}


@pytest.mark.parametrize("attack", ATTACKS, ids=" ".join)
def test_an_attack_on_what_this_lab_asks_gets_no_points(attack):
    cell, source = ATTACKS[attack]
    found = verdict(attack[0], lambda one: source if one.id == cell else one.source)
    assert found.name in ("wrong answer", "error", "suspicious"), found
    assert found.fraction == 0


def test_the_table_of_times_is_that_of_the_record(names):
    record = load("nvidia-h200", ROOT / "labs/results")
    ways = {"queued": "back to back", "waited": "launch and wait", "graph": "graph"}
    for way, variant in ways.items():
        rows = [row for row in record.named("launch latency") if row.variant == variant]
        assert [row.shape[0] for row in rows] == names["SIZES"]
        assert [round(1e6 * row.median_s, 2) for row in rows] == names["TIMES_US"][way]
    [copy] = [row for row in record.named("copy bandwidth") if row.variant == "copy"]
    assert round(copy.achieved, -1) == names["COPY_GB_PER_S"]
    [gap] = [cell.source for cell in FIRST.lab.cells if "# 4. A thousand small launches" in cell.source]
    strided = {row.shape: row for row in record.named("stride")}[(67_108_864, 8)]
    cached = {row.shape: row for row in record.named("working set")}[(33_554_432,)]
    assert f"{{{1e6 * strided.median_s:.1f}:" in gap
    assert f"{{{1e6 * cached.median_s:.2f}:" in gap


def profile(rung):
    """Quantities of a profile of the tiling lab's ladder, whose first two rungs are kernel 6 and its repair."""
    with (ROOT / f"labs/tiling/ladder/profiles/{rung}.csv").open(newline="") as file:
        return {row["quantity"]: float(row["value"]) for row in csv.DictReader(file)}


PROFILED = {
    "time, ms": ("time", 1e-6, 1),
    "sectors per load": ("sectors per load", 1, 1),
    "L1 cache throughput, %": ("L1 throughput", 1, 1),
    "bytes from L2 to SMs, GB": ("bytes from L2 to SMs", 1e-9, 0),
    "DRAM throughput, %": ("device memory throughput", 1, 1),
    "issue slots used, %": ("issue slots used", 1, 1),
}


def test_the_profile_is_that_of_the_ladder():
    profiles = [profile(rung) for rung in ("01_naive", "02_coalesced")]
    for line, (quantity, factor, digits) in PROFILED.items():
        shown = re.search(rf"^# *{re.escape(line)} +([\d.]+) +([\d.]+)$".replace("# *", ""), PROSE, re.M)
        assert shown, line
        assert [f"{one[quantity] * factor:.{digits}f}" for one in profiles] == list(shown.groups())


COMPILE = """
import json, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kernels import add_kernel, strided_kernel
found = []
for name, divisible, warps in json.load(sys.stdin):
    kernel = {"add_kernel": add_kernel, "strided_kernel": strided_kernel}[name]
    types = dict.fromkeys(kernel.arg_names[:3], "*fp32") | dict.fromkeys(kernel.arg_names[3:-1], "i32")
    known = {(index,): [["tt.divisibility", 16]] for index in ((0, 1, 2, 3) if divisible else (0, 1, 2))}
    source = ASTSource(kernel, types | {"BLOCK": "constexpr"}, {"BLOCK": 1024}, known)
    made = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": warps})
    found.append([made.asm["ttgir"], made.asm["ptx"]])
json.dump(found, sys.stdout)
"""


def test_the_compiler_makes_what_the_lab_shows(tmp_path):
    """For an A100: numbers per thread, wide loads, the mask's register, and why loads become narrow."""
    add = solution(CELLS["a-kernel"].source)
    strided = add.replace("add_kernel", "strided_kernel").replace("N, BLOCK", "N, stride, BLOCK")
    strided = strided.replace("_ptr + index", "_ptr + index * stride")
    (tmp_path / "kernels.py").write_text(f"{HEAD}\n{add}\n{strided}")
    jobs = [("add_kernel", True, 4), ("add_kernel", False, 4), ("strided_kernel", True, 4), ("add_kernel", True, 8)]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment.get("PYTHONPATH", "")])
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "cache")
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wide, wide_ptx), (_, ragged_ptx), (narrow, narrow_ptx), (_, eight_ptx) = json.loads(done.stdout)
    assert "sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4]" in wide
    assert "sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4]" in narrow
    loads = [re.findall(r"(@%p\d+) (ld\.global\S*)", ptx) for ptx in (wide_ptx, ragged_ptx, narrow_ptx, eight_ptx)]
    assert loads[0] == [(register, "ld.global.v4.b32") for register in ("@%p1", "@%p2") * 2]
    assert [len(found) for found in loads] == [4, 16, 16, 2]  # x and y: 8 numbers per thread, or 4 on 8 warps
    assert {kind for found in loads[1:3] for _, kind in found} == {"ld.global.b32"}
    for shown in ("shl.b32     %r27, %r26, 10;", "setp.lt.s32 %p1, %r32, %r28;", "and.b32     %r31, %r30, 508;"):
        assert shown in PROSE


def test_the_reference_of_the_race_passes_the_tests_of_its_question():
    counts = CELLS["c-kernel"].source.split("@triton.jit")[0]
    source = f"{counts}\n{FIRST.rival('j-speed')}\nshift_scale_kernel = reference_kernel\n"
    found = verdict("c", FIRST.with_cell("c-kernel", source))
    assert found.name == "passed", found.message


def test_the_reference_of_the_race_has_the_configuration_of_the_solution(names):
    reference_tile = FIRST.made("j-speed", "reference_tile", triton=names["triton"])
    for shape in names["RACES"]:
        assert reference_tile(shape, "fp32") == names["tile_config"](shape, "fp32")


def test_the_lab_compiles_its_kernels_without_spills(names, capsys):
    [cell] = [cell for cell in FIRST.lab.cells if 'compiles")' in cell.source]
    reports = []

    def report(*arguments, **named):
        reports.extend(compiler_report(*arguments, **named))

    exec(compile(cell.source, cell.id, "exec"), names | {"compiler_report": report})
    kernels = ("add", "add_matrices", "shift_scale", "sum", "total", "histogram")
    assert capsys.readouterr().out.splitlines() == [f"{name}_kernel compiles" for name in kernels]
    assert {one.spilled_bytes for one in reports} == {0}
