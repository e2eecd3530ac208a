"""The attention lab's fastest kernels: their results, what they refuse, and their code for a GPU that is not here.

The kernels that the lab itself asks for are in `test_attention_lab.py`. `specialized.py` is in Gluon, which no
interpreter runs: its kernel is compiled here, and its results are checked where `mlsys bench` runs it, on a GPU.
"""

import dataclasses
import runpy
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers import known_gpus
from helpers.known_gpus import A100, NO_GPU, SMALL
from helpers.known_lab import compile_kernels
from helpers.reductions import interpret_reductions

from mlsys import ops
from mlsys.bench.lab import lab_module
from mlsys.grading import use_device
from mlsys.measure.device import Device

LAB = Path(__file__).parents[2] / "labs/attention"
H200 = dataclasses.replace(known_gpus.H200, cache_bytes=50 * 2**20)
SMALLEST = Device("gpu", "a GPU with less", (9, 0), multiprocessors=40, shared_bytes=32 * 1024)


@cache
def fast():
    """`fast.py`, which imports triton: as late as the labs' own cells do."""
    use_device()
    return runpy.run_path(str(LAB / "bench.py"))["fast_module"]()


@cache
def specialized():
    use_device()
    return lab_module(LAB / "specialized.py")


def drawn(sizes, layout="heads"):
    """Random q, k, v and dy in float16, for the interpreter has no bfloat16; "tokens" has a token's heads together."""
    torch.manual_seed(1)
    sides = ((sizes.heads, sizes.n), (sizes.kv_heads, sizes.m), (sizes.kv_heads, sizes.m), (sizes.heads, sizes.n))
    made = [torch.randn(sizes.batch, *side, sizes.d).half() for side in sides]
    return [tensor.transpose(1, 2).contiguous().transpose(1, 2) if layout == "tokens" else tensor for tensor in made]


def right(q, k, v, dy, causal):
    """Result, logarithm of the sums and gradients by torch's autograd in float64."""
    leaves = [tensor.double().requires_grad_() for tensor in (q, k, v)]
    group = q.shape[1] // k.shape[1]
    scores = leaves[0] @ leaves[1].repeat_interleave(group, 1).mT / q.shape[3] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(q.shape[2], k.shape[2]).triu(1).bool(), -torch.inf)
    y = scores.softmax(-1) @ leaves[2].repeat_interleave(group, 1)
    return y.detach(), scores.logsumexp(-1).detach(), torch.autograd.grad(y, leaves, dy.double())


CASES = {  # sizes, blocks of the forward pass and of the backward pass, layout
    "whole blocks": ((1, 1, 1, 32, 32, 16), (16, 16), (16, 16), "heads"),
    "ragged, two sequences, shared keys": ((2, 4, 2, 37, 37, 16, True), (16, 16), (16, 16), "heads"),
    "more keys, heads of a token together": ((2, 4, 2, 37, 50, 16, True), (32, 16), (16, 32), "tokens"),
    "fewer keys, a head of 24": ((1, 2, 1, 50, 20, 24, True), (16, 32), (32, 16), "heads"),
    "no mask, a head of 40": ((1, 2, 2, 21, 45, 40), (32, 32), (16, 16), "heads"),
    "one token": ((1, 2, 1, 1, 1, 16, True), (16, 16), (16, 16), "heads"),
}


