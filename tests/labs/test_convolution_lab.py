import runpy

import pytest
import torch
from helpers.known_lab import HEAD, ROOT, KnownLab

from mlsys import ops
from mlsys.bench.run import lab_names
from mlsys.grading.hazards.inspection import inspect
from mlsys.grading.kernels.compiler_report import compiler_report

CONVOLUTION = KnownLab("convolution")
verdict, with_fault = CONVOLUTION.verdict, CONVOLUTION.with_fault
CELLS = CONVOLUTION.cells


@pytest.fixture(scope="module")
def names():
    """What the lab's setup and solutions define, with kernels for the interpreter."""
    return lab_names(ROOT / "labs/convolution/lab.py")


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("question", ["a", "b", "c", "d", "e", "challenge"])
def test_the_solution_passes_whatever_the_hidden_tests_draw(question, seed):
    found = verdict(question, seed=seed)
    assert found.name == "passed", found.message


COLUMNS = "(col >= 0) & (col < W) & "
FAULTS = {  # question, what: right, wrong
    ("a", "rounded up"): ("(size + 2 * padding - taps) // stride + 1", "-(-(size + 2 * padding - taps) // stride) + 1"),
    ("a", "a border on one side"): ("(size + 2 * padding - taps)", "(size + padding - taps)"),
    ("a", "windows written only"): ("+ 2 * windows * itemsize", "+ windows * itemsize"),
    ("a", "no bias"): ("(4 * result + k)", "4 * result"),
    ("b", "columns before channels"): ("j // c % taps", "j % taps"),
    ("b", "the stride of the window"): ("m % places * stride - padding", "m % places - padding"),
    ("b", "no border"): ("inside else None", "True else None"),
    ("c", "no mask of the columns"): (COLUMNS, ""),
    ("c", "no mask of the rows above"): ("(row >= 0) & ", ""),
    ("c", "no mask of the rest of j"): ("taken = (r < R)[:, None] & (k < K)", "taken = (r < r + 1)[:, None] & (k < K)"),
    ("c", "no border"): ("p * STRIDE - PADDING", "p * STRIDE"),
    ("c", "a stride of one"): ("q * STRIDE - PADDING", "q - PADDING"),
    ("c", "columns for rows"): ("PADDING)[:, None] + r[None, :]", "PADDING)[:, None] + s[None, :]"),
    ("c", "strides of channels last"): ("(c * stride_xc)[None, :]", "c[None, :]"),
    ("c", "the filters' strides in the images"): ("row * stride_xh", "row * stride_fr"),
    ("c", "rows of an image without gaps"): ("row * stride_xh", "row * stride_xw * W"),
    ("c", "rows of a filter without gaps"): ("* stride_fr", "* stride_fs * S"),
    ("c", "rows of the result without gaps"): ("p * stride_yp", "p * stride_yq * Q"),
    ("d", "rows of an image without gaps"): ("row * stride_xh", "row * stride_xw * W"),
    ("d", "rows of a filter without gaps"): ("* stride_fr", "* stride_fs * S"),
    ("d", "rounded before the bias"): (
        "acc += tl.load(bias_ptr",
        "acc = acc.to(y_ptr.dtype.element_ty).to(tl.float32)\n    acc += tl.load(bias_ptr",
    ),
    ("c", "strides of a contiguous result"): ("(k * stride_yk)[None, :]", "k[None, :]"),
    ("c", "no mask of the filters"): ("(r < R)[:, None] & (k < K)[None, :]", "(r < R)[:, None] & (k < k + 1)[None, :]"),
    ("c", "one image"): ("n = (m // (P * Q)).to(tl.int64)", "n = (m * 0).to(tl.int64)"),
    ("c", "a sum in float16"): ("acc = tl.dot(a, b, acc,", "acc = acc.to(tl.float16).to(tl.float32) + tl.dot(a, b,"),
    ("d", "the first group's channels"): ("n * stride_xn + group * C * stride_xc", "n * stride_xn"),
    ("d", "the first group's filters"): ("(group * K + k) * stride_fk", "k * stride_fk"),
    ("d", "the first group's bias"): ("bias_ptr + group * K + k", "bias_ptr + k"),
    ("d", "the first group's result"): ("((group * K + k) * stride_yk)", "(k * stride_yk)"),
    ("d", "always ReLU"): ("if RELU:", "if True:"),
    ("d", "the sum rounded before the bias"): ("acc += tl.load", "acc = (acc * 64).to(tl.int32) / 64 + tl.load"),
    ("e", "no mask of the columns"): (" & (col + s >= 0) & (col + s < W)", ""),
    ("e", "taps never end"): ("s = tl.where(c == C, s + 1, s)", "s = s + 1"),
    ("e", "rows never end"): ("r = tl.where(s == S, r + 1, r)", "r = r + 0"),
    ("e", "the columns go on"): ("s = tl.where(s == S, 0, s)", "s = s + 0"),
    ("e", "a filter of one tap"): ("(k * (R * S * C))[None, :]", "(k * C)[None, :]"),
    ("e", "tiles counted along pixels"): ("tl.cdiv(K, TILE_N)", "K // TILE_N"),
    ("e", "no ReLU"): ("acc = tl.maximum(acc, 0.0)", "acc = acc * 1.0"),
    ("challenge", "no mask of the channels"): ("inside[:, None] & (c < C)[None, :]", "inside[:, None]"),
    ("challenge", "one filter"): ("f_ptr + (r * S + s) * C + c", "f_ptr + c"),
    ("challenge", "no stride"): ("m % Q * STRIDE", "m % Q"),
}  # fmt: skip
SOLUTIONS = {"a": "a-counts", "b": "b-element"}


