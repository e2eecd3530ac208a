"""The convolution lab's fastest kernels: their results, what they refuse, and their code for a GPU that is not here.

The kernels that the lab itself asks for are in `test_convolution_lab.py`.
"""

import runpy
from functools import cache
from math import prod
from pathlib import Path

import pytest
import torch
from helpers.known_gpus import A100, H200, NO_GPU, T4
from helpers.known_lab import compile_kernels

from mlsys import models
from mlsys.grading import use_device

LAB = Path(__file__).parents[2] / "labs/convolution"


@cache
def bench():
    use_device()
    return runpy.run_path(str(LAB / "bench.py"))


@cache
def fast():
    """`fast.py`, which imports triton: as late as the labs' own cells do."""
    return bench()["fast_module"]()


def right(x, w, bias, layer, relu):
    """The library's result in float64."""
    window = {"stride": layer.stride, "padding": layer.padding, "groups": layer.groups}
    shift = None if bias is None else bias.double()
    y = torch.nn.functional.conv2d(x.double(), w.double(), shift, **window)
    return y.relu() if relu else y


CASES = {
    "3 x 3": ((2, 64, 8, 8, 64, 3, 3, 1, 1), {}),
    "boxes past the edges, ragged filters": ((3, 64, 7, 7, 72, 3, 3, 1, 1), {}),
    "a stride of 2, by parity": ((2, 128, 8, 8, 64, 3, 3, 2, 1), {}),
    "5 x 5 at a stride of 2": ((2, 64, 6, 6, 64, 5, 5, 2, 2), {}),
    "no padding": ((1, 64, 6, 5, 64, 3, 2), {}),
    "1 x 1": ((2, 64, 7, 5, 64, 1, 1), {}),
    "1 x 1 at a stride of 2": ((2, 64, 8, 8, 64, 1, 1, 2), {}),
    "persistent": ((2, 128, 10, 6, 64, 3, 3, 2, 1), {"plan": (64, 64, 4, 3, True, 64, True)}),
    "one pixel": ((1, 64, 1, 1, 64, 1, 1), {}),
    "three channels": ((2, 3, 16, 16, 64, 7, 7, 2, 3), {}),
    "three channels, without bias": ((2, 3, 16, 16, 64, 7, 7, 2, 3), {"bias": False}),
    "an odd image at a stride of 2": ((2, 64, 7, 9, 16, 3, 3, 2, 1), {}),
    "groups": ((2, 20, 9, 7, 24, 3, 3, 2, 1, 2), {}),
    "channels that no step divides": ((2, 96, 5, 7, 24, 3, 3, 1, 1), {}),
    "a group per channel": ((1, 8, 9, 7, 8, 3, 3, 1, 1, 8), {}),
}


