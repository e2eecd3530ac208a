"""Networks against torch: largest difference over the largest result, in float32."""

import pytest
import torch
from helpers import compiled_models as nets

from mlsys.compiler import compile
from mlsys.measure.device import torch_sees_gpu

DEVICE = "cuda" if torch_sees_gpu() else "cpu"

TOLERANCE = 1e-5
SMALL = {
    "resnet50": lambda: (nets.resnet50((1, 1, 1, 1), 8, 10), (torch.randn(1, 3, 32, 32),)),
    "mobilenet_v2": lambda: (nets.mobilenet_v2(0.25, 0.4, 10), (torch.randn(1, 3, 32, 32),)),
    "gpt2 block": lambda: (nets.GptBlock(64, 4), (torch.randn(2, 16, 64),)),
    "dlrm": lambda: (nets.Dlrm(13, (20,) * 5, 16, 32), (torch.randn(4, 13), torch.randint(0, 20, (4, 5, 4)))),
}
FULL = {
    "resnet50": lambda: (nets.resnet50(), (torch.randn(1, 3, 224, 224),)),
    "mobilenet_v2": lambda: (nets.mobilenet_v2(), (torch.randn(1, 3, 224, 224),)),
    "gpt2 block": lambda: (nets.GptBlock(), (torch.randn(1, 128, 768),)),
    "dlrm": lambda: (nets.Dlrm(), (torch.randn(32, 13), torch.randint(0, 100, (32, 26, 4)))),
}


def check(make):
    torch.manual_seed(0)
    model, inputs = make()
    nets.seeded(model)
    compiled = compile(model, inputs, DEVICE)
    with torch.no_grad():
        want = model(*inputs)
    (got,) = compiled(*inputs)
    assert (got.cpu() - want).abs().max() <= TOLERANCE * want.abs().max()


@pytest.mark.parametrize("name", ["resnet50", "gpt2 block", "dlrm"])
def test_small_networks_agree_with_torch(name):
    check(SMALL[name])


@pytest.mark.proof
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", FULL)
def test_networks_agree_with_torch(name):
    check(SMALL[name])
    check(FULL[name])
