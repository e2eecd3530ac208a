import ast
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
import triton
from helpers.known_lab import HEAD, KnownLab, compile_kernels

from mlsys import Hardware, grading
from mlsys.core.cells import run_cell
from mlsys.grading import Draws
from mlsys.grading.checks.tolerances import errors_and_tolerance
from mlsys.grading.draws import SEED_VARIABLE
from mlsys.grading.verdicts import WrongAnswer

TILING = KnownLab("tiling")
verdict, with_fault = TILING.verdict, TILING.with_fault
CELLS = TILING.cells
CHIPS = {75: "t4", 80: "a100-80gb-sxm", 90: "h100-sxm"}
CONSTANTS = ("TILE_M", "TILE_N", "TILE_K", "GROUP_M")


def solution_names():
    """What the solution cells that need no GPU define."""
    names = {"triton": triton}
    for name in ("d-config", "challenge-kernel"):
        tree = ast.parse(CELLS[name].source)
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        exec(compile(ast.Module(functions, []), name, "exec"), names)
    return names


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile the lab's kernel: jobs of (kernel, dtype, capability, config) -> what each needs."""
    module = tmp_path_factory.mktemp("kernels") / "kernels.py"
    module.write_text(f"{HEAD}\n{CELLS['c-kernel'].source}\n")

    def run(jobs):
        rows = [
            {
                "kernel": kernel,
                "dtype": dtype,
                "capability": capability,
                "constants": {name: config[name] for name in CONSTANTS},
                "num_warps": config["num_warps"],
                "num_stages": config["num_stages"],
            }
            for kernel, dtype, capability, config in jobs
        ]
        return compile_kernels(module, rows, module.parent / "cache")

    return run


def shared_limit(capability):
    chip = "l4" if capability == 89 else CHIPS[capability]
    return Hardware.get(chip).field("shared_memory_per_block").value.m_as("byte")


@pytest.mark.proof
def test_float32_kernel_compiles_for_three_chips_without_spills_and_fits(compiled):
    config = solution_names()["config"]
    large, flat, tiny = (config(shape, "fp32") for shape in ((4096, 4096, 4096), (20, 4096, 100), (1, 1, 1)))
    jobs = [("matmul_kernel", "fp32", capability, large) for capability in CHIPS]
    jobs += [("matmul_kernel", "fp32", 75, flat), ("matmul_kernel", "fp32", 75, tiny)]
    for (_, _, capability, chosen), needs in zip(jobs, compiled(jobs), strict=True):
        assert needs["spilled_bytes"] == 0, (capability, chosen)
        # The rule that students are given is an upper bound on what the compiler takes.
        rule = chosen["num_stages"] * (chosen["TILE_M"] + chosen["TILE_N"]) * chosen["TILE_K"] * 4
        assert needs["shared_bytes"] <= rule <= shared_limit(capability), (capability, chosen)


@pytest.mark.proof
def test_the_challenge_uses_tensor_cores_and_fits_where_it_says(compiled):
    chosen = solution_names()["tensor_config"]((4096, 4096, 4096), "fp16")
    jobs = [("matmul_kernel", "fp16", capability, chosen) for capability in (80, 90)]
    for (_, _, capability, _), needs in zip(jobs, compiled(jobs), strict=True):
        assert needs["tensor_cores"]
        assert needs["spilled_bytes"] == 0
        assert needs["shared_bytes"] <= shared_limit(capability)


@pytest.mark.proof
def test_128_accumulators_per_thread_spill_and_64_do_not(compiled):
    sizes = {"TILE_M": 128, "TILE_K": 16, "GROUP_M": 8, "num_warps": 4, "num_stages": 2}
    jobs = [("matmul_kernel", "fp32", capability, sizes | {"TILE_N": 64}) for capability in CHIPS]
    jobs += [("matmul_kernel", "fp32", 75, sizes | {"TILE_N": 128})]
    assert [needs["spilled_bytes"] > 0 for needs in compiled(jobs)] == [False, False, False, True]


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3, 4, 5])
@pytest.mark.parametrize("question", ["read", "a", "b", "c", "d"])
def test_the_solution_passes_whatever_the_hidden_tests_draw(question, seed):
    assert verdict(question, seed=seed).name == "passed"


@pytest.mark.parametrize("ragged", ["n, tile_n", "m, tile_m"])
def test_a_count_that_forgets_a_ragged_edge_is_found_whatever_is_drawn(monkeypatch, ragged):
    extent, tile = ragged.split(", ")
    source = CELLS["a-traffic"].source
    assert f"triton.cdiv({ragged})" in source
    names = {"triton": triton, "grading": grading}
    exec(source.replace(f"triton.cdiv({ragged})", f"max(1, {extent} // {tile})"), names)
    for seed in range(200):
        monkeypatch.setenv(SEED_VARIABLE, str(seed))
        with pytest.raises(WrongAnswer, match="tiled_bytes"):
            exec(TILING.hidden("a-test"), names)