@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_a_faulty_answer_is_found_by_a_visible_test(fault):
    question, (right, wrong) = fault[0], FAULTS[fault]
    found = verdict(question, with_fault(SOLUTIONS.get(question, f"{question}-kernel"), right, wrong))
    assert found.name in ("wrong answer", "out of bounds"), found
    assert "hidden test" not in found.message


def test_a_sum_in_half_precision_is_found_in_every_kernel_that_keeps_one():
    for question in ("d", "e", "challenge"):
        right = "acc = tl.dot(a, b, acc," if question != "challenge" else "acc += "
        wrong = "acc = acc.to(tl.float16).to(tl.float32) + tl.dot(a, b,"
        if question == "challenge":
            wrong = "acc = acc.to(tl.float16).to(tl.float32) + "
        found = verdict(question, with_fault(f"{question}-kernel", right, wrong))
        assert found.name == "wrong answer", (question, found)


ATTACKS = {
    ("a", "numbers equal to all"): (
        "a-counts",
        "class All(int):\n    __eq__ = lambda self, other: True\n    __ne__ = lambda self, other: False\n"
        "    __hash__ = int.__hash__\n\n"
        "def output_size(*layer):\n    return All(3)\n\n"
        "multiply_adds = copied_bytes = implicit_bytes = separate_bytes = fused_bytes = output_size\n",
    ),
    ("b", "a place equal to all"): (
        "b-element",
        "class All(tuple):\n    __eq__ = lambda self, other: True\n    __ne__ = lambda self, other: False\n"
        "    __hash__ = tuple.__hash__\n\n"
        "def window_element(*element):\n    return All((0, 0, 0, 0))\n",
    ),
    ("c", "the library's result replaced"): (
        "c-kernel",
        "def right_conv(x, f, *how, **more):\n    return torch.zeros(1)\n\n"
        "launch_conv = launch_conv_first = lambda kernel, constants, y, *inputs: y.zero_()\n\n"
        + CELLS["c-kernel"].source.split("### BEGIN SOLUTION")[0].rstrip()
        + "\n    pass\n",
    ),
    ("e", "refusals switched off and the work left to the library"): (
        "e-kernel",
        "def refuse(*arguments):\n    return None\n\n"
        "def stepping_kernel(x, f, bias, y, *sizes, STRIDE, PADDING, **constants):\n"
        "    image, filters = x.permute(0, 3, 1, 2), f.permute(0, 3, 1, 2)\n"
        "    y.copy_(torch.conv2d(image, filters, bias, STRIDE, PADDING).relu().permute(0, 2, 3, 1))\n",
    ),
    ("gap", "a cause equal to all"): (
        "gap-causes",
        "class All(str):\n    __eq__ = lambda self, other: True\n    __hash__ = str.__hash__\n\n"
        "cause_1 = cause_2 = cause_3 = cause_4 = All('overlap')\n",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS, ids=" ".join)
def test_an_attack_scores_nothing(attack):
    cell_id, source = ATTACKS[attack]
    found = verdict(attack[0], CONVOLUTION.with_cell(cell_id, source))
    assert found.name != "passed", found
    assert found.fraction == 0


def test_the_counts_are_those_of_the_package(names):
    """`mlsys.ops` counts the same work by formulas of its own."""
    for n, size, c, k, taps, stride, padding in [
        (32, 56, 64, 256, 1, 1, 0),
        (2, 14, 32, 48, 3, 2, 1),
        (1, 9, 5, 7, 4, 3, 2),
    ]:
        layer = (n, size, c, k, taps, stride, padding)
        window = {"kernel": taps, "stride": stride, "padding": padding, "dtype": "fp16"}
        op = ops.conv2d(n=n, c_in=c, h=size, w=size, c_out=k, **window)
        assert 2 * names["multiply_adds"](*layer) == op.flop_count
        assert names["implicit_bytes"](*layer, 2) == op.read_count + op.write_count
        copy = ops.im2col(n=n, c_in=c, h=size, w=size, **window)
        assert names["copied_bytes"](*layer, 2) == op.read_count + op.write_count + 2 * copy.write_count


def test_the_reference_of_the_race_passes_the_tests_of_its_question():
    source = f"{CONVOLUTION.rival('f-speed')}\nstepping_kernel = reference_kernel\n"
    found = verdict("e", CONVOLUTION.with_cell("e-kernel", source))
    assert found.name == "passed", found.message


def test_the_reference_of_the_race_has_the_configuration_of_the_solution(names):
    reference_config = CONVOLUTION.made("f-speed", "reference_config")
    for shape in names["RACES"]:
        assert reference_config(shape, "fp16") == names["config"](shape, "fp16")


def test_the_races_keep_the_size_of_the_images_and_agree_with_the_kernel(names):
    draw = names["grading"].Draws("this test")
    for taps in (1, 3):
        x, f, bias = (one.float() for one in names["layer_inputs"](draw, (2, 5, 32, 20, taps), "fp16"))
        y = torch.full((2, 5, 5, 20), float("nan"))
        constants = {"TILE_M": 16, "TILE_N": 16, "TILE_K": 16}
        names["launch_layer"](names["stepping_kernel"], constants, y, x, f, bias)
        torch.testing.assert_close(y, names["right_layer"](x, f, bias), rtol=1e-4, atol=1e-4)
        assert names["right_layer"](x, f, bias).is_contiguous()


LAYER = {"x": (2, 6, 5, 8), "f": (6, 3, 3, 8), "y": (2, 6, 5, 6)}
REFUSED = {
    "a stride of 0": ({}, {"STRIDE": 0}, "STRIDE is 0: give an int, 1 or more"),
    "a padding below 0": ({}, {"PADDING": -1}, "PADDING is -1"),
    "half a stride": ({}, {"STRIDE": 1.5}, r"STRIDE is 1\.5"),
    "a double": ({"x": torch.float64}, {}, r"x is torch\.float64"),
    "two dtypes": ({"f": torch.float16}, {}, r"f is torch\.float16, x is torch\.float32"),
    "three sides": ({"x": (6, 5, 8)}, {}, r"x has shape \(6, 5, 8\): give four sides"),
    "no images": ({"x": (0, 6, 5, 8)}, {}, "each 1 or more"),
    "other channels": ({"f": (6, 3, 3, 4)}, {}, "8 channels, 6 filters of 4 channels, 1 groups"),
    "a large filter": ({"f": (6, 9, 3, 8)}, {}, "a filter of 9 x 3 does not fit 6 x 5 pixels with padding 1"),
    "a result of another size": (
        {"y": (2, 6, 6, 6)},
        {},
        r"y is .* of shape \(2, 6, 6, 6\): the result is .* of shape \(2, 6, 5, 6\)",
    ),
    "a result of another dtype": (
        {"y": torch.float16},
        {},
        r"y is torch\.float16 of .*: the result is torch\.float32 of",
    ),
    "a tile that is no power of two": ({}, {"TILE_N": 24}, "TILE_N is 24: give a power of two, 16 or more"),
    "a tile that is too small": ({}, {"TILE_K": 8}, "TILE_K is 8: give a power of two, 16 or more"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_kernel_does_not_take_is_refused_by_name(names, case):
    changed, numbers, says = REFUSED[case]
    tensors = {}
    for name, shape in LAYER.items():
        change = changed.get(name, torch.float32)
        tensors[name] = torch.zeros(change) if isinstance(change, tuple) else torch.zeros(shape, dtype=change)
    constants = {"STRIDE": 1, "PADDING": 1, "TILE_M": 16, "TILE_N": 16, "TILE_K": 16} | numbers
    with pytest.raises(ValueError, match=says):
        names["launch_conv"](names["conv_kernel"], constants, tensors["y"], tensors["x"], tensors["f"])


@pytest.mark.parametrize(
    "bias", [torch.zeros(5), torch.zeros(6).half(), torch.zeros(12)[::2]], ids=["5", "half", "gaps"]
)
def test_a_bias_that_does_not_fit_is_refused(names, bias):
    x, f, y = (torch.zeros(shape) for shape in LAYER.values())
    constants = {"STRIDE": 1, "PADDING": 1, "GROUPS": 1, "RELU": 1} | names["TILES"]
    for launch, kernel in (("launch_grouped", "grouped_kernel"), ("launch_stepping", "stepping_kernel")):
        numbers = {name: constants[name] for name in constants if launch == "launch_grouped" or name != "GROUPS"}
        with pytest.raises(ValueError, match="bias is torch.*a number for each of the 6 filters"):
            names[launch](names[kernel], numbers | {"TILE_K": 16}, y, x, f, bias)


def test_what_is_missing_or_does_not_fit_is_named_before_a_result_is_made(names):
    x, f = torch.zeros(1, 4, 4, 3), torch.zeros(2, 3, 6, 3)
    with pytest.raises(ValueError, match="a filter of 3 x 6 does not fit 4 x 4 pixels"):
        names["run"](names["launch_conv"], names["conv_kernel"], {"STRIDE": 1, "PADDING": 0} | names["TILES"], x, f)
    with pytest.raises(ValueError, match="the constants lack TILE_M, TILE_N, TILE_K"):
        names["launch_conv"](names["conv_kernel"], {"STRIDE": 1, "PADDING": 0}, torch.zeros(1, 2, 2, 2), x, f[:, :, :3])
    depthwise = torch.ones(3, 3, 16)
    numbers = {"STRIDE": 1, "PADDING": 1, "PIXELS": 16, "CHANNELS": 16}
    x = torch.ones(1, 4, 4, 16)
    found = names["run"](names["launch_depthwise"], names["depthwise_kernel"], numbers, x, depthwise)
    assert float(found[0, 1, 1, 0]) == 9


def test_the_stepping_kernel_refuses_gaps_and_steps_that_do_not_divide_the_channels(names):
    constants = {"STRIDE": 1, "PADDING": 1, "TILE_M": 16, "TILE_N": 16, "TILE_K": 16}
    x, f, y = (torch.zeros(shape) for shape in LAYER.values())
    launch, kernel = names["launch_stepping"], names["stepping_kernel"]
    with pytest.raises(ValueError, match="TILE_K is 16, and there are 8 channels"):
        launch(kernel, constants, y, x, f, torch.zeros(6))
    first = torch.zeros(2, 8, 6, 5).permute(0, 2, 3, 1)
    with pytest.raises(ValueError, match="x has strides .* channels last, without gaps"):
        launch(kernel, constants, y, first, f, torch.zeros(6))


def test_groups_must_divide_channels_and_filters(names):
    constants = {"GROUPS": 4, "STRIDE": 1, "PADDING": 1, "RELU": 1, "TILE_M": 16, "TILE_N": 16, "TILE_K": 16}
    x, f, y = torch.zeros(2, 6, 5, 8), torch.zeros(6, 3, 3, 2), torch.zeros(2, 6, 5, 6)
    with pytest.raises(ValueError, match="8 channels, 6 filters of 2 channels, 4 groups: groups must divide both"):
        names["launch_grouped"](names["grouped_kernel"], constants, y, x, f, torch.zeros(6))


def test_the_inspection_finds_nothing_in_the_solutions(tmp_path):
    """Right after the lab's own launches, on shapes where every edge is ragged."""
    cells = ("setup", "launches", "race-given", "c-kernel", "d-kernel", "e-kernel", "challenge-kernel")
    module = tmp_path / "kernels.py"
    module.write_text(HEAD + "\n".join(CELLS[cell].source for cell in cells))
    names = runpy.run_path(str(module))
    found = []

    class Inspecting:
        def __init__(self, kernel):
            self.kernel = kernel

        def __getitem__(self, grid):
            return lambda *arguments, **constants: found.extend(inspect(self.kernel, grid, *arguments, **constants))

    tiles = {"STRIDE": 2, "PADDING": 1, "TILE_M": 16, "TILE_N": 16, "TILE_K": 16}
    x, f, bias, y = torch.randn(2, 5, 4, 16), torch.randn(20, 3, 3, 16), torch.randn(20), torch.empty(2, 3, 2, 20)
    names["launch_conv"](Inspecting(names["conv_kernel"]), tiles, y, x, f)
    names["launch_conv_first"](Inspecting(names["conv_kernel"]), tiles, y, x, f)
    names["launch_stepping"](Inspecting(names["stepping_kernel"]), tiles, y, x, f, bias)
    grouped = tiles | {"GROUPS": 4, "RELU": 1}
    names["launch_grouped"](Inspecting(names["grouped_kernel"]), grouped, y, x, torch.randn(20, 3, 3, 4), bias)
    block = {"STRIDE": 2, "PADDING": 1, "PIXELS": 8, "CHANNELS": 16}
    names["launch_depthwise"](
        Inspecting(names["depthwise_kernel"]), block, torch.empty(2, 3, 2, 16), x, torch.randn(3, 3, 16)
    )
    assert found == []


def test_the_lab_compiles_its_kernels_without_spills(names, capsys):
    [cell] = [cell for cell in CONVOLUTION.lab.cells if "report.registers" in cell.source]
    reports = []

    def report(*arguments, **named):
        reports.extend(compiler_report(*arguments, **named))
        return reports[-1:]

    exec(compile(cell.source, cell.id, "exec"), names | {"compiler_report": report})
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "conv_kernel", "grouped_kernel", "stepping_kernel"
    ]  # fmt: skip
    assert {one.spilled_bytes for one in reports} == {0}
