"""The precision lab's fastest kernels: their results, what they refuse, and their code for a GPU that is not here.

The kernels that the lab itself asks for are in `test_precision_lab.py`. `overlapped_kernel` is in Gluon, which no
interpreter runs: it is compiled here, and its results are checked where `mlsys bench` runs it, on a GPU.
"""

import re
import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.known_gpus import A100, H200, NO_GPU, SHARED_BYTES
from helpers.known_lab import KnownLab, compile_kernels

from mlsys.bench.run import lab_names
from mlsys.grading import use_device
from mlsys.measure.device import Device

LAB = Path(__file__).parents[2] / "labs/precision"
THREE = Device("gpu", "a GPU with three multiprocessors", (9, 0), multiprocessors=3, shared_bytes=SHARED_BYTES)
SMALLEST = Device("gpu", "a GPU with little shared memory", (9, 0), multiprocessors=40, shared_bytes=48 * 1024)
FP8 = torch.float8_e4m3fn
TYPES = {FP8: "fp8e4nv", torch.int8: "i8", torch.float32: "fp32", torch.int32: "i32", torch.bfloat16: "bf16"}


@cache
def bench():
    use_device()
    return runpy.run_path(str(LAB / "bench.py"))


@cache
def fast():
    """`fast.py`, which imports triton: as late as the labs' own cells do."""
    return bench()["fast_module"]()


def matrices(m, n, k, dtype):
    """Two matrices of 8 bits, and a scale for each of their rows."""
    torch.manual_seed(1)
    if dtype == torch.int8:
        a, b = (torch.randint(-128, 128, (rows, k)).to(dtype) for rows in (m, n))
    else:
        a, b = (torch.randn(rows, k).to(dtype) for rows in (m, n))
    return a, b, torch.rand(m) / 64 + 0.01, torch.rand(n) / 64 + 0.01


PRODUCTS = {  # m, n, k, and the plan
    "one tile": (64, 64, 128, (64, 64, 4, 3)),
    "everything ragged": (100, 72, 272, (64, 64, 4, 3)),
    "persistent, three programs for eight tiles": (200, 128, 144, (64, 64, 4, 3, True)),
    "stored in parts": (130, 264, 160, (128, 256, 8, 4, True)),
    "one row": (1, 16, 16, (64, 64, 4, 6)),
}


@pytest.mark.proof
@pytest.mark.parametrize("dtype", [torch.int8, FP8], ids=str)
@pytest.mark.parametrize("case", PRODUCTS)
def test_a_product_of_8_bits_is_right(case, dtype):
    """int8 to the last bit; scaled results in float16, for the interpreter has no bfloat16."""
    m, n, k, plan = PRODUCTS[case]
    a, b, a_scale, b_scale = matrices(m, n, k, dtype)
    exact = a.double() @ b.double().T
    plain = torch.empty(m, n, dtype=torch.int32 if dtype == torch.int8 else torch.float32).fill_(77)
    if n * 4 % 16 == 0:
        fast().check_product(a, b, plain, None, None)
        fast().launch_product(a, b, plain, None, None, False, fast().Plan(*plan), THREE)
        torch.testing.assert_close(plain.double(), exact, rtol=0 if dtype == torch.int8 else 1e-5, atol=1e-4)
    scaled = torch.full((m, n), float("nan"), dtype=torch.float16)
    fast().check_product(a, b, scaled, a_scale, b_scale)
    fast().launch_product(a, b, scaled, a_scale, b_scale, True, fast().Plan(*plan), THREE)
    right = exact * a_scale.double()[:, None] * b_scale.double()
    assert float((scaled.double() - right).norm() / right.norm()) < 5e-4


INT4 = {  # batch, n, k, and the plan, or that of the rule
    "one row": (1, 128, 256, None),
    "rows of weights ragged": (3, 72, 256, (16, 64, 4, 3, 1)),
    "three splits of four groups": (17, 200, 512, (32, 64, 4, 3, 3)),
    "more splits than groups": (16, 64, 256, (16, 64, 4, 3, 4)),
    "two tiles of rows": (150, 64, 256, (128, 64, 8, 3, 2)),
}