@pytest.mark.proof
@pytest.mark.parametrize("case", CASES)
def test_a_convolution_is_right(case):
    """In float16, for the interpreter has no bfloat16."""
    sizes, how = CASES[case]
    layer = fast().Layer(*sizes)
    torch.manual_seed(1)
    x = torch.randn(layer.n, layer.c, layer.h, layer.w).half().to(memory_format=torch.channels_last)
    w = torch.randn(layer.k, layer.c // layer.groups, layer.r, layer.s).half().to(memory_format=torch.channels_last)
    bias = torch.randn(layer.k).half() if how.get("bias", True) else None
    assert fast().layer_of(x, w, layer.stride, layer.padding, layer.groups) == layer
    plan = fast().Plan(*how["plan"]) if "plan" in how else fast().plan_of(layer, H200)
    assert plan.copies == layer.fits_copies
    for relu in (False, True):
        out = torch.full((layer.n, layer.k, layer.p, layer.q), float("nan")).half()
        out = out.contiguous(memory_format=torch.channels_last)
        fast().check(x, w, bias, out, layer)
        fast().launch(x, w, bias, out, layer, plan, H200, relu)
        expected = right(x, w, bias, layer, relu)
        error = (out.double() - expected).abs() / expected.abs().clamp(min=expected.square().mean().sqrt())
        assert error.max() < 2e-3


def test_the_layers_are_the_distinct_convolutions_of_resnet():
    layers = bench()["resnet_layers"](2)
    convolutions = [op for op in models.resnet50(batch=2).ops if op.kind == "conv2d"]
    assert len(set(layers)) == len(layers) == 23
    flops = {2 * one.pixels * one.k * one.c * one.r * one.s for one in layers}
    assert flops == {op.flop_count for op in convolutions}


def test_boxes_cover_all_pixels_and_waste_none_where_sides_allow_it():
    for layer in bench()["resnet_layers"]():
        for pixels in (64, 128, 256):
            box = layer.box(pixels)
            assert prod(box) == pixels
            assert prod(layer.boxes(box)) * pixels >= layer.pixels
            if layer.p in (56, 28):
                assert prod(layer.boxes(box)) * pixels == layer.pixels


def job(layer, plan):
    if not plan.copies:
        merged = layer.c * layer.s <= plan.step
        constants = {"MERGED": merged, "PIXELS": plan.pixels, "STRIDE": layer.stride}
        made = {"kernel": "gather_kernel", "odd": ["C", "C_ALL", "RUN", "TAPS"], "descriptors": {}}
    else:
        box, stride = layer.box(plan.pixels), 1 if layer.one_tap else layer.stride
        images = [*box, plan.step] if stride == 1 else [box[0], box[1], 1, box[2], plan.step]
        constants = {"IMAGES": box[0], "ROWS": box[1], "COLS": box[2], "PERSISTENT": plan.persistent, "STRIDE": stride}
        blocks = {"x": images, "w": [plan.filters, plan.step], "out": [*box, plan.filters]}
        made = {"kernel": "copy_kernel", "odd": ["P_BOXES", "Q_BOXES", "TILES"], "descriptors": blocks}
    constants |= {"R": layer.r, "S": layer.s, "PADDING": layer.padding, "FILTERS": plan.filters, "STEP": plan.step}
    constants |= {"BIAS": True, "RELU": True}
    options = {"num_warps": plan.num_warps, "num_stages": plan.num_stages}
    return made | options | {"dtype": "bf16", "capability": 90, "constants": constants}


@pytest.mark.proof
def test_the_plans_of_resnet_compile_for_hopper_without_spills_and_take_what_they_say():
    layers = bench()["resnet_layers"]()
    chosen = {
        (layer.r, layer.stride, plan): (layer, plan) for layer in layers for plan in [fast().plan_of(layer, H200)]
    }
    needed = compile_kernels(LAB / "fast.py", [job(*one) for one in chosen.values()])
    for (layer, plan), needs in zip(chosen.values(), needed, strict=True):
        assert needs["spilled_bytes"] == 0, (layer, plan)
        assert needs["tensor_cores"], (layer, plan)
        assert needs["tensor_copies"] == plan.copies, (layer, plan)
        if plan.copies:
            assert needs["shared_bytes"] <= plan.shared_bytes <= H200.shared_bytes, (layer, plan)


def test_a_device_without_the_copy_engine_gets_plans_by_addresses():
    for layer in bench()["resnet_layers"]():
        assert not fast().plan_of(layer, A100).copies


def tensors(x=(2, 64, 8, 8), w=(64, 64, 3, 3), dtype=torch.float16, layout=torch.channels_last):
    return [torch.zeros(shape, dtype=dtype).contiguous(memory_format=layout) for shape in (x, w)]


@pytest.mark.parametrize(
    ("shapes", "window", "says"),
    [
        (((2, 64, 8), (64, 64, 3, 3)), (1, 1, 1), r"\(2, 64, 8\) and"),
        (((2, 64, 8, 8), (64, 64, 3, 3)), (0, 1, 1), "stride is 0: give one integer, 1 or more"),
        (((2, 64, 8, 8), (64, 64, 3, 3)), ((2, 1), 1, 1), r"stride is \(2, 1\)"),
        (((2, 64, 8, 8), (64, 64, 3, 3)), (1, -1, 1), "padding is -1"),
        (((2, 64, 8, 8), (64, 32, 3, 3)), (1, 1, 1), "64 channels, 64 filters of 32 channels, 1 groups"),
        (((2, 64, 8, 8), (63, 32, 3, 3)), (1, 1, 2), "groups must divide both"),
        (((2, 64, 8, 0), (64, 64, 3, 3)), (1, 1, 1), "every side must be 1 or more"),
        (((2, 64, 3, 3), (64, 64, 7, 7)), (1, 1, 1), "7 x 7 taps is larger than the image of 3 x 3 with padding 1"),
    ],
)
def test_shapes_that_make_no_convolution_are_refused(shapes, window, says):
    x, w = (torch.zeros(shape) for shape in shapes)
    with pytest.raises(fast().CannotConvolve, match=says):
        fast().layer_of(x, w, *window)


def test_what_the_kernels_do_not_take_is_refused_before_a_launch():
    x, w = tensors()
    layer = fast().layer_of(x, w, 1, 1, 1)
    bias = torch.zeros(64, dtype=torch.float16)
    for arguments, says in [
        ((*tensors(dtype=torch.float32), None, None), r"x is torch\.float32: give float16 or bfloat16"),
        ((x, w.bfloat16(), None, None), r"w is torch\.bfloat16 on cpu, x is torch\.float16"),
        ((*tensors(layout=torch.contiguous_format), None, None), "the channels must be last"),
        ((x, w, bias[:63], None), r"bias has shape \(63,\): give 64"),
        ((x, w, None, x[:1]), r"out has shape \(1, 64, 8, 8\)"),
    ]:
        with pytest.raises(fast().CannotConvolve, match=says):
            fast().check(*arguments, layer)
    many = torch.empty(2**15, 64, 32, 32, dtype=torch.float16, device="meta", memory_format=torch.channels_last)
    with pytest.raises(fast().CannotConvolve, match="2,147,483,648 elements: give fewer images"):
        fast().check(many, w.to("meta"), None, None, fast().Layer(2**15, 64, 32, 32, 64, 3, 3, 1, 1))


@pytest.mark.parametrize(
    ("device", "dtype", "says"),
    [
        (NO_GPU, torch.float16, "no CUDA GPU found here"),
        (T4, torch.float16, "Tesla T4 has no tensor cores"),
    ],
)
def test_a_device_that_cannot_is_refused(device, dtype, says):
    with pytest.raises(fast().CannotConvolve, match=says):
        fast().check_device(device, dtype)
