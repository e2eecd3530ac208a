import math
import re
import runpy
from contextlib import nullcontext

import pytest
import torch
from helpers.known_lab import ROOT, KnownLab

from mlsys.bench.run import lab_names
from mlsys.core.cells import run_cell
from mlsys.errors import UserError
from mlsys.grading import Draws
from mlsys.grading.checks.tolerances import errors_and_tolerance
from mlsys.grading.draws import SEED_VARIABLE
from mlsys.grading.kernels.compiler_report import compiler_report

FUSION = KnownLab("fusion")
verdict, with_fault = FUSION.verdict, FUSION.with_fault
CELLS = FUSION.cells
ANY_DEVICE = [name for name in FUSION.code_questions if FUSION.lab.question(name).device == "any"]
CAPABILITIES = (75, 80, 90)


@pytest.fixture(scope="module")
def names():
    """What the lab's setup and solutions define, with kernels for the interpreter."""
    return lab_names(ROOT / "labs/fusion/lab.py")


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("question", [name for name in ANY_DEVICE if name != "gap"])
def test_the_solution_passes_whatever_the_hidden_tests_draw(question, seed):
    found = verdict(question, seed=seed)
    assert found.name == "passed", found.message


FAULTS = {  # question, what, right, wrong
    ("b", "no mask along the columns"): ("in_cols = col < cols", "in_cols = col < cols + BLOCK"),
    ("b", "a row of tiles too far"): ("// across * ROWS", "// across * BLOCK"),
    ("b", "unit column stride"): ("col * stride_xc", "col"),
    ("b", "rows' stride of x in y"): ("row * stride_yr", "row * stride_xr"),
    ("b", "no relu"): ("tl.maximum(x, 0.0)", "x"),
    ("b", "Python's max"): ("tl.maximum(x, 0.0)", "max(x, 0.0)"),
    ("b", "epsilon outside the root"): ("tl.rsqrt(var + epsilon)", "(tl.rsqrt(var) + epsilon)"),
    ("c", "zero beyond the edge"): ('other=-float("inf")', "other=0.0"),
    ("c", "no maximum"): ("tl.exp(x - tl.max(x, 1)[:, None])", "tl.exp(x)"),
    ("c", "the maximum of the block"): ("tl.max(x, 1)[:, None]", "tl.max(tl.max(x, 1), 0)"),
    ("c", "unit column stride"): ("col * stride_xc", "col"),
    ("c", "the store's mask"): ("y_ptr.dtype.element_ty), mask=inside", "y_ptr.dtype.element_ty), mask=row < rows"),
    ("d", "sum not rescaled"): ("total * tl.exp(highest - base)", "total"),
    ("d", "minus infinity minus itself"): ('tl.where(higher == -float("inf"), 0.0, higher)', "higher"),
    ("d", "only one block"): ("range(0, cols, BLOCK)", "range(0, BLOCK, BLOCK)"),
    ("e", "padding in the variance"): ("tl.where(in_cols, x - mean[:, None], 0.0)", "x - mean[:, None]"),
    ("e", "mean over the block"): ("tl.sum(x, 1) / cols", "tl.sum(x, 1) / BLOCK"),
    ("e", "variance over the block"): ("centred, 1) / cols", "centred, 1) / BLOCK"),
    ("e", "no shift"): ("* gamma + beta", "* gamma"),
    ("f", "no bias"): ("v = x + tl.load", "v = x + 0 * tl.load"),
    ("f", "six taken for infinity"): ("tl.minimum(tl.abs(v), 6.0)", "tl.minimum(tl.abs(v), 2.0)"),
    ("challenge", "mean over the block"): ("tl.sum(w * h, 0) / cols", "tl.sum(w * h, 0) / BLOCK"),
    ("challenge", "gradients of one row"): ("dgamma += dy * h", "dgamma = dy * h"),
    ("challenge", "sums in one place"): ("tl.num_programs(0) * cols, dbeta", "cols, dbeta"),
    ("challenge", "a row too many"): ("tl.range(program, rows,", "tl.range(program, rows + 1,"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_a_faulty_kernel_is_found_by_a_visible_test(fault):
    question, (right, wrong) = fault[0], FAULTS[fault]
    cell = f"{question}-kernel"
    assert right in CELLS[cell].source
    found = verdict(question, with_fault(cell, right, wrong))
    assert found.name in ("wrong answer", "out of bounds")
    assert "hidden test" not in found.message


HIDDEN_FAULTS = {
    ("e", "variance by squares"): (
        "tl.sum(centred * centred, 1) / cols",
        "tl.sum(x * x, 1) / cols - mean * mean",
    ),
    ("e", "mean in float16"): ("mean = tl.sum(x, 1) / cols", "mean = (tl.sum(x, 1)).to(x_ptr.dtype.element_ty) / cols"),
}


@pytest.mark.parametrize("fault", HIDDEN_FAULTS, ids=" ".join)
def test_lost_digits_are_found(fault):
    question, (right, wrong) = fault[0], HIDDEN_FAULTS[fault]
    cell = f"{question}-kernel"
    assert right in CELLS[cell].source
    found = verdict(question, with_fault(cell, right, wrong))
    assert found.name == "wrong answer"


SEEDS = range(20)


def layernorm(x, gamma, beta, sums):
    """Layer normalization whose mean and deviations are rounded to `sums`."""
    mean = (x.float().sum(1, keepdim=True) / x.shape[1]).to(sums)
    deviation = x.to(sums) - mean
    variance = (deviation * deviation).float().sum(1, keepdim=True) / x.shape[1]
    return (deviation.float() / (variance + 1e-5).sqrt() * gamma.float() + beta.float()).to(x.dtype)


def error_in_tolerances(found, right):
    error, allowed = errors_and_tolerance(found, right)
    return float((error / allowed).max())


def test_no_seed_lets_a_mean_in_bfloat16_pass_where_layer_normalization_is_raced(names, monkeypatch):
    hidden = FUSION.hidden("i-speed", 1)
    inputs = names["layernorm_inputs_near_100"]
    assert f'"inputs": {inputs.__name__}' in hidden
    for seed in SEEDS:
        monkeypatch.setenv(SEED_VARIABLE, str(seed))
        x, gamma, beta = inputs(Draws("speed"), (301, 777), "bf16")
        right = names["right_layernorm"](x, gamma, beta)
        assert x.dtype == torch.bfloat16
        assert error_in_tolerances(layernorm(x, gamma, beta, torch.float32), right) < 0.5
        assert error_in_tolerances(layernorm(x, gamma, beta, torch.bfloat16), right) > 3


def test_rows_near_100_are_right_in_any_order_of_adding_and_wrong_by_squares(names, monkeypatch):
    for seed in SEEDS:
        monkeypatch.setenv(SEED_VARIABLE, str(seed))
        near_100 = FUSION.made("e-test", "near_100", **names | {"draw": Draws("e")})
        for shape in ((4, 256), (12, 512)):
            x = near_100(*shape)
            wide = x.double()
            deviation = wide - wide.mean(1, keepdim=True)
            right = (deviation / (deviation.square().mean(1, keepdim=True) + 1e-5).sqrt()).float()
            one_by_one = torch.zeros(shape[0])
            for column in x.unbind(1):
                one_by_one = one_by_one + column
            mean = (one_by_one / shape[1])[:, None]
            spread = ((x - mean).square().sum(1, keepdim=True) / shape[1] + 1e-5).sqrt()
            assert error_in_tolerances((x - mean) / spread, right) < 0.1
            by_squares = (x.square().sum(1, keepdim=True) / shape[1] - mean * mean).clamp(min=0)
            assert error_in_tolerances((x - mean) / (by_squares + 1e-5).sqrt(), right) > 3


def test_a_library_in_place_of_a_kernel_is_no_kernel():
    plain = "def softmax_kernel(x, y, *rest, **constants):\n    y.copy_(torch.softmax(x, 1))\n"
    found = verdict("c", FUSION.with_cell("c-kernel", plain))
    assert found.name == "not a kernel"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("2 * block", "rule 1"),
        ('"num_warps": 1', "rule 2"),
        ('"num_warps": 32', "rule 3"),
        ('"ROWS": 1', "rule 4"),
    ],
)
def test_each_rule_of_the_configuration_is_checked(change, rule):
    swaps = {
        "2 * block": ('"BLOCK": block', '"BLOCK": 2 * block'),
        '"num_warps": 1': ('"num_warps": max(1, tile_rows * block // 1024)', '"num_warps": 1'),
        '"num_warps": 32': ('"num_warps": max(1, tile_rows * block // 1024)', '"num_warps": 32'),
        '"ROWS": 1': ('"ROWS": tile_rows', '"ROWS": 1'),
    }
    right, wrong = swaps[change]
    assert right in CELLS["g-config"].source
    found = verdict("g", with_fault("g-config", right, wrong))
    assert found.name == "wrong answer"
    assert rule in found.message or (rule == "rule 4" and "rule" in found.message)