@pytest.mark.proof
@pytest.mark.parametrize("case", INT4)
def test_a_product_with_int4_weights_is_right_however_often_it_runs(case):
    """Twice, since the counters of the splits must be back at 0 after a launch."""
    m, n, k, plan = INT4[case]
    torch.manual_seed(2)
    x, packed = torch.randn(m, k).half(), fast().pack_int4(torch.randn(n, k).half())
    chosen = fast().Int4Plan(*plan) if plan else fast().int4_plan(m, n, k, THREE)
    right = x.double() @ packed.whole().double().T
    for _ in range(2):
        out = torch.full((m, n), float("nan"), dtype=torch.float16)
        fast().check_int4(x, packed, out)
        fast().launch_int4(x, packed, out, chosen)
        assert float((out.double() - right).norm() / right.norm()) < 5e-4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_packed_weights_are_nearest_to_the_whole_ones(dtype):
    """Each is at most half a step away; the number of the largest magnitude is kept, and only its opposite is not."""
    torch.manual_seed(3)
    w = torch.randn(9, 384).to(dtype)
    w[2, 128:256] = 0
    packed = fast().pack_int4(w)
    assert packed.shape == (9, 384)
    assert packed.nbytes == 9 * 384 // 2 + 9 * 3 * 2
    groups, whole = w.float().view(9, 3, 128), packed.whole().float().view(9, 3, 128)
    step = packed.scales.float().T.abs()[:, :, None]
    away = (whole - groups).abs() / torch.where(step == 0, 1.0, step)
    opposite = groups == -groups.gather(2, groups.abs().argmax(2, keepdim=True))
    assert float(away[~opposite].max()) < 1.02  # 7.5 to 8 steps have no code of their own on one side
    assert float((away > 0.51).float().mean()) < 0.02
    assert torch.equal(whole[2, 1], torch.zeros(128))


def test_every_code_comes_back():
    """The words of all codes at all places, by the interpreter's own unpacking of the kernel."""
    w = torch.arange(-8, 8).repeat(16, 8).half()
    w[:, 0] = -8
    packed = fast().pack_int4(w)
    assert torch.equal(packed.scales, torch.ones(1, 16).half())
    assert torch.equal(packed.whole(), w)
    out = torch.empty(128, 16).half()
    fast().launch_int4(torch.eye(128).half(), packed, out, fast().Int4Plan(128, 64, 8, 2, 1))
    assert torch.equal(out, w.T)


def words_in_pairs(ptx, words, scales=1.0):
    """What the PTX of `weights_ptx` makes of registers with two words each, times scales if it multiplies by them."""
    [shift] = [int(found) for found in re.findall(r"shr\.b32 t, \$1, (\d+)", ptx)] or [0]
    mask, one, table = (int(bits, 16) for bits in re.search(r"lop3\.b32 t, t, (\S+), (\S+), (\S+);", ptx).groups())
    assert table == (0xF0 & 0xCC) | 0xAA  # of inputs a, b, c: a and b, or c
    dtype = torch.bfloat16 if "bf16x2" in ptx else torch.float16

    def numbers(pairs):
        return torch.from_numpy(np.asarray(pairs, np.uint32).view(np.int16)).view(dtype).double().view(-1, 2)

    constants = [numbers([int(bits, 16)]) for bits in re.findall(r"mov\.b32 [ac], (\S+);", ptx)]
    made = numbers(((words >> shift) & mask) | one)
    made = made * constants[0] + constants[1] if "fma.rn" in ptx else made - constants[0]
    assert torch.equal(made.to(dtype).double(), made)  # nothing is rounded
    if "mul.rn" in ptx:
        assert ptx.endswith(f"mul.rn.{'bf16x2' if dtype == torch.bfloat16 else 'f16x2'} $0, t, $2; }}")
        made = (made * scales).to(dtype).double()
    return made


def test_the_instructions_on_pairs_of_words_make_the_same_weights():
    """All words beside others, computed as the PTX manual says, for there is no GPU here."""
    lower = np.arange(2**16, dtype=np.uint32)
    upper = np.random.default_rng(1).permutation(2**16).astype(np.uint32)
    for texts in (fast().HALF_PAIRS.value, fast().BF16_PAIRS.value):
        for place, ptx in enumerate(texts):
            found = words_in_pairs(ptx, lower | upper << 16).numpy()
            for column, words in enumerate((lower, upper)):
                assert (found[:, column] == (words >> (4 * place) & 15).astype(np.int64) - 8).all()