@pytest.mark.proof
@pytest.mark.parametrize("case", CASES)
def test_attention_and_its_gradients_are_right(case):
    given, *blocks, layout = CASES[case]
    interpret_reductions()
    sizes = fast().Sizes(*given)
    q, k, v, dy = drawn(sizes, layout)
    assert fast().sizes_of(q, k, v, sizes.causal) == sizes
    y, logsum, exact = right(q, k, v, dy, sizes.causal)
    forward, backward = (fast().Plan(*block, 4, 2) for block in blocks)
    device = dataclasses.replace(H200, cache_bytes=3000)  # sections of few heads
    scale = sizes.d**-0.5
    fast().check({"q": q, "k": k, "v": v, "dy": dy}, scale)
    out, found_logsum = torch.full_like(q, float("nan")), torch.full(q.shape[:3], float("nan"))
    fast().launch_forward(q, k, v, out, found_logsum, sizes, scale, forward, device)
    torch.testing.assert_close(out.double(), y, rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(found_logsum.double(), logsum * fast().LOG2_E, rtol=1e-5, atol=1e-5)
    found = tuple(torch.full_like(tensor, float("nan")) for tensor in (q, k, v))
    fast().launch_backward(q, k, v, out, found_logsum, dy, found, sizes, scale, device, backward)
    for tensor, gradient in zip(found, exact, strict=True):
        error = (tensor.double() - gradient).abs().max() / gradient.abs().max().clamp(min=0.1)
        assert error < 2e-3


@pytest.mark.proof
def test_keys_past_the_last_add_nothing_to_the_gradients_of_queries():
    """Their scores are 0, and where all others are far below, shares of them would be infinite."""
    sizes = fast().Sizes(1, 1, 1, 16, 20, 16)
    q, k, v, dy = drawn(sizes)
    q, k = q.abs() + 8, -k.abs() - 8
    interpret_reductions()
    plan = fast().Plan(16, 16, 4, 2)
    out, logsum = torch.empty_like(q), torch.empty(q.shape[:3])
    fast().launch_forward(q, k, v, out, logsum, sizes, 1.0, plan, H200)
    assert logsum.max() < -128
    found = tuple(torch.empty_like(tensor) for tensor in (q, k, v))
    fast().launch_backward(q, k, v, out, logsum, dy, found, sizes, 1.0, H200, plan)
    _, _, exact = right(q * 4, k, v, dy, False)  # whose scale is a quarter
    for tensor, gradient in zip(found, (exact[0] * 4, *exact[1:]), strict=True):
        assert (tensor.double() - gradient).abs().max() < 2e-2 * gradient.abs().max()  # keys that are large and alike


def test_programs_with_most_keys_begin_and_no_tile_is_left_out():
    """Also where the last section has fewer heads than the others."""
    for causal in (False, True):
        tiles = [fast().place_of.fn(number, 3, 5, 2, causal) for number in range(15)]
        assert sorted(tiles) == [(block, head) for block in range(3) for head in range(5)]
        assert tiles == [specialized().place_of.fn(number, 3, 5, 2, causal) for number in range(15)]
        if causal:
            assert tiles[:6] == [(2, 0), (2, 1), (1, 0), (1, 1), (0, 0), (0, 1)]
            assert tiles[-3:] == [(2, 4), (1, 4), (0, 4)]


@pytest.mark.parametrize(("n", "m"), [(7, 7), (5, 9), (9, 5), (1, 1)])
def test_flops_count_the_pairs_that_the_mask_leaves(n, m):
    sizes = fast().Sizes(2, 3, 3, n, m, 16, True)
    assert sizes.flops == 4 * 2 * 3 * 16 * int(torch.ones(n, m).tril().sum())
    whole = ops.attention(batch=2, heads=3, seq=n, kv_seq=m, head_dim=16)
    assert dataclasses.replace(sizes, causal=False).flops == whole.flop_count


TYPES = {"logsum_ptr": "*fp32", "factor": "fp32", "scale": "fp32"}
SUMS = ("dq", "logsum", "delta")
"""Descriptors of float32 tensors."""

KERNELS = {
    "forward_kernel": ("PLANS", {"q": "q", "k": "k", "v": "k", "out": "q"}),
    "backward_kernel": (
        "BACKWARD_PLANS",
        {"q": "q", "k": "k", "v": "k", "dy": "q", "dq": "q", "dk_out": "k", "dv_out": "k"},
    ),
}


MASKS = [(False, False), (True, True)]
"""Whether the attention is causal, and whether keys end within a block."""


SPILLED_BYTES = {"forward_kernel": 0, "backward_kernel": 80}
"""Bytes that a thread may spill: backward a few counters and addresses, but no row of a block."""


def job(kernel, plan, d, causal, ragged):
    sides = {"q": plan.block_q, "k": plan.block_k}
    names = getattr(fast(), kernel).arg_names
    blocks = {name: [1, 1, sides[side], d] for name, side in KERNELS[kernel][1].items()}
    constants = {"D": d, "GROUP": 4, "BLOCK_Q": plan.block_q, "BLOCK_K": plan.block_k, "CAUSAL": causal}
    if kernel == "backward_kernel":
        blocks |= {name: [1, plan.block_q] for name in ("logsum", "delta")}
        constants["RAGGED"] = ragged
    sums = {name: f"tensordesc<fp32{blocks[name]}>" for name in SUMS if name in blocks}
    return {
        "kernel": kernel,
        "dtype": "bf16",
        "capability": 90,
        "num_warps": plan.num_warps,
        "num_stages": plan.num_stages,
        "maxnreg": plan.max_registers,
        "constants": constants,
        "descriptors": blocks,
        "types": {name: kind for name, kind in TYPES.items() if name in names} | sums,
        "odd": ["N", "M", "heads", "all_heads", "blocks", "section", "factor", "scale"],
    }


@pytest.mark.proof
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_plan_compiles_for_hopper_without_large_spills_and_takes_what_it_says(kernel):
    plans = getattr(fast(), KERNELS[kernel][0])
    made = [(plan, d, mask) for d in (64, 128) for plan in fast().candidates(plans, d) for mask in MASKS]
    needed = compile_kernels(LAB / "fast.py", [job(kernel, plan, d, *mask) for plan, d, mask in made])
    for (plan, d, mask), needs in zip(made, needed, strict=True):
        assert needs["spilled_bytes"] <= SPILLED_BYTES[kernel], (plan, d, mask)
        assert needs["tensor_cores"], (plan, d, mask)
        assert needs["tensor_copies"], (plan, d, mask)
        most = fast().shared_bytes(plan, d, keys_rest=kernel == "backward_kernel")
        assert needs["shared_bytes"] <= most, (plan, d, mask)
        assert needs["shared_bytes"] <= H200.shared_bytes, (plan, d, mask)


def test_the_rule_chooses_large_blocks_where_there_are_enough_of_them():
    sizes = fast().Sizes(16, 32, 32, 4096, 4096, 64, True)
    for plans, rest in ((fast().PLANS, False), (fast().BACKWARD_PLANS, True)):
        for d in (40, 64, 80, 128):
            many = dataclasses.replace(sizes, d=d)
            few = dataclasses.replace(many, batch=1, heads=2, kv_heads=2, n=200, m=200)
            assert fast().plan_of(plans, many, H200, keys_rest=rest) == fast().candidates(plans, d)[0]
            assert fast().plan_of(plans, few, H200, keys_rest=rest) == fast().candidates(plans, d)[-1]
            found = fast().plan_of(plans, dataclasses.replace(many, d=64), SMALL, keys_rest=rest)
            assert fast().shared_bytes(found, 64, keys_rest=rest) <= SMALL.shared_bytes
    with pytest.raises(fast().CannotAttend, match="32,768 bytes of shared memory"):
        fast().plan_of(fast().PLANS, sizes, SMALLEST)


def test_a_section_holds_the_heads_whose_keys_fit_half_of_the_cache():
    sizes = fast().Sizes(4, 32, 8, 4096, 4096, 128, True)
    each = 2 * 2 * 4096 * 128
    assert sizes.section(50 * 2**20) * each / 4 <= 25 * 2**20 < (sizes.section(50 * 2**20) + 1) * each / 4
    assert sizes.section(1000) == 1
    assert sizes.section(2**40) == 128


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        (((2, 4, 9), (1, 4, 9, 16), (1, 4, 9, 16)), r"q has shape \(2, 4, 9\): give \(batch, heads, tokens, numbers\)"),
        (((1, 4, 0, 16), (1, 4, 9, 16), (1, 4, 9, 16)), "each 1 or more"),
        (((1, 4, 9, 20), (1, 4, 9, 20), (1, 4, 9, 20)), "a head has 20 numbers: give a multiple of 8 up to 128"),
        (((1, 4, 9, 256), (1, 4, 9, 256), (1, 4, 9, 256)), "a head has 256 numbers"),
        (((1, 4, 9, 16), (1, 4, 9, 16), (1, 4, 8, 16)), r"v \(1, 4, 8, 16\): give both as \(1, heads, tokens, 16\)"),
        (((1, 4, 9, 16), (2, 4, 9, 16), (2, 4, 9, 16)), "give both as"),
        (((1, 4, 9, 16), (1, 3, 9, 16), (1, 3, 9, 16)), "4 heads of queries and 3 of keys"),
    ],
)
def test_shapes_that_make_no_attention_are_refused(shapes, says):
    with pytest.raises(fast().CannotAttend, match=says):
        fast().sizes_of(*(torch.zeros(shape) for shape in shapes), False)


