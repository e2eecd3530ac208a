"""The fusion lab's fastest kernels on rows: their results, what they refuse, and their code for a GPU that is not here.

The kernels that the lab itself asks for are in `test_fusion_lab.py`.
"""

import runpy
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.exact_rows import OPS, ROW_OPS, exact
from helpers.known_gpus import H200, NO_GPU, SHARED_BYTES, T4
from helpers.known_lab import compile_kernels

from mlsys.grading import use_device

LAB = Path(__file__).parents[2] / "labs/fusion"
TYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}


@cache
def bench():
    use_device()
    return runpy.run_path(str(LAB / "bench.py"))


@cache
def fast():
    """`fast.py`, which imports triton: as late as the labs' own cells do."""
    return bench()["fast_module"]()


WIDTHS = (256, 512, 1000, 3000, 4096, 5000, 10000, 12288, 16384, 20000, 24576, 32768, 65536)
"""For each plan of the table at least one width."""


def inputs(op, rows, columns, dtype, gap=0):
    """Random rows that start `gap` numbers after the end of the last, vectors, and room for the result."""
    torch.manual_seed(1)
    x = torch.randn(rows, columns + gap).to(dtype)[:, :columns]
    vectors = tuple(torch.randn(columns).to(dtype) for _ in fast().VECTORS[op])
    if op == "chain":
        vectors[1].square_()
    return x, vectors, torch.full((rows, columns + gap), float("nan"), dtype=dtype)[:, :columns]


def assert_right(op, x, vectors, out):
    """Within the format's rounding, of small results too, and that of float32 sums for the largest values of a row."""
    right, kind = exact(op, x, *vectors), torch.finfo(x.dtype)
    rounding = kind.eps * (2 * right.abs() + kind.smallest_normal)
    allowed = rounding + 1e-5 * right.abs().amax(1, keepdim=True)
    assert ((out.double() - right).abs() <= allowed).all()


SHAPES = {  # rows, columns, numbers between rows
    "the narrowest, rows ragged": (5, 256, 0),
    "three pieces": (3, 3000, 0),
    "an odd width": (3, 257, 0),
    "rows at odd addresses": (3, 1000, 1),
    "a slice": (2, 5000, 24),
    "one wide row": (1, 12288, 0),
}


@pytest.mark.proof
@pytest.mark.filterwarnings("ignore:invalid value encountered in subtract")  # of infinities, in rows past the end
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("op", OPS)
def test_every_plan_computes_the_operation(op, case, dtype):
    """bfloat16 is for a GPU, since the interpreter rounds it wrongly."""
    rows, columns, gap = SHAPES[case]
    plans = {fast().plan_of(op, columns, dtype.itemsize)}
    if op in ROW_OPS:
        plans |= {fast().Long(512, 4), fast().Held(2, 4), fast().Held(4, 4, piece=128)} if columns < 12288 else set()
    for plan in plans:
        x, vectors, out = inputs(op, rows, columns, dtype, gap)
        fast().check(op, x, vectors, out)
        fast().launch(op, x, vectors, out, plan, NO_GPU)
        assert_right(op, x, vectors, out)
        beside = out.as_strided((rows, gap), (columns + gap, 1), columns)
        assert beside.isnan().all()  # nothing is written between rows


@pytest.mark.parametrize("op", OPS)
def test_no_rows_are_no_work(op):
    x, vectors, out = inputs(op, 0, 256, torch.float16)
    fast().launch(op, x, vectors, out, fast().plan_of(op, 256), NO_GPU)


@pytest.mark.proof
def test_a_result_may_replace_its_input():
    x, vectors, _ = inputs("layernorm", 5, 1000, torch.float16)
    given = x.clone()
    fast().launch("layernorm", x, vectors, x, fast().Held(2, 4), NO_GPU)
    assert_right("layernorm", given, vectors, x)


@pytest.mark.proof
def test_large_values_and_a_large_mean_cost_no_digits():
    for plan in (fast().Held(1, 4), fast().Long(512, 4)):
        x, _, out = inputs("softmax", 2, 1000, torch.float32)
        fast().launch("softmax", x * 1e4, (), out, plan, NO_GPU)
        assert_right("softmax", x * 1e4, (), out)
        x, vectors, out = inputs("layernorm", 2, 1000, torch.float32)
        shifted = x + 1000
        fast().launch("layernorm", shifted, vectors, out, plan, NO_GPU)
        torch.testing.assert_close(out.double(), exact("layernorm", shifted, *vectors), rtol=1e-3, atol=1e-3)