def test_the_tail_of_gelu_is_the_normal_distribution():
    """The solution's polynomial against the complementary error function, as Python's library has it."""
    source = CELLS["f-kernel"].source
    first = float(re.search(r"tail = ([\d.e-]+)\n", source).group(1))
    others = re.findall(r"tail = tail \* t ([+-]) ([\d.e-]+)", source)
    coefficients = [first, *(float(sign + number) for sign, number in others)]
    worst = 0.0
    for step in range(6001):
        t, power = step / 1000, 0.0
        for coefficient in coefficients:
            power = power * t + coefficient
        worst = max(worst, abs(t * 2**power - t * math.erfc(t / math.sqrt(2)) / 2))
    assert len(coefficients) == 7
    assert worst < 1e-7


SHAPES = [(65536, 4096), (4096, 16384)]


def meta(*shape, dtype=torch.float16):
    return torch.empty(shape, device="meta", dtype=dtype)


@pytest.mark.proof
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_row_kernels_compile_for_three_chips_without_spills(names, dtype):
    kind = {"fp16": torch.float16, "fp32": torch.float32}[dtype]
    kernels = (("softmax_kernel", "launch_softmax", 0), ("layernorm_kernel", "launch_layernorm", 2))
    for kernel, launch, vectors in kernels:
        for rows, cols in SHAPES:
            tensors = [meta(rows, cols, dtype=kind)] * 2 + [meta(cols, dtype=kind)] * vectors
            configs = [names["row_config"]((rows, cols), dtype)]
            needs = {"launch": names[launch], "capabilities": CAPABILITIES}
            for report in compiler_report(names[kernel], configs, *tensors, **needs):
                assert report.spilled_bytes == 0, report
                assert report.registers * 32 * configs[0]["num_warps"] <= 65536, report
                assert report.shared_bytes <= 48 * 1024, report


