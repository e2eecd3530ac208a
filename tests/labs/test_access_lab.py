import json
import os
import re
import runpy
import subprocess
import sys

import pytest
from helpers.known_lab import HEAD, ROOT, KnownLab

from mlsys.bench.run import lab_names
from mlsys.course.starter import solution
from mlsys.grading.hazards.inspection import inspect
from mlsys.grading.kernels.compiler_report import compiler_report
from mlsys.measure.records import load
from mlsys.traffic.coalescing import channel_read, strided_addresses, warp_transactions

ACCESS = KnownLab("access")
verdict, with_fault = ACCESS.verdict, ACCESS.with_fault
CELLS = ACCESS.cells
PROSE = "\n".join(cell.source for cell in ACCESS.lab.cells if cell.kind == "markdown")


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lab's setup and solutions define, and the slow kernel that it shows, for the interpreter."""
    found = lab_names(ROOT / "labs/access/lab.py")
    [shown] = [cell.source for cell in ACCESS.lab.cells if "def naive_transpose_kernel" in cell.source]
    module = tmp_path_factory.mktemp("shown") / "naive.py"
    module.write_text(f"{HEAD}\n{shown.split('x = torch')[0]}")
    return found | {"naive_transpose_kernel": runpy.run_path(str(module))["naive_transpose_kernel"]}


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("question", ["a", "b", "c", "d", "e", "f", "challenge"])
def test_the_solution_passes_whatever_the_hidden_tests_draw(question, seed):
    found = verdict(question, seed=seed)
    assert found.name == "passed", found.message