REFUSED = {
    "integers": (lambda x: {"x": x.int()}, "float16, bfloat16 or float32"),
    "three dimensions": (lambda x: {"x": x[None]}, "give rows"),
    "too few columns": (lambda x: {"x": x[:, :255], "out": x[:, :255]}, "x has 255 columns"),
    "another shape of the result": (lambda x: {"out": x[:1]}, "the result has"),
    "columns apart": (lambda x: {"x": x.T.contiguous().T}, "neighboring numbers"),
    "an odd address": (lambda x: {"x": torch.zeros(x.numel() + 1).to(x.dtype)[1:].view_as(x)}, "multiple of 16 bytes"),
    "a short vector": (lambda x: {"gamma": x[0, 1:]}, "gamma has shape"),
    "another dtype": (lambda x: {"gamma": x[0].double()}, "give both alike"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_kernels_do_not_take_is_refused_by_name(case):
    change, words = REFUSED[case]
    x = torch.zeros(4, 256, dtype=torch.float16)
    given = {"x": x, "gamma": x[0].clone(), "out": torch.empty_like(x)} | change(x)
    with pytest.raises(fast().CannotFuse, match=words):
        fast().check("rmsnorm", given["x"], (given["gamma"],), given["out"])


def test_a_device_without_what_it_takes_is_refused():
    with pytest.raises(fast().CannotFuse, match="no CUDA GPU"):
        fast().check_device(NO_GPU, torch.float16)
    with pytest.raises(fast().CannotFuse, match="no bfloat16"):
        fast().check_device(T4, torch.bfloat16)


def test_rows_that_cannot_be_staged_or_held_are_read_again():
    plan_of, long = fast().plan_of, fast().Long()
    assert isinstance(plan_of("softmax", 65536, device=H200), fast().Staged)
    assert plan_of("softmax", 65536, itemsize=4, device=H200) == long
    assert plan_of("softmax", 65535, vector=1, device=H200) == long
    assert plan_of("softmax", 65536, device=T4) == long


@pytest.mark.parametrize("op", OPS)
def test_every_width_has_a_plan_whose_pieces_cover_it(op):
    for columns in range(256, 65537, 8):
        plan = fast().plan_of(op, columns, device=H200)
        if isinstance(plan, fast().Staged):
            assert plan.programs * plan.shared_bytes(columns) <= SHARED_BYTES
        if isinstance(plan, fast().Held):
            piece = plan.columns(columns)
            assert piece & (piece - 1) == 0
            registers = plan.rows * columns / (2 if plan.packed else 1)
            assert registers <= 64 * 32 * plan.num_warps  # of all threads, at most 64 of each


class Recorder:
    """Stands in for a kernel, and keeps what it would be launched with."""

    def __getitem__(self, grid):
        def keep(*values, **constants):
            self.values, self.constants = values, constants

        return keep


def job(op, columns, dtype, monkeypatch):
    """What the rule launches for rows of `columns` numbers, as a job for the compiler."""
    plan = fast().plan_of(op, columns, dtype.itemsize, device=H200)
    staged = isinstance(plan, fast().Staged)
    kernel, recorder = fast().staged_kernel if staged else fast().KERNELS[type(plan), op], Recorder()
    with monkeypatch.context() as patch:
        patch.setattr(fast(), "staged_kernel", recorder)
        patch.setitem(fast().KERNELS, (type(plan), op), recorder)
        x = torch.empty(1000, columns, dtype=dtype, device="meta")
        vectors = tuple(x[0] for _ in fast().VECTORS[op])
        fast().launch(op, x, vectors, torch.empty_like(x), plan, H200)
    constants = dict(recorder.constants)
    options = {name: constants.pop(name) for name in ("num_warps", "maxnreg") if name in constants}
    if staged:
        constants["num_warps"] = plan.num_warps  # an argument of Gluon's kernels, too
    types = {"epsilon": "fp32"} if "epsilon" in kernel.arg_names else {}
    odd = ["rows", *types] + ([] if columns % 16 == 0 else ["cols", "stride_x", "stride_y"])
    made = {"kernel": kernel.fn.__name__, "dtype": TYPES[dtype], "capability": 90, "constants": constants}
    return plan, made | options | {"types": types, "odd": odd}


@pytest.mark.proof
@pytest.mark.timeout(300)
@pytest.mark.parametrize("op", OPS)
def test_the_rules_plans_compile_for_hopper_without_spills_and_move_16_bytes_at_a_time(op, monkeypatch):
    cases = [(columns, dtype) for columns in WIDTHS for dtype in (torch.bfloat16, torch.float32)]
    planned = [job(op, *case, monkeypatch) for case in cases]
    needed = compile_kernels(LAB / "fast.py", [made for _, made in planned])
    for case, (plan, _), needs in zip(cases, planned, needed, strict=True):
        assert needs["spilled_bytes"] == 0, (case, plan)
        assert needs["wide_stores"] > 0, (case, plan)
        assert needs["wide_loads"] + needs["wide_copies"] > 0, (case, plan)
        if isinstance(plan, fast().Staged):
            assert needs["shared_bytes"] <= plan.shared_bytes(case[0]), (case, plan)