def test_what_the_kernels_do_not_take_is_refused_before_a_launch():
    q = torch.zeros(1, 2, 9, 16, dtype=torch.float16)
    for tensors, scale, says in [
        ({"q": q.float()}, 1.0, r"q is torch\.float32: give float16 or bfloat16"),
        ({"q": q, "k": q.bfloat16()}, 1.0, r"k is torch\.bfloat16 on cpu, q is torch\.float16"),
        ({"q": q}, -1.0, r"scale is -1\.0: give a number above 0"),
        ({"q": q}, float("nan"), "scale is nan"),
        ({"q": q, "k": q.mT.contiguous().mT}, 1.0, "k has strides .* call .contiguous"),
        ({"q": q, "k": torch.zeros(1, 2, 9, 20, dtype=torch.float16)[..., :16]}, 1.0, "k has strides"),
    ]:
        with pytest.raises(fast().CannotAttend, match=says):
            fast().check(tensors, scale)


@pytest.mark.parametrize(("device", "says"), [(NO_GPU, "no CUDA GPU found here"), (A100, "NVIDIA A100 has no TMA")])
def test_a_device_that_cannot_is_refused(device, says):
    with pytest.raises(fast().CannotAttend, match=says):
        fast().check_device(device)


@pytest.mark.proof
def test_the_kernel_of_groups_of_warps_compiles_for_hopper_and_uses_what_it_is_about():
    """Compiled only: what it computes was not seen here."""
    made = [(d, plan, causal) for d, plan in specialized().PLANS.items() for causal in (False, True)]
    jobs = [
        {
            "kernel": "specialized_kernel",
            "dtype": "bf16",
            "capability": 90,
            "num_warps": 4,
            "d": d,
            "specialized_plan": dataclasses.asdict(plan),
            "constants": {"BLOCK_K": plan.block_k, "STAGES": plan.num_stages, "CAUSAL": causal},
            "descriptors": {"q": [1, 64, d], "k": [1, plan.block_k, d], "v": [1, plan.block_k, d], "out": [1, 64, d]},
            "types": {"logsum_ptr": "*fp32", "factor": "fp32"},
            "odd": ["N", "M", "heads", "group", "blocks", "tiles", "section", "factor"],
        }
        for d, plan, causal in made
    ]
    for (d, plan, causal), needs in zip(made, compile_kernels(LAB / "specialized.py", jobs), strict=True):
        assert needs["spilled_bytes"] == 0, (d, causal)
        assert needs["shared_bytes"] <= plan.shared_bytes(d) <= H200.shared_bytes, (d, causal)
        assert needs["tensor_cores"], (d, causal)
        assert needs["tensor_copies"], (d, causal)
        assert needs["groups_of_warps"], (d, causal)


def test_what_that_kernel_does_not_take_is_refused_before_a_launch():
    good = torch.zeros(2, 9, 64, dtype=torch.float16)
    for device, tensors, says in [
        (A100, (good, good, good), "NVIDIA A100 is no Hopper GPU"),
        (NO_GPU, (good, good, good), "a laptop is no Hopper GPU"),
        (H200, (good.float(), good.float(), good.float()), r"q is torch\.float32"),
        (H200, (good, good.transpose(0, 1), good), "k has shape .* give contiguous tensors"),
        (H200, (good[..., :32].contiguous(), good, good), "a head has 32 numbers: give 64 or 128"),
        (H200, (good, good, good[:1]), "where the heads of keys divide 2"),
    ]:
        with pytest.raises(specialized().CannotAttend, match=says):
            specialized().check(*tensors, device)
