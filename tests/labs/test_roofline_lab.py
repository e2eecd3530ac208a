import ast
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
import triton
from helpers.known_lab import HEAD, KnownLab, compile_kernels

from mlsys import Hardware
from mlsys.grading import Draws
from mlsys.grading.checks.tolerances import errors_and_tolerance
from mlsys.grading.draws import SEED_VARIABLE

ROOFLINE = KnownLab("roofline")
verdict, with_fault = ROOFLINE.verdict, ROOFLINE.with_fault
CELLS = ROOFLINE.cells
CHIPS = {75: "t4", 80: "a100-80gb-sxm", 90: "h100-sxm"}


def config(shape):
    return ROOFLINE.made("d-config", "config", triton=__import__("triton"))(shape, "fp32")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile jobs of (kernel, types, constants, num_warps) for the three chips -> what each needs."""
    module = tmp_path_factory.mktemp("kernels") / "kernels.py"
    module.write_text(f"{HEAD}\n{CELLS['b-example'].source}\n\n{CELLS['b-kernel'].source}\n")

    def run(kernel, types, constants, num_warps):
        jobs = [
            {
                "kernel": kernel,
                "dtype": "fp32",
                "types": types,
                "constants": constants,
                "num_warps": num_warps,
                "capability": capability,
                "odd": ["steps"],
            }
            for capability in CHIPS
        ]
        return dict(zip(CHIPS, compile_kernels(module, jobs, module.parent / "cache"), strict=True))

    return run


@pytest.mark.proof
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_the_kernel_compiles_for_three_chips_and_keeps_a_row_in_registers(compiled, dtype):
    chosen = config((8192, 4000, 120))
    types = {"x_ptr": f"*{dtype}", "coefficients_ptr": "*fp32", "sums_ptr": "*fp32"}
    types |= dict.fromkeys(("COLS", "stride_row", "steps"), "i32")
    constants = {"stride_col": 1, "TILE": chosen["TILE"]}
    for capability, needs in compiled("poly_kernel", types, constants, chosen["num_warps"]).items():
        limit = Hardware.get(CHIPS[capability]).field("shared_memory_per_block").value.m_as("byte")
        assert needs["spilled_bytes"] == 0, capability
        assert needs["shared_bytes"] <= limit
        # One instruction per number that a thread holds: the chain is there, and it is of multiply-adds.
        assert needs["multiply_adds"] >= chosen["TILE"] // (32 * chosen["num_warps"])


@pytest.mark.proof
def test_the_example_compiles_for_three_chips_with_loads_of_16_bytes(compiled):
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "N": "i32"}
    for needs in compiled("add_kernel", types, {"TILE": 1024}, 4).values():
        assert needs["spilled_bytes"] == needs["shared_bytes"] == 0
        assert needs["wide_loads"] == 4  # two vectors, eight numbers per thread


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3, 4, 5])
@pytest.mark.parametrize("question", ["a", "b", "c", "e", "f", "gap"])
def test_the_solution_passes_whatever_the_hidden_tests_draw(question, seed):
    found = verdict(question, seed=seed)
    assert found.name == "passed", found.message


def float32_sums(x, coefficients):
    """The polynomial's row sums in float32 by torch."""
    x = x.float()
    y = x
    for factor in coefficients.unbind():
        y = y * x + factor
    return y.sum(dim=1)


def test_no_seed_draws_sums_that_float32_cannot_get_right(monkeypatch):
    shares = []

    def compare(actual, expected, what):
        error, allowed = errors_and_tolerance(actual, expected)
        shares.append((float((error / allowed).max()), what))

    grading = SimpleNamespace(Draws=Draws, guarded=lambda function: function, assert_close=compare, check_kernel=Mock())
    names = {"grading": grading, "torch": torch, "triton": triton, "DEVICE": "cpu", "scorecard": Mock()}
    exec(CELLS["b-given"].source, names)
    names |= {"poly_sums": float32_sums, "poly_kernel": None}
    for seed in range(100):
        monkeypatch.setenv(SEED_VARIABLE, str(seed))
        exec(CELLS["b-test"].source, names)
    assert len(shares) > 2000
    assert max(shares)[0] < 0.1, max(shares)


