import runpy
from types import SimpleNamespace

import pytest
import torch
from helpers.known_lab import HEAD, ROOT, KnownLab

from mlsys import ops, sparsity
from mlsys.bench.run import lab_names
from mlsys.grading.hazards.inspection import inspect
from mlsys.grading.kernels.compiler_report import compiler_report

PRECISION = KnownLab("precision")
verdict, with_fault = PRECISION.verdict, PRECISION.with_fault
CELLS = PRECISION.cells


@pytest.fixture(scope="module")
def names():
    """What the lab's setup and solutions define, with kernels for the interpreter."""
    return lab_names(ROOT / "labs/precision/lab.py")


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("question", ["a", "b", "c", "d", "e", "h", "challenge"])
def test_the_solution_passes_whatever_the_hidden_tests_draw(question, seed):
    found = verdict(question, seed=seed)
    assert found.name == "passed", found.message


FAULTS = {  # question, what: right, wrong
    ("a", "no scales"): ("(2 * n * (k // group) if group else 0)", "0"),
    ("a", "scales of four bytes"): ("2 * n * (k // group)", "4 * n * (k // group)"),
    ("a", "no results"): ("+ 2 * m * n", ""),
    ("a", "multiply-adds for FLOPs"): ("return 2 * m * n * k", "return m * n * k"),
    ("a", "both times added"): ("return max(", "return (lambda one, other: one + other)("),
    ("a", "bits for bytes"): ("(16 * bandwidth)", "(2 * bandwidth)"),
    ("b", "the plain order"): ("in enumerate([0, 2, 4, 6, 1, 3, 5, 7]))", "in enumerate(range(8)))"),
    ("b", "two's complement"): ("(weights[one] + 8) <<", "(weights[one] & 15) <<"),
    ("b", "from the other end"): ("(word >> (4 * place) & 15)", "(word >> (28 - 4 * place) & 15)"),
    ("c", "a scale for 128"): ("/ 127", "/ 128"),
    ("c", "a row of zeros"): ("scale = torch.where(scale == 0, 1.0, scale)\n    return (x", "return (x"),
    ("c", "cut off"): ("(x / scale[:, None]).round()", "(x / scale[:, None]).trunc()"),
    ("c", "a scale per row in groups"): ("parts.abs().amax(2) / 7", "(parts.abs().amax(2) * 0 + w.abs().amax()) / 7"),
    ("c", "eight codes below zero"): ("amax(2) / 7", "amax(2) / 8"),
    ("c", "the error in float16"): ("found.double(), exact.double()", "found, exact"),
    ("c", "the error of the largest"): ("(found - exact).norm()", "(found - exact).abs().max()"),
    ("d", "a sum in float32"): ("acc = tl.dot(a, b, acc, out_dtype=tl.int32)",
                                "acc = (acc.to(tl.float32) + tl.dot(a, b).to(tl.float32)).to(tl.int32)"),
    ("d", "no scale of b"): ("* a_scale[:, None] * b_scale[None, :]", "* a_scale[:, None]"),
    ("d", "scales exchanged"): ("* a_scale[:, None] * b_scale[None, :]", "* a_scale[None, :] * b_scale[:, None]"),
    ("d", "no mask of k"): ("mask=(m < M)[:, None] & (k < K)[None, :], other=0", "mask=(m < M)[:, None], other=0"),
    ("d", "strides of rows"): ("k[:, None] * stride_bk", "k[:, None]"),
    ("d", "no mask of the columns"): ("(m < M)[:, None] & (n < N)[None, :]", "(m < M)[:, None] & (n < n + 1)[None, :]"),
    ("d", "strides of a contiguous result"): ("n[None, :] * stride_yn", "n[None, :]"),
    ("d", "the sum rounded to float16"): ("acc.to(tl.float32) *", "acc.to(tl.float16).to(tl.float32) *"),
    ("e", "halves exchanged"): ("byte >> 4", "byte << 4 >> 4"),
    ("e", "weights scaled in float16"): (
        "tl.dot(x_high, high, part)\n        acc += part * scale.to(tl.float32)[None, :]",
        "tl.dot(x_low, low * scale[None, :])\n        acc += tl.dot(x_high, high * scale[None, :], part)",
    ),
    ("e", "two's complement"): ("(byte & 15).to(tl.float16) - 8", "((byte & 15 ^ 8).to(tl.float16) - 8)"),
    ("e", "the first scale for all"): ("n * (K // GROUP) + group", "n * (K // GROUP)"),
    ("e", "scaled too early"): ("acc += part * scale.to(tl.float32)[None, :]",
                                "acc = (acc + part) * scale.to(tl.float32)[None, :]"),
    ("e", "neighbors share a byte"): ("(start + GROUP // 2)[None, :]", "(start + 1)[None, :]"),
    ("e", "a sum in float16"): ("acc += part", "acc = acc.to(tl.float16).to(tl.float32) + part"),
    ("e", "no mask of the batch"): ("(m < M)[:, None] & (n < N)[None, :]", "(m < m + 1)[:, None] & (n < N)[None, :]"),
    ("e", "activations of strided rows"): ("m[:, None] * stride_xm", "m[:, None] * K"),
    ("e", "activations one by one"): ("(start + 0)[None, :] * stride_xk", "(start + 0)[None, :]"),
    ("h", "places by value"): ("-abs(group[place])", "-group[place]"),
    ("h", "the later of equals"): ("sorted(range(4), key", "sorted(range(3, -1, -1), key"),
    ("h", "values by magnitude"): ("tuple(sorted(sorted(range(4), key=lambda place: -abs(group[place]))[:2]))",
                                   "tuple(sorted(range(4), key=lambda place: -abs(group[place]))[:2])"),
    ("h", "the second group first"): ("low | high << 4", "high | low << 4"),
    ("h", "no metadata"): ("n * k * bits // 16 + n * k // 8", "n * k * bits // 16"),
    ("challenge", "the plain order"): ("8 * w + 2 * i,", "8 * w + i,"),
    ("challenge", "one bit too many"): ("0x000F000F", "0x001F000F"),
    ("challenge", "1024 taken off"): ("1032.0\n        upper", "1024.0\n        upper"),
    ("challenge", "no mask"): ("upper, mask=w < count", "upper, mask=w < w + 1"),
}  # fmt: skip
SOLUTIONS = {"a": "a-counts", "b": "b-packing", "c": "c-quantize", "h": "h-sparse"}