@pytest.mark.proof
def test_the_other_kernels_compile_for_three_chips_without_spills(names):
    bench = runpy.run_path(str(ROOT / "labs/fusion/bench.py"))
    x, vector, per_row = meta(65536, 4096), meta(4096), meta(65536, dtype=torch.float32)
    tile = bench["TILE"]
    backward = bench["backward_config"](4096, 4)
    jobs = [
        ("chain_kernel", "launch_chain", tile, (x, x, *[vector] * 5)),
        ("bias_gelu_kernel", "launch_bias_gelu", tile, (x, x, vector)),
        ("long_softmax_kernel", "launch_long_softmax", {"BLOCK": 8192, "num_warps": 8}, (x, x)),
        ("layernorm_backward_kernel", "launch_backward", backward, (x, x, vector, per_row, per_row, x)),
    ]
    for kernel, launch, constants, tensors in jobs:
        needs = {"launch": names[launch], "capabilities": CAPABILITIES}
        for report in compiler_report(names[kernel], [constants], *tensors, **needs):
            assert report.spilled_bytes == 0, report
            assert report.shared_bytes <= 64 * 1024, report


def after(names, source):
    """The names of the lab, after one more cell."""
    changed = dict(names)
    run_cell(source, f"fusion/{hash(source)}", changed)
    return changed


@pytest.mark.parametrize(("zero", "compiles"), [("0.0", True), ("0", False)])
def test_the_compiler_refuses_an_int_that_the_loop_makes_a_float(names, zero, compiles):
    """What hint 2 of d says, and why the lab compiles what the interpreter has passed."""
    source = CELLS["d-kernel"].source.replace("tl.full((), 0.0, tl.float32)", zero)
    source = source.replace('tl.full((), -float("inf"), tl.float32)', '-float("inf")')
    assert verdict("d", FUSION.with_cell("d-kernel", source)).name == "passed"
    changed, x = after(names, source), meta(100, 4096)
    needs = {"launch": names["launch_long_softmax"], "capabilities": (75,)}
    with nullcontext() if compiles else pytest.raises(UserError, match="does not compile"):
        compiler_report(changed["long_softmax_kernel"], [{"BLOCK": 1024}], x, x, **needs)


def test_the_lab_compiles_all_its_kernels(names, capsys):
    for cell in FUSION.lab.cells:
        if 'compiles")' in cell.source:
            names = after(names, cell.source)
    kernels = ("chain", "softmax", "long_softmax", "layernorm", "bias_gelu", "layernorm_backward")
    assert capsys.readouterr().out.splitlines() == [f"{name}_kernel compiles" for name in kernels]


@pytest.mark.proof
def test_one_warp_for_two_long_rows_spills(names):
    """What the lab says about its own kernel: 256 numbers per thread do not fit."""
    x, vector = meta(100, 4096), meta(4096)
    configs = [{"ROWS": 2, "BLOCK": 4096, "num_warps": warps} for warps in (8, 1)]
    needs = {"launch": names["launch_layernorm"], "capabilities": (90,)}
    fits, spills = compiler_report(names["layernorm_kernel"], configs, x, x, vector, vector, **needs)
    assert fits.spilled_bytes == 0
    assert fits.registers < 128
    assert spills.spilled_bytes > 0
    assert spills.registers == 255


@pytest.mark.parametrize(("race", "cell", "kernel"), [("h", "c", "softmax"), ("i", "e", "layernorm")])
def test_the_reference_of_a_race_passes_the_tests_of_its_question(race, cell, kernel):
    reference = f"{FUSION.rival(f'{race}-speed')}\n{kernel}_kernel = reference_{kernel}\n"
    found = verdict(cell, FUSION.with_cell(f"{cell}-kernel", reference))
    assert found.name == "passed", found.message


@pytest.mark.parametrize("race", ["h", "i"])
def test_the_reference_of_a_race_takes_the_configuration_of_the_solution(names, race):
    reference_rows = FUSION.made(f"{race}-speed", "reference_rows", triton=names["triton"])
    for shape in names["RACES"]:
        assert reference_rows(shape, "fp32") == names["row_config"](shape, "fp32")