VISIBLE_FAULTS = {
    "a copy reads only": ("a", "a-roofs", "2 * array_bytes", "array_bytes"),
    "a mean instead of a median": ("a", "a-roofs", "statistics.median", "statistics.mean"),
    "the first lap": ("a", "a-roofs", "statistics.median(laps_s)", "laps_s[0]"),
    "a multiply-add is one FLOP": ("a", "a-roofs", "2 * side**3", "side**3"),
    "the ridge upside down": ("a", "a-roofs", "peak / bandwidth", "bandwidth / peak"),
    "no flat roof": ("a", "a-roofs", "min(peak, bandwidth * intensity)", "bandwidth * intensity"),
    "masked lanes are added": ("b", "b-kernel", "tl.where(mask, y, 0.0)", "y"),
    "the dial is ignored": ("b", "b-kernel", "range(steps)", "range(1)"),
    "one step too few": ("b", "b-kernel", "range(steps)", "range(steps - 1)"),
    "the chain is dropped": ("b", "b-kernel", "tl.where(mask, y, 0.0)", "tl.where(mask, x, 0.0)"),
    "strides of one": ("b", "b-kernel", "cols * stride_col", "cols"),
    "rows one after the other": ("b", "b-kernel", "row * stride_row", "row * COLS"),
    "arithmetic in float16": ("b", "b-kernel", "other=0.0).to(tl.float32)", "other=0.0)"),
    "too few programs": ("b", "b-kernel", "grid = (rows,)", "grid = (rows - rows // 2,)"),
    "too small a tile": ("b", "b-kernel", "triton.next_power_of_2(cols)", "triton.next_power_of_2(cols // 2 + 1)"),
    "no coefficients": ("c", "c-ridge", "4 * (steps + rows)", "4 * rows"),
    "the first point near the peak": (
        "c",
        "c-ridge",
        "max(rates) / max(rate / intensity for intensity, rate in zip(intensities, rates, strict=True))",
        "next(i for i, rate in zip(intensities, rates) if rate > 0.9 * max(rates))",
    ),
    "written bytes forgotten": ("e", "e-costs", "3 * n * itemsize", "2 * n * itemsize"),
    "no scale and shift": ("e", "e-costs", "2 * rows * cols + 2 * cols", "2 * rows * cols"),
    "no indices": ("e", "e-costs", "dim * itemsize + 8", "dim * itemsize"),
    "the product unwritten": ("e", "e-costs", "m * k + k * n + m * n", "m * k + k * n"),
    "the smaller time": ("e", "e-costs", "max(arithmetic_s, memory_s)", "min(arithmetic_s, memory_s)"),
    "rounded down": ("f", "f-batch", "math.ceil", "math.floor"),
    "no limit": ("f", "f-batch", " if gained > 0 else None", ""),
    "the smallest gaps": ("gap", "gap-causes", "least_s[name] / measured_s[name]", "measured_s[name] / least_s[name]"),
    "an eighth not multiplied": ("gap", "gap-causes", "8 * eighth_s", "eighth_s"),
}


@pytest.mark.parametrize("fault", VISIBLE_FAULTS)
def test_a_usual_fault_is_found_by_a_visible_test(fault):
    question, cell, right, wrong = VISIBLE_FAULTS[fault]
    found = verdict(question, with_fault(cell, right, wrong))
    assert found.name in ("wrong answer", "out of bounds"), found
    assert "hidden test" not in found.message


HIDDEN_FAULTS = {
    "a ridge learnt by heart": (
        "c",
        "c-ridge",
        "max(rates) / max(rate / intensity for intensity, rate in zip(intensities, rates, strict=True))",
        "10.0",
    ),
    "a copy of 4-byte numbers only": ("e", "e-costs", "2 * rows * cols * itemsize", "8 * rows * cols"),
    "the first factor above the limit": (
        "gap",
        "gap-causes",
        "max(factors, key=factors.get, default=None)",
        "next((name for name in factors if factors[name] >= 1.5), None)",
    ),
}


@pytest.mark.parametrize("fault", HIDDEN_FAULTS)
def test_an_answer_for_the_visible_cases_only_is_found_by_a_hidden_test(fault):
    question, cell, right, wrong = HIDDEN_FAULTS[fault]
    found = verdict(question, with_fault(cell, right, wrong))
    assert found.name == "wrong answer"
    assert "In a hidden test" in found.message


def test_a_number_that_is_not_plain_is_named():
    found = verdict("a", with_fault("a-roofs", "return peak / bandwidth", "return str(peak / bandwidth)"))
    assert found.name == "wrong answer"
    assert "got a str: return a plain number" in found.message


def test_a_slip_of_units_is_named():
    found = verdict("a", with_fault("a-roofs", "2 * array_bytes", "2 * array_bytes / 2**30"))
    assert "no GiB" in found.message


def test_sums_by_torch_are_no_kernel():
    found = verdict("b", with_fault("b-kernel", "    return sums", "    return polynomial_sums(x, coefficients)"))
    assert found.name == "not a kernel"


def test_the_numbers_of_the_introduction_are_those_of_the_chips():
    prose = " ".join(ROOFLINE.lab.cells[0].source.split())
    t4, h100 = (round(Hardware.get(chip).ridge_point("fp32").m_as("flop/byte")) for chip in ("t4", "h100-sxm"))
    assert f"about {t4} FLOP/byte for a T4 and about {h100} for an H100" in prose


def test_the_reference_of_the_race_passes_the_tests_of_question_b():
    reference = ROOFLINE.rival("d-speed") + "\npoly_kernel = reference_kernel\n"

    def change(cell):
        if cell.id != "b-kernel":
            return cell.source
        return reference + ast.unparse(ROOFLINE.function("b-kernel", "poly_sums"))

    assert verdict("b", change).name == "passed"


def test_the_reference_of_the_race_takes_the_configuration_of_the_solution():
    assert ROOFLINE.made("d-speed", "reference_config")((8192, 4000, 120), "fp32") == config((8192, 4000, 120))


def test_the_race_reaches_both_roofs_of_common_gpus():
    """Two points on the slope and two under the flat roof, so that the ridge can be found in four."""
    cell = ast.parse(CELLS["d-speed"].source).body
    races = [one for one in cell if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "RACES"]
    names = {}
    exec(compile(ast.Module(races, []), "races", "exec"), names)
    chain_cost = ROOFLINE.made("c-ridge", "chain_cost")
    places = []
    for shape in names["RACES"]:
        flops, moved = chain_cost(*shape, 4)
        places.append(flops / moved)
    for chip in ("t4", "a100-80gb-sxm", "h100-sxm", "h200"):
        ridge = Hardware.get(chip).ridge_point("fp32", engine="vector").m_as("flop/byte")
        assert places[1] < ridge / 2
        assert places[2] > 2 * ridge