def test_the_scaled_instructions_make_the_packed_weights_to_the_last_bit():
    for texts, dtype in ((fast().SCALED_HALF_PAIRS, torch.float16), (fast().SCALED_BF16_PAIRS, torch.bfloat16)):
        torch.manual_seed(4)
        packed = fast().pack_int4(torch.randn(64, 256).to(dtype))
        words = packed.words.numpy().view(np.uint16).astype(np.uint32)
        scales = packed.scales.double().repeat_interleave(fast().WORDS)[:, None]
        places = [words_in_pairs(ptx, (words | words << 16).ravel(), scales)[:, 0] for ptx in texts.value]
        found = torch.stack(places).view(4, 2, 64, 32).permute(2, 1, 0, 3).reshape(64, 256)
        assert torch.equal(found, packed.whole().double())


def product_job(dtype, plan, out, scaled, precise):
    parts = plan.parts(out.itemsize)
    blocks = {
        "a": (dtype, [plan.tile_m, plan.tile_k]),
        "b": (dtype, [plan.tile_n, plan.tile_k]),
        "out": (out, [plan.tile_m, plan.tile_n // parts]),
    }
    types = {name: f"tensordesc<{TYPES[kind]}{block}>" for name, (kind, block) in blocks.items()}
    constants = {"TILE_M": plan.tile_m, "TILE_N": plan.tile_n, "TILE_K": plan.tile_k, "GROUP_M": fast().GROUP_M}
    constants |= {"PARTS": parts, "SCALED": scaled, "PRECISE": precise}
    constants |= {"INTEGER": dtype == torch.int8, "PERSISTENT": plan.persistent}
    options = {"num_warps": plan.num_warps, "num_stages": plan.num_stages}
    made = {"kernel": "product_kernel", "dtype": "fp32", "capability": 90, "constants": constants}
    return made | options | {"types": types, "odd": list(blocks)}


@pytest.mark.proof
def test_the_plans_for_8_bits_compile_for_hopper_without_spills_and_take_what_they_say():
    cases = [
        (dtype, plan, out, scaled, precise)
        for dtype in (FP8, torch.int8)
        for plan in fast().PRODUCT_PLANS
        for out, scaled in ((torch.bfloat16, True), (torch.int32 if dtype == torch.int8 else torch.float32, False))
        for precise in (False, True)
        if not (precise and (dtype == torch.int8 or plan == fast().LARGE)) and (scaled or plan == fast().LARGE)
    ]
    needed = compile_kernels(LAB / "fast.py", [product_job(*case) for case in cases])
    for case, needs in zip(cases, needed, strict=True):
        plan, out = case[1], case[2]
        assert needs["spilled_bytes"] == 0, case
        assert needs["tensor_cores"], case
        assert needs["tensor_copies"], case
        assert needs["shared_bytes"] <= plan.shared_bytes(out.itemsize) <= H200.shared_bytes, case


def int4_job(plan, dtype):
    x_layout, w_layout = (f",{one!r}" if plan.overlapped else "" for one in fast().shared_layouts())
    types = {"x": f"tensordesc<{dtype}[{plan.tile_m}, 64]{x_layout}>"}
    types |= {"w": f"tensordesc<i16[{plan.tile_n}, 32]{w_layout}>", "part_ptr": "*fp32", "arrived_ptr": "*i32"}
    made = {"dtype": dtype, "capability": 90, "num_warps": plan.num_warps, "types": types, "odd": ["x", "w", "M"]}
    if plan.overlapped:
        constants = {"SPLITS": plan.splits, "STAGES": plan.num_stages, "HALF": dtype == "fp16"}
        return made | {"kernel": "overlapped_kernel", "constants": constants}
    constants = {"TILE_M": plan.tile_m, "TILE_N": plan.tile_n, "SPLITS": plan.splits, "GROUP": fast().GROUP}
    constants |= {"HALF": dtype == "fp16", "PAIRS": True}
    return made | {"kernel": "int4_kernel", "constants": constants, "num_stages": plan.num_stages}


@pytest.mark.proof
def test_the_plans_for_int4_compile_for_hopper_without_spills_and_fit_a_multiprocessor_as_often_as_the_rule_says():
    plans = {fast().int4_plan(batch, n, k, H200): None for n, k in bench()["WEIGHTS"] for batch in bench()["BATCHES"]}
    cases = [(plan, dtype) for plan in plans for dtype in ("fp16", "bf16")]
    needed = compile_kernels(LAB / "fast.py", [int4_job(*case) for case in cases])
    for (plan, dtype), needs in zip(cases, needed, strict=True):
        assert needs["spilled_bytes"] == 0, (plan, dtype)
        assert needs["tensor_cores"], (plan, dtype)
        assert needs["tensor_copies"], (plan, dtype)
        assert needs["shared_bytes"] <= plan.shared_bytes <= H200.shared_bytes, (plan, dtype)
        programs = fast().PROGRAMS_AT_ONCE[plan.tile_m]
        registers = -(-needs["registers"] // 8) * 8  # they are given out in eights
        assert programs * registers * 32 * plan.num_warps <= 2**16, (plan, dtype)
        assert programs * (needs["shared_bytes"] + 1024) <= SHARED_BYTES + 1024, (plan, dtype)  # 1 KiB for the system


@pytest.mark.proof
def test_the_labs_fp8_kernel_compiles_for_hopper_without_spills(tmp_path):
    """With the configuration of its race, as the reference has it too."""
    lab = KnownLab("precision")
    names = lab_names(LAB / "lab.py")
    constants = names["fp8_config"](names["FP8_RACES"][0], "fp8")
    options = {name: constants.pop(name) for name in ("num_warps", "num_stages")}
    module = tmp_path / "kernels.py"
    head, kernel = "import triton\nimport triton.language as tl\n\n\n", lab.cells["g-kernel"].source
    module.write_text(head + kernel.split("def fp8_config")[0])
    types = {"a_ptr": "*fp8e4nv", "b_ptr": "*fp8e4nv", "scale_ptr": "*fp32"}
    job = {"kernel": "fp8_kernel", "dtype": "bf16", "capability": 90, "constants": constants, "types": types}
    [needs] = compile_kernels(module, [job | options])
    assert needs["spilled_bytes"] == 0
    assert needs["tensor_cores"]
    assert needs["shared_bytes"] <= H200.shared_bytes


def test_the_rule_keeps_the_gpu_busy():
    for n, k in bench()["WEIGHTS"]:
        for batch in bench()["BATCHES"]:
            plan = fast().int4_plan(batch, n, k, H200)
            assert plan in fast().int4_candidates(batch, n, k, H200)
            assert plan.tile_m >= min(batch, 128)
            assert 1 <= plan.splits <= k // fast().GROUP
            programs = plan.tiles(batch, n) * plan.splits
            assert programs >= 0.6 * H200.multiprocessors, (batch, n, k, plan)


def test_the_rule_for_int4_overlaps_large_batches_and_takes_the_largest_tile_only_where_it_fills_the_gpu():
    plan = fast().int4_plan
    assert not plan(32, 8192, 8192, H200).overlapped
    assert plan(33, 8192, 8192, H200).overlapped
    assert plan(256, 14336, 4096, H200) == plan(512, 14336, 4096, H200) == fast().LARGE_INT4
    assert plan(256, 8192, 8192, H200) == replace(fast().LARGE_INT4, splits=2)
    too_few, half_empty, two_turns = (256, 4096), (384, 14336), (256, 132 * 128 + 1)
    for m, n in (too_few, half_empty, two_turns):
        assert plan(m, n, 14336, H200).tile_m == 128
    short = 4096
    assert plan(256, 8192, short, H200) == fast().Int4Plan(128, 64, 4, 3, 1, overlapped=True)
    assert plan(128, 4096, short, H200).splits == 2  # 16 groups each


def test_the_rule_for_8_bits_takes_large_tiles_for_large_products_and_small_ones_for_small():
    plan = fast().product_plan
    assert plan(8192, 8192, 8192, H200) == fast().LARGE
    assert plan(8192, 8192, 8192, H200, precise=True) != fast().LARGE
    assert plan(256, 512, 1024, H200).tiles(256, 512) > plan(8192, 8192, 1024, H200).tiles(256, 512)


def test_a_device_without_room_or_copy_engine_is_refused():
    with pytest.raises(fast().CannotMultiply, match="a GPU with little shared memory has 49,152 bytes"):
        fast().product_plan(4096, 4096, 4096, SMALLEST)
    with pytest.raises(fast().CannotMultiply, match="NVIDIA A100 has no TMA"):
        fast().check_device(A100)
    with pytest.raises(fast().CannotMultiply, match="no CUDA GPU found here"):
        fast().check_device(NO_GPU)


def zeros(*shape, dtype=torch.int8):
    return torch.zeros(shape, dtype=dtype)


F32, F16, I32 = torch.float32, torch.float16, torch.int32
REFUSED = {
    "16 bits": ((zeros(8, 32, dtype=F16), zeros(8, 32), zeros(8, 8, dtype=I32)), r"a is torch\.float16"),
    "two dtypes": ((zeros(8, 32), zeros(8, 32).to(FP8), zeros(8, 8, dtype=I32)), "give both as float8_e4m3fn or both"),
    "another depth": ((zeros(8, 32), zeros(8, 48), zeros(8, 8, dtype=I32)), r"give \(m, k\) and \(n, k\) into"),
    "no rows": ((zeros(0, 32), zeros(8, 32), zeros(0, 8, dtype=I32)), "m = 0, .* every side must be 1 or more"),
    "rows of 40 bytes": ((zeros(8, 40), zeros(8, 40), zeros(8, 8, dtype=I32)), "pad the columns to a multiple of 16"),
    "a transposed": ((zeros(32, 8).T, zeros(8, 32), zeros(8, 8, dtype=I32)), "a of shape .* has strides"),
    "out in float16": ((zeros(8, 32), zeros(8, 32), zeros(8, 8, dtype=F16)), "unscaled product of .*int8 needs int32"),
    "one scale": ((zeros(8, 32), zeros(8, 32), zeros(8, 8, dtype=F16), zeros(8, dtype=F32)), "one scale is missing"),
    "scales for other rows": (
        (zeros(8, 32), zeros(8, 32), zeros(8, 8, dtype=F16), zeros(8, dtype=F32), zeros(7, dtype=F32)),
        r"b_scale is torch\.float32 of shape \(7,\): give 8 neighboring float32 numbers",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_product_of_8_bits_does_not_take_is_refused_before_a_launch(case):
    arguments, says = REFUSED[case]
    with pytest.raises(fast().CannotMultiply, match=says):
        fast().scaled_matmul(*arguments)


def test_matrices_that_offsets_do_not_reach_are_refused():
    a = torch.empty(2**16, 2**15, dtype=torch.int8, device="meta")
    out = torch.empty(2**16, 16, dtype=torch.int32, device="meta")
    with pytest.raises(fast().CannotMultiply, match="a matrix of 2,147,483,648 elements: divide it"):
        fast().check_product(a, a[:16], out, None, None)


def test_what_the_int4_product_does_not_take_is_refused_before_a_launch():
    weights = fast().pack_int4(torch.ones(8, 256).half())
    x = torch.zeros(3, 256).half()
    for arguments, says in [
        ((x.float(), weights), r"x is torch\.float32: give float16 or bfloat16"),
        ((x[:, :128].contiguous(), weights), r"x of shape \(3, 128\) and weights of \(8, 256\)"),
        ((x[:0], weights), "every side must be 1 or more"),
        ((x.bfloat16(), weights), r"scales is torch\.float16 on cpu, x is torch\.bfloat16"),
        ((x, weights, torch.zeros(3, 8)), r"out is torch\.float32"),
        ((x, weights, torch.zeros(8, 3).half().T), "out has strides"),
        ((torch.zeros(256, 3).half().T, weights), "x of shape .* has strides"),
        ((x, weights), "no CUDA GPU found here|has no TMA"),
    ]:
        with pytest.raises(fast().CannotMultiply, match=says):
            fast().int4_matmul(*arguments)
    for w, says in [
        (torch.ones(8, 200).half(), "k is 200: give a multiple of 128"),
        (torch.ones(8, 256), r"weights are torch\.float32"),
        (torch.ones(256).half(), r"of shape \(256,\): give \(n, k\)"),
    ]:
        with pytest.raises(fast().CannotMultiply, match=says):
            fast().pack_int4(w)