FAULTS = {
    "the columns of a tile": ("cols = tl.program_id(1) * TILE_N", "cols = tl.program_id(1)"),
    "the mask": ("(cols[None, :] < N)", "(rows[:, None] < N)"),
    "the stride": ("cols[None, :] * stride_yn", "cols[None, :] * stride_ym"),
    "the grid": ("(triton.cdiv(M, 16), triton.cdiv(N, 16))", "(M // 16, N // 16)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_silent_fault_of_the_warm_up_is_found_by_itself(fault):
    right, wrong = FAULTS[fault]
    source = CELLS["read-kernel"].source
    assert right in source
    found = verdict("read", with_fault("read-kernel", right, wrong))
    assert found.name in ("wrong answer", "out of bounds")
    assert "hidden test" not in found.message  # a visible test shows it


READ_CASES = {
    "a slice with gaps": ("stride_xn != 1", "x.stride(1) != 1"),
    "other tiles": ("TILE_M != 16", "False"),
}


@pytest.mark.parametrize("case", READ_CASES)
def test_a_case_that_only_the_function_around_the_warm_up_gets_right_is_found_by_a_visible_test(case):
    in_kernel, in_function = READ_CASES[case]
    source = CELLS["read-kernel"].source
    store, allocation = "    tl.store(", "    y = torch.empty("
    source = source.replace(store, f"    if {in_kernel}:\n        x += 1.0\n{store}")
    source = source.replace(allocation, f"    if {in_function}:\n        return x + x\n{allocation}")
    found = verdict("read", TILING.with_cell("read-kernel", source))
    assert found.name == "wrong answer", found
    assert "by itself" in found.message
    assert "hidden test" not in found.message


KERNEL_FAULTS = {
    "no mask along M": ("in_rows & (ks[None, :] < K - k)", "ks[None, :] < K - k"),
    "no mask along N": ("(ks[:, None] < K - k) & in_cols", "ks[:, None] < K - k"),
    "no mask along K": ("in_rows & (ks[None, :] < K - k)", "in_rows"),
    "a stride of C": ("cols[None, :] * stride_cn", "cols[None, :]"),
    "unit strides of A": ("ks[None, :] * stride_ak", "ks[None, :]"),
    "unit strides of B": ("cols[None, :] * stride_bn", "cols[None, :]"),
    "the step along A": ("a_ptrs += TILE_K * stride_ak", "a_ptrs += TILE_K"),
    "the store's mask": ("mask=in_rows & in_cols)", "mask=in_rows)"),
    "too few programs": ("triton.cdiv(M, tile_m) * triton.cdiv(N, tile_n)", "M * N // (tile_m * tile_n)"),
    "only one step along k": ("range(0, K, TILE_K)", "range(0, TILE_K, TILE_K)"),
}
HARMLESS = {"a stride of C"}
"""C is always contiguous here."""
HIDDEN = {"no mask along M", "no mask along N"}
"""What is loaded past M or N only feeds elements that the store masks: the result is right."""


@pytest.mark.parametrize("fault", KERNEL_FAULTS)
def test_a_faulty_matmul_is_found_by_a_visible_test(fault):
    right, wrong = KERNEL_FAULTS[fault]
    assert right in CELLS["c-kernel"].source
    found = verdict("c", with_fault("c-kernel", right, wrong))
    if fault in HARMLESS:
        assert found.name == "passed"
    elif fault in HIDDEN:
        assert found.name == "out of bounds"
    else:
        assert found.name in ("wrong answer", "out of bounds")
        assert "hidden test" not in found.message


WRAPPER_CASES = {  # what the kernel gets wrong: the same as the kernel and as the function around it say it
    "long sums": ("K > 128", "a.shape[1] > 128"),
    "float16": ("a_ptr.dtype.element_ty == tl.float16", "a.dtype == torch.float16"),
    "other tiles": ("TILE_M != 32", "tile_m != 32"),
    "large values": ("tl.max(tl.max(acc, 1), 0) > 1e20", "a.abs().max() > 1e10"),
    "windows": ("stride_am == K + 7", "not a.is_contiguous()"),
}


@pytest.mark.parametrize("case", WRAPPER_CASES)
def test_a_case_that_only_the_function_around_the_kernel_gets_right_is_found_by_a_visible_test(case):
    in_kernel, in_function = WRAPPER_CASES[case]
    source = CELLS["c-kernel"].source
    store, allocation = "    c_ptrs = c_ptr", "    c = torch.empty((M, N)"
    assert store in source
    assert allocation in source
    source = source.replace(store, f"    if {in_kernel}:\n        acc *= 2.0\n{store}")
    by_torch = f"    if {in_function}:\n        return (a.double() @ b.double()).to(a.dtype)\n"
    source = source.replace(allocation, by_torch + allocation)
    found = verdict("c", TILING.with_cell("c-kernel", source))
    assert found.name == "wrong answer", found
    assert "by itself" in found.message
    assert "hidden test" not in found.message


def float32_product(a, b, tile_m, tile_n, tile_k):
    """The product in float32, one step of tile_k after the other."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for x, y in zip(a.float().split(tile_k, 1), b.float().split(tile_k), strict=True):
        total = total + x @ y
    return total.to(a.dtype)


def test_no_seed_draws_products_that_float32_cannot_get_right(monkeypatch):
    shares = []

    def compare(actual, expected, what, tile):
        error, allowed = errors_and_tolerance(actual, expected)
        shares.append((float(torch.where(error == 0, 0.0, error / allowed).max()), what))

    grading = SimpleNamespace(Draws=Draws, guarded=lambda function: function, assert_close=compare, check_kernel=Mock())
    names = {"grading": grading, "torch": torch, "DEVICE": "cpu", "scorecard": Mock()}
    names |= {"tiled_matmul": float32_product, "matmul_kernel": None, "launch_matmul": None}
    for seed in range(100):
        monkeypatch.setenv(SEED_VARIABLE, str(seed))
        exec(CELLS["c-test"].source, names)
    assert len(shares) > 2000
    # In float16 a last bit that rounds the other way is nearly half of the tolerance.
    assert max(shares)[0] < 0.5, max(shares)
    assert max(share for share in shares if "float16" not in share[1])[0] < 0.3


GROUP_FAULTS = {
    "the first row of a group": ("first_row = group * GROUP_M", "first_row = group"),
    "the rows of the last group": ("min(tiles_m - first_row, GROUP_M)", "min(tiles_m, GROUP_M)"),
}


@pytest.mark.parametrize("fault", GROUP_FAULTS)
def test_a_wrong_order_of_programs_is_found_before_the_race_and_when_graded(fault):
    changed = with_fault("c-kernel", *GROUP_FAULTS[fault])
    found = verdict("c", changed)
    assert found.name == "wrong answer"
    assert "hidden" in found.message
    with pytest.raises(WrongAnswer, match="rows of tiles"):
        check_order_of_programs(changed)


def test_a_right_order_of_programs_passes_the_check_before_the_race():
    check_order_of_programs(lambda cell: cell.source)
    check_order_of_programs(with_fault("d-config", '"GROUP_M": 8', '"GROUP_M": 1'))


def check_order_of_programs(change):
    """Run the cell between the inputs of the race and the race."""
    place = [cell.id for cell in TILING.lab.cells].index("e-speed") - 1
    needed = [CELLS[name] for name in ("setup", "c-kernel", "c-given", "d-config", "e-given")]
    names = {}
    for cell in (*needed, TILING.lab.cells[place]):
        run_cell(change(cell), cell.id, names)


def test_the_tiles_of_the_challenge_fit_by_the_rule_that_students_have():
    small, large = ((128 + tile_n) * 64 * 2 for tile_n in (128, 256))  # bytes per stage, float16
    assert 3 * small <= shared_limit(89) == 99 * 1024
    assert 3 * large <= shared_limit(80) < 4 * large <= shared_limit(90)


def test_the_numbers_of_the_introduction_are_those_of_the_chips():
    prose = TILING.lab.cells[0].source
    for chip, words in (("t4", "a T4 does about {}"), ("h100-sxm", "An H100 does about {}")):
        ridge = Hardware.get(chip).ridge_point("fp32").m_as("flop/byte")
        assert words.format(round(ridge)) in " ".join(prose.split())


def test_the_reference_of_the_race_passes_the_tests_of_question_c():
    reference = TILING.rival("e-speed") + "\nmatmul_kernel = reference_kernel\n"

    def change(cell):
        if cell.id != "c-kernel":
            return cell.source
        return reference + ast.unparse(TILING.function("c-kernel", "tiled_matmul"))

    assert verdict("c", change).name == "passed"


def test_the_reference_of_the_race_takes_the_configuration_of_the_solution():
    large = (4096, 4096, 4096)
    assert TILING.made("e-speed", "reference_config")(large, "fp32") == solution_names()["config"](large, "fp32")
