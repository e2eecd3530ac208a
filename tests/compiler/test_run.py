"""The function that launches a program again, with the GPU's launches replaced by a list of their arguments."""

from types import SimpleNamespace

import pytest
import torch
import triton.runtime
from torch import nn

from mlsys.compiler import compile
from mlsys.measure.device import torch_sees_gpu

pytestmark = pytest.mark.skipif(torch_sees_gpu(), reason="test_models_gpu.py launches again for real")


@pytest.fixture
def launched(monkeypatch):
    """A chain of two layers, its program, and the arguments of each launch."""
    stream = SimpleNamespace(active=SimpleNamespace(get_current_stream=lambda device: 7))
    monkeypatch.setattr(triton.runtime, "driver", stream)
    model, x = nn.Sequential(nn.Linear(8, 8), nn.Softmax(-1)), torch.randn(16, 8)
    compiled, calls = compile(model, [x]), []
    (y,) = compiled(x)
    loaded = compiled._last
    made = SimpleNamespace(run=lambda *given: calls.append(given), function="f", packed_metadata="p")
    loaded.compiled = [(made, *rest) for _, *rest in loaded.compiled]
    return x, loaded, loaded.written({loaded.program.graph.outputs[0]: y}), calls


def test_each_kernel_is_launched_with_the_addresses_of_its_own_tensors(launched):
    x, loaded, again, calls = launched
    (y,) = again([x])
    assert y.shape == x.shape
    assert y.is_contiguous()
    first, last = calls
    assert first[3:9] == last[3:9] == (7, "f", "p", None, None, None)
    weights = [value.data_ptr() for value in loaded.kept.values()]
    assert first[9] == x.data_ptr()
    assert set(first[10:12]) <= set(weights)
    between = first[12]
    assert between in weights
    assert last[9:11] == (between, y.data_ptr())
    assert again([x])[0].data_ptr() != y.data_ptr(), "each call has an output of its own"


@pytest.mark.parametrize("wrong", ["more", "format", "shape", "strides", "alignment", "parameter"])
def test_an_input_that_the_kernels_do_not_take_is_left_to_the_longer_way(launched, wrong):
    x, _, again, calls = launched
    inputs = {
        "more": [x, x],
        "format": [x.double()],
        "shape": [x[:8]],
        "strides": [torch.randn(8, 16).T],
        "alignment": [torch.randn(129)[1:].view(16, 8)],
        "parameter": [nn.Parameter(x)],
    }
    assert again(inputs[wrong]) is None
    assert calls == []