@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_a_faulty_answer_is_found_by_a_visible_test(fault):
    question, (right, wrong) = fault[0], FAULTS[fault]
    found = verdict(question, with_fault(SOLUTIONS.get(question, f"{question}-kernel"), right, wrong))
    assert found.name in ("wrong answer", "out of bounds"), found
    assert "hidden test" not in found.message


ATTACKS = {
    ("a", "numbers equal to all"): (
        "a-counts",
        "class All(int):\n    __eq__ = lambda self, other: True\n    __ne__ = lambda self, other: False\n"
        "    __hash__ = int.__hash__\n\n"
        "def weight_bytes(*sizes):\n    return All(3)\n\n"
        "product_bytes = product_flops = product_time = last_batch = weight_bytes\n",
    ),
    ("b", "a word equal to all"): (
        "b-packing",
        "class All(int):\n    __eq__ = lambda self, other: True\n    __ne__ = lambda self, other: False\n"
        "    __hash__ = int.__hash__\n    __repr__ = lambda self: '0'\n\n"
        "def pack(weights):\n    return All(0)\n\n"
        "def unpack(word):\n    return [All(0)] * 8\n",
    ),
    ("c", "infinitely fine scales"): (
        "c-quantize",
        "def quantize_rows(x):\n    return torch.zeros_like(x).to(torch.int8), x.abs().amax(1) / 127\n\n"
        "def quantize_groups(w, group):\n    return x, x\n\n"
        "def relative_error(found, exact):\n    return float('nan')\n",
    ),
    ("c", "an error equal to all"): (
        "c-quantize",
        CELLS["c-quantize"].source.replace("### BEGIN SOLUTION", "").replace("### END SOLUTION", "")
        + "\n\nclass Near(float):\n    __sub__ = __rsub__ = lambda self, other: 0.0\n\n"
        "def relative_error(found, exact):\n    return Near(0.5)\n",
    ),
    ("c", "codes that are not rounded where a test does not know them"): (
        "c-quantize",
        CELLS["c-quantize"].source.replace("### BEGIN SOLUTION", "").replace("### END SOLUTION", "")
        + "\n\nby_hand = quantize_rows\n\n"
        "def quantize_rows(x):\n"
        "    scale = x.abs().amax(1) / 127\n"
        "    codes = x.double() / scale.double()[:, None]\n"
        "    codes = torch.where(codes.abs() > 126.999, codes.sign() * 127, codes)\n"
        "    return by_hand(x) if x.shape[1] == 4 else (codes, scale)\n",
    ),
    ("d", "the right product replaced"): (
        "d-kernel",
        "def right_int8(*inputs):\n    return torch.zeros(1)\n\n"
        "launch_int8 = launch_int8_turned = lambda kernel, constants, y, *inputs: y.zero_()\n\n"
        + CELLS["d-kernel"].source.split("### BEGIN SOLUTION")[0].rstrip()
        + "\n    pass\n",
    ),
    ("e", "refusals switched off and the work left to the library"): (
        "e-kernel",
        "def refuse(*arguments, **more):\n    return None\n\n"
        "def int4_kernel(x, packed, scales, y, *sizes, **constants):\n"
        "    y.copy_(x @ whole_weights(packed, scales).half().T)\n",
    ),
    ("h", "lists equal to all"): (
        "h-sparse",
        "class All(list):\n    __eq__ = lambda self, other: True\n    __repr__ = lambda self: '[]'\n\n"
        "def keep_two(group):\n    return All([0, 1])\n\n"
        "def pack_24(row):\n    return All(), All()\n\n"
        "def bytes_24(n, k, bits):\n    return 36\n",
    ),
    ("gap", "a cause equal to all"): (
        "gap-causes",
        "class All(str):\n    __eq__ = lambda self, other: True\n    __hash__ = str.__hash__\n\n"
        "cause_1 = cause_2 = cause_3 = cause_4 = All('scales')\n",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS, ids=" ".join)
def test_an_attack_scores_nothing(attack):
    cell_id, source = ATTACKS[attack]
    found = verdict(attack[0], PRECISION.with_cell(cell_id, source))
    assert found.name != "passed", found
    assert found.fraction == 0


def test_the_counts_are_those_of_the_package(names):
    """`mlsys.ops` and `mlsys.sparsity` count the same by formulas of their own."""
    for m, n, k in [(1, 64, 96), (30, 17, 40)]:
        op = ops.matmul(m=m, n=n, k=k, dtype="fp16")
        assert names["product_bytes"](m, n, k, 16, 0) == op.read_count + op.write_count
        assert names["product_flops"](m, n, k) == op.flop_count
        for bits, dtype in ((16, "fp16"), (8, "int8"), (4, "int4")):
            share = names["bytes_24"](n, k, bits) / (n * k * bits / 8)
            assert share == pytest.approx(1 / sparsity.nm_compression(2, 4, dtype))


def test_two_of_four_is_what_the_package_stores(names):
    """The package packs the same places in its own way: the first one in the lower bits."""
    import numpy as np

    row = np.random.default_rng(1).integers(-9, 10, 64)
    stored = sparsity.NMSparse.from_dense(sparsity.prune(row[None, :]))
    values, metadata = names["pack_24"](row.tolist())
    assert values == stored.values[0].tolist()
    assert metadata == stored.metadata.tolist()


def test_packed_bytes_are_unpacked_to_the_same_codes(names):
    codes = torch.randint(-8, 8, (5, 192), dtype=torch.int8)
    ones = torch.ones(5, 3).half()
    assert torch.equal(names["whole_weights"](names["pack_bytes"](codes, 64), ones), codes.float())
    # By hand: byte 3 of the second group of 64 has weight 3 of that group in its low nibble, weight 35 in the high one.
    byte = int(names["pack_bytes"](codes, 64)[2, 32 + 3])
    assert (byte % 16 - 8, byte // 16 - 8) == (int(codes[2, 64 + 3]), int(codes[2, 64 + 35]))


RACES = {"f": ("e-kernel", "int4_kernel", "reference_kernel"), "g": ("g-kernel", "fp8_kernel", "fp8_reference")}


def test_the_reference_of_the_int4_race_passes_the_tests_of_its_question():
    source = f"{PRECISION.rival('f-speed')}\nint4_kernel = reference_kernel\n"
    found = verdict("e", PRECISION.with_cell("e-kernel", source))
    assert found.name == "passed", found.message


@pytest.mark.parametrize(
    ("question", "config", "reference", "shapes"),
    [("f", "config", "reference_config", "RACES"), ("g", "fp8_config", "fp8_reference_config", "FP8_RACES")],
)
def test_the_reference_of_a_race_has_the_configuration_of_the_solution(names, question, config, reference, shapes):
    reference_config = PRECISION.made(f"{question}-speed", reference)
    for shape in names[shapes]:
        assert reference_config(shape, "any") == names[config](shape, "any")


@pytest.mark.parametrize("sizes", [(37, 41, 70), (16, 300, 32), (150, 16, 64), (1, 1, 1)])
def test_fp8_is_multiplied_as_float32_multiplies_it(names, sizes, tmp_path):
    """The solution and the reference of the race, in the interpreter; every fp8 number is one in float32."""
    module = tmp_path / "kernels.py"
    module.write_text(HEAD + PRECISION.rival("g-speed"))
    draw = names["grading"].Draws("this test")
    a, b, scale = names["fp8_inputs"](draw, sizes, "fp8")
    fp8 = torch.float8_e4m3fn
    right = scale.double() * (a.view(fp8).double() @ b.view(fp8).double().T)
    for kernel in (names["fp8_kernel"], runpy.run_path(str(module))["fp8_reference"]):
        constants = {"TILE_M": 16, "TILE_N": 32, "TILE_K": 32}
        found = names["run"](names["launch_fp8"], kernel, constants, sizes[:2], torch.float32, a, b, scale)
        torch.testing.assert_close(found.double(), right, rtol=1e-5, atol=1e-4)


def test_the_int4_race_agrees_with_the_kernel(names):
    draw = names["grading"].Draws("this test")
    for shape in ((1, 48, 256), (19, 48, 128)):
        x, packed, scales = names["race_inputs"](draw, shape, "fp16")
        constants = {"TILE_M": 16, "TILE_N": 32}
        found = names["run"](
            names["launch_int4"], names["int4_kernel"], constants, shape[:2], torch.float16, x, packed, scales
        )
        torch.testing.assert_close(found, names["right_race"](x, packed, scales), rtol=4e-3, atol=4e-2)


INT8 = {"a": (9, 40), "b": (7, 40), "y": (9, 7), "a_scale": (9,), "b_scale": (7,)}
REFUSED_INT8 = {
    "float16 inputs": ({"a": torch.float16}, {}, r"a is torch\.float16: give int8"),
    "another depth": ({"b": (7, 41)}, {}, r"b has shape \(7, 41\): give \(7, 40\)"),
    "no rows": ({"a": (0, 40), "y": (0, 7), "a_scale": (0,)}, {}, "each side 1 or more"),
    "a result of another size": ({"y": (9, 8)}, {}, r"y has shape \(9, 8\): give \(9, 7\)"),
    "a result in int32": ({"y": torch.int32}, {}, r"y is torch\.int32: give float32 or float16"),
    "scales in float64": ({"b_scale": torch.float64}, {}, r"b_scale is torch\.float64: give float32"),
    "one scale": ({"a_scale": (1,)}, {}, r"a_scale has shape \(1,\): give \(9,\)"),
    "three dimensions": ({"a": (3, 3, 40)}, {}, r"give \(M, K\) and \(N, K\)"),
    "steps of 16": ({}, {"TILE_K": 16}, "TILE_K is 16: give a power of two, 32 or more"),
    "a tile of 24": ({}, {"TILE_M": 24}, "TILE_M is 24: give a power of two, 16 or more"),
}


@pytest.mark.parametrize("case", REFUSED_INT8)
def test_what_the_int8_kernel_does_not_take_is_refused_by_name(names, case):
    changed, numbers, says = REFUSED_INT8[case]
    dtypes = {"a": torch.int8, "b": torch.int8}
    made = {}
    for name, shape in INT8.items():
        change = changed.get(name, shape)
        dtype = change if isinstance(change, torch.dtype) else dtypes.get(name, torch.float32)
        made[name] = torch.zeros(shape if isinstance(change, torch.dtype) else change, dtype=dtype)
    constants = {"TILE_M": 16, "TILE_N": 16, "TILE_K": 32} | numbers
    with pytest.raises(ValueError, match=says):
        names["launch_int8"](
            names["int8_kernel"], constants, *(made[one] for one in ("y", "a", "b", "a_scale", "b_scale"))
        )


@pytest.mark.parametrize(
    ("shapes", "dtypes", "says"),
    [
        (
            ((3, 64), (5, 32), (5, 3), (3, 5)),
            {},
            "64 columns in 3 groups: give groups of equal size, a power of two, 32",
        ),
        (((3, 64), (5, 32), (5, 4), (3, 5)), {}, "64 columns in 4 groups"),
        (((3, 64), (5, 64), (5, 1), (3, 5)), {}, r"packed has shape \(5, 64\): give \(5, 32\)"),
        (((3, 64), (5, 32), (5, 2), (3, 6)), {}, r"y has shape \(3, 6\): give \(3, 5\)"),
        (((3, 64), (5, 32), (5, 2), (3, 5)), {0: torch.float32}, r"x is torch\.float32: give float16"),
        (((3, 64), (5, 32), (5, 2), (3, 5)), {1: torch.int8}, r"packed is torch\.int8: give uint8"),
        (((3, 64), (5, 32), (5, 2), (3, 5)), {2: torch.float32}, r"scales is torch\.float32: give float16"),
        (((64,), (5, 32), (5, 2), (3, 5)), {}, "must have two dimensions"),
    ],
)
def test_what_the_int4_kernel_does_not_take_is_refused_by_name(names, shapes, dtypes, says):
    usual = [torch.float16, torch.uint8, torch.float16, torch.float16]
    x, packed, scales, y = (
        torch.zeros(shape, dtype=dtypes.get(place, usual[place])) for place, shape in enumerate(shapes)
    )
    with pytest.raises(ValueError, match=says):
        names["launch_int4"](names["int4_kernel"], {"TILE_M": 16, "TILE_N": 16}, y, x, packed, scales)


def test_a_gpu_that_is_too_old_waits_for_a_newer_one(names, monkeypatch):
    tensor = SimpleNamespace(is_cuda=True, device="cuda:0")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    for capability, waits in (((7, 5), ["int8", "fp8"]), ((8, 0), ["fp8"]), ((8, 9), [])):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, found=capability: found)
        for needed, what in (((8, 0), "int8"), ((8, 9), "fp8")):
            if what in waits:
                with pytest.raises(
                    names["grading"].NeedsGpu, match=f"Triton multiplies {what} from compute capability"
                ):
                    names["wait_for"](needed, what, tensor)
            else:
                names["wait_for"](needed, what, tensor)
    names["wait_for"]((8, 9), "fp8", torch.zeros(1))


def test_the_int4_kernel_refuses_packed_weights_with_gaps(names):
    x, y = torch.zeros(3, 64).half(), torch.zeros(3, 5).half()
    packed, scales = torch.zeros(5, 64, dtype=torch.uint8)[:, ::2], torch.zeros(5, 2).half()
    with pytest.raises(ValueError, match="packed has strides .*: give it contiguous"):
        names["launch_int4"](names["int4_kernel"], {"TILE_M": 16, "TILE_N": 16}, y, x, packed, scales)


def test_the_inspection_finds_nothing_in_the_solutions(tmp_path):
    """Right after the lab's own launches, on shapes where every edge is ragged."""
    cells = ("setup", "launches", "e-given", "g-given", "challenge-given")
    cells += ("d-kernel", "e-kernel", "g-kernel", "challenge-kernel")
    module = tmp_path / "kernels.py"
    module.write_text(HEAD + "\n".join(CELLS[cell].source for cell in cells))
    names = runpy.run_path(str(module))
    found = []

    class Inspecting:
        def __init__(self, kernel):
            self.kernel = kernel

        def __getitem__(self, grid):
            return lambda *arguments, **constants: found.extend(inspect(self.kernel, grid, *arguments, **constants))

    tiles = {"TILE_M": 16, "TILE_N": 16, "TILE_K": 32}
    a, b = (torch.randint(-127, 128, (rows, 45), dtype=torch.int8) for rows in (19, 21))
    inputs = a, b, torch.rand(19), torch.rand(21)
    names["launch_int8"](Inspecting(names["int8_kernel"]), tiles, torch.empty(19, 21), *inputs)
    names["launch_int8_turned"](Inspecting(names["int8_kernel"]), tiles, torch.empty(19, 21), *inputs)
    packed, scales = torch.randint(0, 256, (21, 32), dtype=torch.uint8), torch.rand(21, 2).half()
    names["launch_int4"](
        Inspecting(names["int4_kernel"]), {"TILE_M": 16, "TILE_N": 16}, torch.empty(19, 21).half(),
        torch.randn(19, 64).half(), packed, scales,
    )  # fmt: skip
    a, b = (torch.randn(rows, 45).to(torch.float8_e4m3fn).view(torch.uint8) for rows in (19, 21))
    names["launch_fp8"](Inspecting(names["fp8_kernel"]), tiles, torch.empty(19, 21), a, b, torch.rand(1))
    words = torch.randint(-(2**31), 2**31, (11,)).to(torch.int32)
    names["launch_unpack"](Inspecting(names["unpack_kernel"]), {"BLOCK": 4}, torch.empty(88).half(), words)
    assert found == []


@pytest.mark.proof
def test_the_lab_compiles_its_kernels_without_spills(names, capsys):
    [cell] = [cell for cell in PRECISION.lab.cells if "report.registers" in cell.source]
    reports = []

    def report(*arguments, **named):
        reports.extend(compiler_report(*arguments, **named))
        return reports[-1:]

    exec(compile(cell.source, cell.id, "exec"), names | {"compiler_report": report})
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["int8_kernel", "int4_kernel"]
    assert {one.spilled_bytes for one in reports} == {0}