FAULTS = {  # question, what: cell, right, wrong
    ("a", "sectors of the first bytes alone"): (
        "a-sectors",
        "(start + element_bytes - 1) // 32 + 1", "start // 32 + 1",
    ),
    ("a", "a sector too many at a border"): ("a-sectors", "(start + element_bytes - 1)", "(start + element_bytes)"),
    ("a", "sectors of 64 bytes"): ("a-sectors", "// 32", "// 64"),
    ("a", "an own sector for each lane"): ("a-sectors", "return len(touched)", "return len(addresses)"),
    ("a", "a hand that forgets the shift"): ("a-sectors", '    "shifted": 5', '    "shifted": 4'),
    ("a", "a hand that counts lanes"): ("a-sectors", '    "all the same": 1', '    "all the same": 32'),
    ("b", "no padding"): ("b-schedule", "33 * i + j", "32 * i + j"),
    ("b", "padding by two"): ("b-schedule", "33 * i + j", "34 * i + j"),
    ("b", "columns of x"): ("b-schedule", "[[i * stride_x + j for j in side] for i in side]",
                            "[[i * stride_x + j for i in side] for j in side]"),
    ("b", "columns of y"): ("b-schedule", "for i in side] for j in side]", "for j in side] for i in side]"),
    ("b", "not transposed"): ("b-schedule", "j * stride_y + i for", "i * stride_y + j for"),
    ("b", "the strides confused"): ("b-schedule", "j * stride_y + i", "j * stride_x + i"),
    ("c", "no mask at the store"): ("c-kernel", "row * stride_yc, x, mask=inside", "row * stride_yc, x"),
    ("c", "a mask of the rows alone"): ("c-kernel", "(row < rows) & (col < cols)", "(row < rows) & (col < col + 1)"),
    ("c", "a mask of the columns alone"): ("c-kernel", "(row < rows) & (col < cols)", "(row < row + 1) & (col < cols)"),
    ("c", "a copy"): ("c-kernel", "col * stride_yr + row * stride_yc", "row * stride_yr + col * stride_yc"),
    ("c", "a contiguous result"): ("c-kernel", "col * stride_yr + row * stride_yc", "col * rows + row"),
    ("c", "a contiguous x"): ("c-kernel", "row * stride_xr + col * stride_xc", "row * cols + col"),
    ("c", "unit column stride"): ("c-kernel", "col * stride_xc", "col"),
    ("c", "programs swapped"): ("c-kernel", "tl.program_id(1) * COLS", "tl.program_id(0) * COLS"),
    ("d", "row 0 alone"): ("d-functions", " or stride * element_bytes % (2 * width * element_bytes)", ""),
    ("d", "the other rows alone"): ("d-functions", "first % (2 * width * element_bytes) or ", ""),
    ("d", "as wide as you like"): ("d-functions", "2 * width <= per_thread and ", ""),
    ("d", "32 bytes at once"): ("d-functions", "element_bytes <= 16", "element_bytes <= 32"),
    ("d", "rounded down"): ("d-functions", "-(-cols * element_bytes // 32)", "(cols * element_bytes // 32)"),
    ("d", "always a sector more"): (
        "d-functions",
        "-(-cols * element_bytes // 32)", "(cols * element_bytes // 32 + 1)",
    ),
    ("d", "every warp full"): ("d-functions", "min(start + 32, cols)", "start + 32"),
    ("d", "every row aligned"): ("d-functions", "(row * stride + start)", "start"),
    ("e", "height for width"): ("e-kernel", "width * channels, channels", "height * channels, channels"),
    ("e", "channels last for both"): ("e-kernel", 'if layout == "NCHW"', 'if layout == ""'),
    ("e", "far apart is far apart"): ("e-kernel", '"NHWCw": channels', '"NHWCw": 32'),
    ("e", "no mask of the channels"): ("e-kernel", "& (channel[None, :] < channels)", "& (channel[None, :] >= 0)"),
    ("e", "no mask of the pixels"): ("e-kernel", "mask=pixel < pixels", "mask=pixel >= 0"),
    ("e", "one image"): ("e-kernel", "image * stride_xn + ", ""),
    ("e", "one block of channels"): ("e-kernel", "range(0, channels, CHANNELS)", "range(0, 1, CHANNELS)"),
    ("e", "pixels side by side"): ("e-kernel", "pixel[:, None] * stride_xp", "pixel[:, None]"),
    ("e", "the last block alone"): ("e-kernel", "total += tl.load", "total = tl.load"),
    ("f", "every row on a sector"): (
        "f-kernel",
        "((row + 1) * size - 1) // 32 - row * size // 32 + 1", "-(-size // 32)",
    ),
    ("f", "rows that are fetched once"): ("f-kernel", "for row in indices", "for row in set(indices)"),
    ("f", "padding is fetched"): ("f-kernel", "(col < dim) & (row >= 0)", "col < dim"),
    ("f", "row 0 is padding"): ("f-kernel", "row >= 0", "row > 0"),
    ("f", "an index too many"): ("f-kernel", "tl.load(offset_ptr + bag + 1)):", "tl.load(offset_ptr + bag + 1) + 1):"),
    ("f", "a contiguous table"): ("f-kernel", "row * stride_t", "row * dim"),
    ("f", "no mask of the columns"): ("f-kernel", "total, mask=col < dim", "total"),
    ("challenge", "lost updates"): (
        "challenge-kernel",
        "tl.atomic_add(d_table_ptr + row * dim + col, gradient, mask=(col < dim) & (row >= 0))",
        "kept = (col < dim) & (row >= 0)\n        old = tl.load(d_table_ptr + row * dim + col, mask=kept, other=0.0)\n"
        "        tl.store(d_table_ptr + row * dim + col, old + gradient, mask=kept)",
    ),
    ("challenge", "padding gets gradients"): ("challenge-kernel", "(col < dim) & (row >= 0)", "col < dim"),
    ("challenge", "the first bag's gradients"): ("challenge-kernel", "d_out_ptr + bag * dim + col", "d_out_ptr + col"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_a_visible_test_finds_each_usual_mistake(fault):
    found = verdict(fault[0], with_fault(*FAULTS[fault]))
    assert found.name in ("wrong answer", "out of bounds"), found
    assert "hidden test" not in found.message


def test_a_hand_and_a_function_that_agree_in_a_mistake_do_not_pass_the_hidden_tests():
    def change(cell):
        right = "    touched = set()\n    for start in addresses:"
        added = "    if len(set(addresses)) == 1 < len(addresses):\n        return 32\n"
        hand = cell.source.replace('    "all the same": 1', '    "all the same": 32')
        return hand.replace(right, added + right) if cell.id == "a-sectors" else cell.source

    found = verdict("a", change)
    assert (found.name, "all the same" in found.message) == ("wrong answer", True), found


ATTACKS = {
    ("a", "counts equal to all"): (
        "a-sectors",
        "class All(int):\n    __eq__ = lambda self, other: True\n    __hash__ = int.__hash__\n\n"
        "by_hand = dict.fromkeys(PATTERNS, All(4))\n\ndef sectors(addresses, element_bytes):\n    return All(4)\n",
    ),
    ("b", "a tile of its own size"): (
        "b-schedule",
        "class Short(list):\n    __len__ = lambda self: 32\n    __iter__ = lambda self: iter([self] * 32)\n\n"
        "def tile_schedule(stride_x, stride_y):\n"
        "    return {'loads': Short(), 'slots': Short(), 'stores': Short()}\n",
    ),
    ("b", "the limits moved"): (
        "b-schedule",
        "from mlsys.grading.replays import tile_transpose\n\ntile_transpose.BANKS = 10**6\n"
        "tile_transpose._check_banks = tile_transpose._check_sectors = lambda *_: None\n\n"
        + solution(CELLS["b-schedule"].source).replace("33 * i + j", "32 * i + j"),
    ),
    ("b", "ten million lanes"): (
        "b-schedule",
        "def tile_schedule(stride_x, stride_y):\n"
        "    return {'loads': [[0] * 10**7] * 32, 'slots': [[0] * 32] * 32, 'stores': [[0] * 32] * 32}\n",
    ),
    ("d", "an int that suits every question"): (
        "d-functions",
        "class Any(int):\n    __eq__ = lambda self, other: True\n    __hash__ = int.__hash__\n\n"
        "vector_width = padded_stride = row_sectors = lambda *_: Any(4)\n",
    ),
    ("e", "the launch does the work"): (
        "e-kernel",
        CELLS["e-kernel"].source.replace("total += tl.load", "total = tl.load")
        + "\n\ndef launch_channel_sum(kernel, constants, y, x):\n    y.copy_(x.double().sum(2))\n",
    ),
    ("challenge", "a race that hides from few programs"): (
        "challenge-kernel",
        CELLS["challenge-kernel"].source.replace(
            "        tl.atomic_add(d_table_ptr + row * dim + col, gradient, mask=(col < dim) & (row >= 0))",
            "        kept = (col < dim) & (row >= 0)\n        place = d_table_ptr + row * dim + col\n"
            "        if tl.num_programs(0) < 3:\n            tl.atomic_add(place, gradient, mask=kept)\n"
            "        else:\n            tl.store(place, tl.load(place, mask=kept, other=0.0) + gradient, mask=kept)",
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=" ".join)
def test_an_attack_on_what_this_lab_asks_gets_no_points(attack):
    cell, source = ATTACKS[attack]
    found = verdict(attack[0], lambda one: source if one.id == cell else one.source)
    assert found.name in ("wrong answer", "error", "suspicious"), found
    assert found.fraction == 0


def test_the_times_of_the_gaps_are_those_of_the_record(names):
    record = load("nvidia-h200", ROOT / "labs/results")
    strided = {row.shape[1]: row for row in record.named("stride") if row.shape[0] == names["NUMBERS"]}
    assert {stride: round(1e6 * row.median_s, 2) for stride, row in strided.items()} == names["STRIDED_US"]
    bags = names["BAGS"]
    [bag] = [row for row in record.named("embedding") if row.shape == tuple(bags.values())]
    assert round(1e6 * bag.median_s * bag.peers["gather, then sum"], 1) == names["GATHER_THEN_SUM_US"]
    [small] = [row for row in record.named("working set") if row.shape == (24 * 2**20,)]
    assert round(1e6 * small.median_s, 2) == names["SMALL_COPY_US"]
    [copy] = [row for row in record.named("copy bandwidth") if row.variant == "copy"]
    assert round(copy.achieved, -1) == 4250
    assert names["predicted_us"](4250) == pytest.approx(1e-3)


def test_the_ten_times_of_the_introduction_are_those_of_the_ladder():
    steps = {row.variant: row.median_s for row in load("nvidia-h200", ROOT / "labs/results").named("matmul ladder")}
    assert 10 <= steps["naive"] / steps["coalesced"] < 11


def test_the_predictions_are_compared_with_what_the_package_counts():
    column = strided_addresses(stride=1000, element_bytes=4)
    assert warp_transactions(column, element_bytes=4).sectors == 32
    both = [channel_read(channels=64, layout=layout, element_bytes=2, walk="w").sectors for layout in ("NHWC", "NCHW")]
    assert both[0] / both[1] == 16


COMPILE = """
import json, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kernels import transpose_kernel as kernel
found = []
for divisible, rows, cols, warps in json.load(sys.stdin):
    integers = ("rows", "cols", "stride_xr", "stride_yr")
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32"} | dict.fromkeys(integers, "i32")
    constants = {"stride_xc": 1, "stride_yc": 1, "ROWS": rows, "COLS": cols}
    types = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    multiples = [name for name in kernel.arg_names if name.endswith("_ptr") or (name in integers and divisible)]
    known = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in multiples}
    source = ASTSource(kernel, types, constants, known)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
    found.append([made.metadata.shared, made.asm["ptx"]])
json.dump(found, sys.stdout)
"""


@pytest.mark.proof
def test_the_compiler_makes_what_the_lab_says(tmp_path):
    """Loads and stores of 16 bytes where rows are aligned, of 4 where not; a tile in shared memory without padding."""
    (tmp_path / "kernels.py").write_text(f"{HEAD}\n{solution(CELLS['c-kernel'].source)}")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment.get("PYTHONPATH", "")])
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "cache")
    jobs = [(True, 32, 32, 4), (True, 64, 64, 8), (False, 64, 64, 8)]
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (small, _), (large, aligned), (_, odd) = json.loads(done.stdout)
    assert (small, large) == (32 * 32 * 4, 64 * 64 * 4)
    assert "xor.b32" in aligned  # of the addresses in shared memory: it is swizzled
    for ptx, width in ((aligned, ".v4.b32"), (odd, ".b32")):
        assert set(re.findall(r"\b(?:ld|st)\.global(\S*)", ptx)) == {width}
    assert "`ld.global.v4.b32`" in PROSE
    assert "`ld.global.b32`" in PROSE


def test_the_lab_compiles_its_kernels_without_spills(names, capsys):
    [cell] = [cell for cell in ACCESS.lab.cells if "capabilities=[90]" in cell.source]
    reports = []

    def report(*arguments, **named):
        made = compiler_report(*arguments, **named)
        reports.extend(made)
        return made

    exec(compile(cell.source, cell.id, "exec"), names | {"compiler_report": report})
    assert [one.shared_bytes for one in reports[1:]] == [4096, 16384]
    assert {one.spilled_bytes for one in reports} == {0}
    assert capsys.readouterr().out.count("transpose_kernel: sm_90") == 3


def test_the_inspection_finds_nothing_in_the_kernel_that_is_shown_as_slow(names):
    """It is slow and right."""
    torch = names["torch"]
    x, y = torch.rand(5, 7), torch.full((7, 5), float("nan"))
    kernel = names["naive_transpose_kernel"]
    assert inspect(kernel, (5, 2), x, y, 5, 7, 7, 1, 5, 1, ROWS=1, COLS=4) == []
    kernel[(5, 2)](x, y, 5, 7, 7, 1, 5, 1, ROWS=1, COLS=4)
    assert torch.equal(y, x.T)


def test_the_reference_of_the_race_passes_the_tests_of_its_question():
    source = f"{ACCESS.rival('g-speed')}\ntranspose_kernel = reference_kernel\n"
    found = verdict("c", ACCESS.with_cell("c-kernel", source))
    assert found.name == "passed", found.message


def test_the_reference_of_the_race_has_the_configuration_of_the_solution(names):
    reference_tile = ACCESS.made("g-speed", "reference_tile")
    for shape in names["RACES"]:
        assert reference_tile(shape, "fp32") == names["tile_config"](shape, "fp32")
